//go:build linux

package sandbox

import (
	"fmt"
	"os"
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

// TestSystemBombs: a bomb ends with its call, within 2 s of its timeout, and the next call works.
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
			h := startHost(t, user, "")
			join(h.pid)
			for name, line := range bombs {
				most, stop := watch(count)
				start := time.Now()
				got, err := h.do(job.Job{Level: level, ABI: abi, Line: line, Timeout: bombTimeout, Processes: bombProcesses})
				took, peak := time.Since(start), most()
				stop()
				t.Logf("%s as %s at %s: %v, %d processes at most, exit %d %s", name, user, level, took.Round(time.Millisecond), peak, got.Code, got.Ended)
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
