package toolhostserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// supervisorName is argv[0] of a supervisor; argv[1] is the command.
	supervisorName = "harness-command-supervisor"
	// File descriptors that a supervisor inherits: the lifeline, which ends when
	// the host lets go of it or dies, and the one for the report.
	lifelineFD = 3
	reportFD   = 4
	// leaveGrace is how long processes may take to end by themselves after the
	// shell has: the last of a pipeline still writes.
	leaveGrace = 100 * time.Millisecond
)

// Supervise has to be called first in main, and in TestMain of packages that run
// a tool host. When the process was started to supervise a command it does that
// and never returns; else it returns at once.
//
// A supervisor is this program once more, in a session of its own and without
// the host's credentials. It adopts every orphan below it, so that no process of
// the command gets away from it by forking twice or by leaving its session, and
// ends only when all are dead. It kills them when the shell has ended and when
// its lifeline ends, which the kernel sees to also when the host is killed.
//
// Not covered: what other daemons start on the command's behalf (a container
// engine, at, systemd-run), and a process whose supervisor was killed, by itself
// or from outside, and that has neither its environment nor a parent left to be
// known by.
func Supervise() {
	supervisable.Store(true)
	if len(os.Args) != 2 || os.Args[0] != supervisorName {
		return
	}
	// The shell is to die with this thread (Pdeathsig), so it has to stay.
	runtime.LockOSThread()
	end := supervise(os.Args[1])
	report, err := json.Marshal(end)
	if err == nil {
		_, err = unix.Write(reportFD, append(report, '\n'))
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// supervisable says that Supervise was called: that this program, started once
// more, would supervise a command and not do its own work all over again.
var supervisable atomic.Bool

func supervise(command string) ending {
	// The command gets neither these two nor what the host itself inherited.
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(reportFD)
	_ = unix.CloseRange(reportFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return ending{Error: "the system cannot adopt orphans: " + err.Error()}
	}
	// Not ignored, which the shell would inherit, but without effect.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	gone := make(chan struct{})
	go func() {
		awaitEnd(lifelineFD)
		close(gone)
	}()

	if cutOff(lifelineFD) {
		return ending{Stopped: true} // the host died before this process was there to be found
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", command}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return ending{Error: err.Error()}
	}
	end := watch(pid, children, gone)
	end.Left = extinguish()
	if end.Stopped {
		end.Left = nil
	}
	return end
}

// awaitEnd returns when the other end of a pipe is closed.
func awaitEnd(fd int) {
	buffer := make([]byte, 1)
	for {
		n, err := unix.Read(fd, buffer)
		if n == 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// cutOff says that the other end of a pipe is closed already.
func cutOff(fd int32) bool {
	for {
		poll := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}

// watch reaps until the shell has ended and what it left behind has had its
// time. This goroutine alone reaps, so a pid that it kills is still its child.
func watch(shell int, children <-chan os.Signal, gone <-chan struct{}) ending {
	var end ending
	ended := false
	var leave <-chan time.Time
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil { // no children at all, and so nothing below them
				return end
			}
			if pid == 0 {
				break
			}
			if pid == shell {
				ended = true
				end.Code = status.ExitStatus()
				if status.Signaled() {
					end.Signal = int(status.Signal())
					end.Code = 128 + end.Signal
				}
				leave = time.After(leaveGrace)
			}
		}
		select {
		case <-children:
		case <-leave:
			return end
		case <-gone:
			// When the shell had ended, so had the command: that stands.
			return ending{Code: end.Code, Signal: end.Signal, Stopped: !ended}
		}
	}
}

// extinguish kills everything below this process, reaps it, and names what it
// had to kill.
func extinguish() []string {
	killed := make(map[int]string)
	pause := time.Millisecond
	for reap() {
		frozen := freeze(func() []process { return descendants(os.Getpid()) })
		for pid, name := range frozen {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed[pid] = name
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
	counts := make(map[string]int)
	for _, name := range killed {
		counts[name]++
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		text := strings.ToValidUTF8(name, "?")
		if counts[name] > 1 {
			text += fmt.Sprintf(" (%d)", counts[name])
		}
		names = append(names, text)
	}
	return names
}

// reap takes the dead children and says whether there are others.
func reap() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.EINTR || err == nil && pid > 0 {
			continue
		}
		return err == nil
	}
}
