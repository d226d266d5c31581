//go:build linux

package startup

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// maxSize bounds the program, in bytes. The client and server of the Model Context Protocol weigh 2 MB, with sign-in 2.5.
const maxSize = 67e6

// unwanted are packages that must not return to the program, with their weight
// when they left it.
var unwanted = map[string]string{
	"github.com/openai/openai-go":          "21 MB",
	"github.com/anthropics/anthropic-sdk-": "9 MB",
	"github.com/alecthomas/chroma":         "4 MB and 8 ms of CPU in each start, with glamour",
	"charm.land/glamour":                   "4 MB and 8 ms of CPU in each start, with chroma",
}

func TestProgramIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	info, err := os.Stat(build(t, "./cmd/harness"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxSize {
		t.Errorf("the program has %.1f MB, more than %.0f: find out what weighs with go tool nm -size -sort size", float64(info.Size())/1e6, maxSize/1e6)
	}
}

func TestProgramHasNoUnwantedPackages(t *testing.T) {
	out, err := goCommand(t, "list", "-deps", "./cmd/harness").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.Lines(string(out)) {
		for prefix, weight := range unwanted {
			if strings.HasPrefix(dependency, prefix) {
				t.Errorf("the program imports %s, which has weighed %s", strings.TrimSpace(dependency), weight)
			}
		}
	}
}

func BenchmarkVersion(b *testing.B) { benchmark(b, "version") }

func BenchmarkHelp(b *testing.B) { benchmark(b, "run", "--help") }

func benchmark(b *testing.B, arguments ...string) {
	program, floor := build(b, "./cmd/harness"), build(b, "./bench/startup/hello")
	var starts, floors []time.Duration
	var resident int64
	for b.Loop() {
		cpu, peak := measure(b, program, arguments...)
		starts, resident = append(starts, cpu), max(resident, peak)
		cpu, _ = measure(b, floor)
		floors = append(floors, cpu)
	}
	slices.Sort(starts)
	slices.Sort(floors)
	median, medianFloor := starts[len(starts)/2], floors[len(floors)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(starts[0].Microseconds())/1e3, "cpu-ms-least")
	b.ReportMetric(float64(median.Microseconds())/1e3, "cpu-ms")
	b.ReportMetric(float64(medianFloor.Microseconds())/1e3, "floor-cpu-ms")
	b.ReportMetric(float64(median)/float64(medianFloor), "cpu/floor")
	b.ReportMetric(float64(resident)/1e6, "rss-MB")
	b.ReportMetric(float64(anonymousAtExit(b, program, arguments...))/1e6, "anon-MB")
}

// measure runs a program to its end, and returns its CPU time and its peak of
// resident memory in bytes.
func measure(tb testing.TB, program string, arguments ...string) (cpu time.Duration, resident int64) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program, arguments...)
	if err := cmd.Run(); err != nil {
		tb.Fatal(err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10
}

// anonymousAtExit runs a program to its end under a tracer, and returns its
// anonymous resident memory at the exit, in bytes.
func anonymousAtExit(tb testing.TB, program string, arguments ...string) (bytes int64) {
	tb.Helper()
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(tb.Context(), program, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = cmd.Process.Release() }()
	pid := cmd.Process.Pid
	options := false
	for {
		var status syscall.WaitStatus
		thread, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		if err != nil {
			tb.Fatal(err)
		}
		switch {
		case thread == pid && (status.Exited() || status.Signaled()):
			if status.ExitStatus() != 0 {
				tb.Fatalf("%s %v ended with %v", program, arguments, status)
			}
			return bytes
		case !status.Stopped():
			continue
		}
		if !options {
			options = true
			if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACEEXIT|syscall.PTRACE_O_TRACECLONE); err != nil {
				tb.Fatal(err)
			}
		}
		signal := 0
		switch {
		case status.TrapCause() == syscall.PTRACE_EVENT_EXIT:
			bytes = max(bytes, anonymous(tb, pid))
		case status.StopSignal() != syscall.SIGTRAP && status.StopSignal() != syscall.SIGSTOP:
			signal = int(status.StopSignal())
		}
		if err := syscall.PtraceCont(thread, signal); err != nil && err != syscall.ESRCH {
			tb.Fatal(err)
		}
	}
}

// anonymous returns the anonymous resident memory of a process, in bytes; 0 after
// its end.
func anonymous(tb testing.TB, pid int) int64 {
	tb.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	return 0
}

// build links a package as a release is linked, and returns the program's path.
func build(tb testing.TB, target string) string {
	tb.Helper()
	program.Rely(tb)
	path, err := program.Build(path.Base(target), path.Join("github.com/harnessmesh/harnessmesh", target))
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func goCommand(tb testing.TB, arguments ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "go", arguments...)
	cmd.Dir = "../.."
	return cmd
}
