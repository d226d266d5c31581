package parked

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// resident returns a process's share of the machine's memory, in bytes.
func resident(tb testing.TB, pid int) uint64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatalf("memory of a process is read from /proc: %v", err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib << 10
		}
	}
	tb.Fatalf("/proc says no VmRSS of process %d", pid)
	return 0
}

// natsServer finds the NATS server among the children of this process, and its storage
// directory.
func natsServer(tb testing.TB) (pid int, dir string) {
	tb.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		args := strings.Split(string(line), "\x00")
		if at := slices.Index(args, "-c"); args[0] == bin.NATS && at > 0 {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				tb.Fatal(err)
			}
			return pid, filepath.Dir(args[at+1])
		}
	}
	tb.Fatal("no NATS server among the children of this process")
	return 0, ""
}

// natsHeap returns the size of the live objects of the NATS server, in bytes. Its share
// of the machine's memory varies with its garbage, by more than its runs take.
func (b *bed) natsHeap() (size float64) {
	b.tb.Helper()
	for range 3 { // each collects; pools are freed with the second
		answer, err := http.Get("http://" + b.profile + "/debug/pprof/heap?debug=1&gc=1") //nolint:noctx // loopback, in a test
		b.must(err)
		text, err := io.ReadAll(answer.Body)
		b.must(errors.Join(err, answer.Body.Close()))
		_, rest, found := strings.Cut(string(text), "# HeapAlloc = ")
		line, _, _ := strings.Cut(rest, "\n")
		if size, err = strconv.ParseFloat(line, 64); err != nil || !found {
			b.tb.Fatalf("the NATS server's profile does not contain its heap: %v", err)
		}
	}
	return size
}

// onDisk returns the space that files use in directories, in bytes, as the file system
// counts.
func onDisk(tb testing.TB, dirs ...string) int64 {
	tb.Helper()
	var size int64
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil {
				var info fs.FileInfo
				if info, err = d.Info(); err == nil {
					size += info.Sys().(*syscall.Stat_t).Blocks * 512
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a file that was deleted meanwhile
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return size
}
