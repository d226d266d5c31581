package command

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
	// supervisorName is argv[0] of a supervisor; argv[1] is the command line.
	supervisorName = "harness-command-supervisor"
	// File descriptors that a supervisor inherits: the lifeline, which ends when the
	// host closes it or dies, and the one for the report.
	lifelineFD = 3
	reportFD   = 4
	// leaveGrace is how long processes may run after the shell has ended, such as the
	// last ones of a pipeline, which are still writing.
	leaveGrace = 100 * time.Millisecond
)

// Supervise must be called first in main, and in TestMain of packages that run
// commands. If the process was started to supervise a command, it does that and never
// returns; otherwise it returns immediately.
//
// A supervisor is this program started again, in its own session and without the host's
// credentials. It adopts every orphan below it, so that no process of the command
// escapes by forking twice or by leaving its session, and it ends only when all are
// dead. It kills them when the shell has ended and when its lifeline ends. The kernel
// ends the lifeline also when the host is killed.
//
// Not covered: processes that other daemons start on the command's behalf (a container
// engine, at, systemd-run), and a process whose supervisor was killed and that neither
// its environment nor its parent identifies.
func Supervise() {
	supervised.Store(true)
	if len(os.Args) != 2 || os.Args[0] != supervisorName {
		return
	}
	// The shell dies with this thread (Pdeathsig), so the thread must stay.
	runtime.LockOSThread()
	report, err := json.Marshal(supervise(os.Args[1]))
	if err == nil {
		_, err = unix.Write(reportFD, append(report, '\n'))
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// supervised records that Supervise was called.
var supervised atomic.Bool

// Supervised reports whether Supervise was called. If it was not, this program started
// again would repeat its own work instead of supervising a command.
func Supervised() bool { return supervised.Load() }

func supervise(line string) Exit {
	// The command inherits neither these two nor other descriptors of the host.
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(reportFD)
	_ = unix.CloseRange(reportFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Exit{Error: "the system cannot adopt orphans: " + err.Error()}
	}
	// Not ignored, which the shell would inherit, but without effect here.
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	gone := make(chan struct{})
	go func() {
		awaitEOF(lifelineFD)
		close(gone)
	}()

	if atEOF(lifelineFD) {
		return Exit{Stopped: true} // the host died before this process could be found
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", line}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return Exit{Error: err.Error()}
	}
	exit := watch(pid, children, gone)
	exit.Left = killDescendants()
	if exit.Stopped {
		exit.Left = nil
	}
	return exit
}

// awaitEOF returns when the other end of a pipe is closed.
func awaitEOF(fd int) {
	buffer := make([]byte, 1)
	for {
		n, err := unix.Read(fd, buffer)
		if n == 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// atEOF reports whether the other end of a pipe is already closed.
func atEOF(fd int32) bool {
	for {
		poll := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}

// watch reaps children until the shell has ended and leaveGrace is over. Only this
// goroutine reaps, so a pid that it kills still belongs to its child.
func watch(shell int, children <-chan os.Signal, gone <-chan struct{}) Exit {
	var exit Exit
	ended := false
	var leave <-chan time.Time
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil { // no children, and so no descendants
				return exit
			}
			if pid == 0 {
				break
			}
			if pid == shell {
				ended = true
				exit.Code = status.ExitStatus()
				if status.Signaled() {
					exit.Signal = int(status.Signal())
					exit.Code = 128 + exit.Signal
				}
				leave = time.After(leaveGrace)
			}
		}
		select {
		case <-children:
		case <-leave:
			return exit
		case <-gone:
			// If the shell had ended, the command had: its exit code counts.
			return Exit{Code: exit.Code, Signal: exit.Signal, Stopped: !ended}
		}
	}
}

// killDescendants kills all descendants of this process, reaps them, and returns their
// names.
func killDescendants() []string {
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

// reap reaps the dead children and reports whether others are left.
func reap() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.EINTR || err == nil && pid > 0 {
			continue
		}
		return err == nil
	}
}
