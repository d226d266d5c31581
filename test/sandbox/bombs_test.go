//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
)

// bombs use as much of something as they get. Each runs until its timeout unless it is killed.
var bombs = map[string]string{
	"processes":              `b() { b | b & b; }; b; sleep 60`,
	"processes that end":     `while :; do (setsid sh -c 'setsid sleep 0.01 & sleep 0.01' &) ; done`,
	"processes of sessions":  `i=0; while :; do setsid sleep 60 & i=$((i+1)); done`,
	"memory":                 `head -c 400m /dev/zero | tail | sleep 60`,
	"files":                  `i=0; while [ $i -lt 3000 ]; do echo > f$i; i=$((i+1)); done; sleep 60`,
	"temporary files":        `head -c 200m /dev/zero > "$TMPDIR/large"; sleep 60`,
	"deep folders":           `i=0; while [ $i -lt 1500 ]; do mkdir d && cd d; i=$((i+1)); done; sleep 60`,
	"output":                 `yes`,
	"the disk":               `while :; do head -c 100m /dev/zero >> large; done`,
	"descriptors":            `./attack use descriptors`,
	"watches of files":       `./attack use inotify`,
	"a process that ignores": `trap '' TERM INT HUP; while :; do sleep 1; done`,
}

const (
	bombTimeout = 2 * time.Second
	// bombEnd is how long after its timeout a call may end, with what starting it takes.
	bombEnd = bombTimeout + 2*time.Second
	// bombProcesses is the bound of a bomb, outerProcesses and outerMemory those of the test.
	bombProcesses  = 200
	outerProcesses = 2_000
	outerMemory    = 1 << 30
	outerDisk      = "size=256m,mode=755"
)

// outer makes control groups for a host, so that a guard that fails cannot take the machine. join
// puts a process into them, count returns how many they have.
func outer(t *testing.T, name string) (join func(pid int), count func() int) {
	t.Helper()
	var folders []string
	var current string
	for controller, limit := range map[string][2]string{"pids": {"pids.max", strconv.Itoa(outerProcesses)}, "memory": {"memory.limit_in_bytes", strconv.Itoa(outerMemory)}} {
		path := filepath.Join("/sys/fs/cgroup", controller, fmt.Sprintf("harness-test-%d-%s", os.Getpid(), name))
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Skipf("no outer bound for bombs here: %v", err)
		}
		t.Cleanup(func() { _ = unix.Rmdir(path) })
		if err := os.WriteFile(filepath.Join(path, limit[0]), []byte(limit[1]), 0o600); err != nil {
			t.Skipf("no outer bound for bombs here: %v", err)
		}
		folders = append(folders, path)
		if controller == "pids" {
			current = filepath.Join(path, "pids.current")
		}
	}
	join = func(pid int) {
		for _, path := range folders {
			if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return join, func() int {
		text, _ := os.ReadFile(current)
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
}

// smallDisk gives a host a separate file system, which a bomb can fill.
func smallDisk(t *testing.T) func(base string) {
	return func(base string) {
		if err := unix.Mount("tmpfs", base, "tmpfs", 0, outerDisk); err != nil {
			t.Skipf("no outer bound for what fills disks here: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	}
}

// answers starts a program again and again until it is stopped, and returns the longest time that
// one took: how the machine answers others.
func answers(t *testing.T) (longest func() time.Duration) {
	done, took := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		defer func() { took <- most }()
		for tick := time.Tick(50 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-tick:
			}
			start := time.Now()
			if err := exec.CommandContext(context.WithoutCancel(t.Context()), "true").Run(); err != nil {
				t.Errorf("next to a bomb: %v", err)
			}
			most = max(most, time.Since(start))
		}
	}()
	return func() time.Duration {
		close(done)
		return <-took
	}
}

// TestSystemBombs: a bomb ends with its call, within 2 s of its timeout, others can start programs
// all the time, and the next call works.
func TestSystemBombs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs control groups of version 1 around each host")
	}
	abi, full := levels(t)
	for _, user := range usersHere() {
		for _, level := range []string{"kernel", "full"} {
			if level == "full" && !full {
				continue
			}
			join, count := outer(t, user+"-"+level)
			h := startHostIn(t, user, "", smallDisk(t))
			join(h.pid)
			for name, line := range bombs {
				most, stop := watch(count)
				longest := answers(t)
				start := time.Now()
				got, err := h.do(job.Job{Level: level, ABI: abi, Line: line, Timeout: bombTimeout, Processes: bombProcesses})
				took, peak := time.Since(start), most()
				stop()
				waited := longest()
				t.Logf("%s as %s at %s: %v, %d processes at most, exit %d %s; another program took at most %v",
					name, user, level, took.Round(time.Millisecond), peak, got.Code, got.Ended, waited.Round(time.Millisecond))
				if err != nil || took > bombEnd {
					t.Errorf("%s as %s at %s: took %v: %v", name, user, level, took, err)
				}
				if bound := bombProcesses + 200; peak > bound && (level == "full" || user == "root" || peak > bound+wide()) {
					t.Errorf("%s as %s at %s: had %d processes", name, user, level, peak)
				}
				next, err := h.do(job.Job{Level: level, ABI: abi, Line: "echo works"})
				if err != nil || next.Output != "works\n" {
					t.Errorf("the call after %s as %s at %s: %v %q", name, user, level, err, next.Output)
				}
			}
		}
	}
}

// wide returns by how much the bound of a user at kernel exceeds the others: it counts all
// processes of the machine.
func wide() int {
	text, _ := os.ReadFile("/proc/loadavg")
	var load [3]float64
	var running, all int
	_, _ = fmt.Sscanf(string(text), "%f %f %f %d/%d", &load[0], &load[1], &load[2], &running, &all)
	return all + all/2
}

// watch reads a number until stop is called, and returns the highest.
func watch(count func() int) (most func() int, stop func()) {
	done, ended, peak := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(ended)
		for tick := time.Tick(5 * time.Millisecond); ; {
			select {
			case <-tick:
				peak = max(peak, count())
			case <-done:
				return
			}
		}
	}()
	stopped := false
	stop = func() {
		if !stopped {
			close(done)
			<-ended
			stopped = true
		}
	}
	return func() int { stop(); return peak }, stop
}
