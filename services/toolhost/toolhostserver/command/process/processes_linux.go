package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// marked lists the processes with a matching mark in their environment, and all their
// descendants. This process is never among them.
func marked(match func(mark string) bool) []supervisor.Process {
	all := supervisor.Alive()
	roots := make(map[int]bool)
	var found []supervisor.Process
	for _, p := range all {
		if p.PID == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/environ")
		if err == nil && hasMark(string(environ), match) {
			roots[p.PID] = true
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return append(found, supervisor.Below(all, roots)...)
}

// hasMark reports whether an environment, with NUL after each entry, has a matching mark.
func hasMark(environ string, match func(mark string) bool) bool {
	for entry := range strings.SplitSeq(environ, "\x00") {
		if mark, ok := strings.CutPrefix(entry, MarkVariable+"="); ok && match(mark) {
			return true
		}
	}
	return false
}

func hasSupervisor(processes []supervisor.Process) bool {
	return slices.ContainsFunc(processes, func(p supervisor.Process) bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
		return err == nil && strings.HasPrefix(string(line), supervisor.Name+"\x00")
	})
}

// killMarked kills the processes with a matching mark until none is left or the timeout
// is over, and returns how many are left. A process that forks and exits during a scan
// can be missed once, so two scans in a row must find nothing.
func killMarked(match func(mark string) bool, timeout time.Duration) int {
	find := func() []supervisor.Process { return marked(match) }
	empty := 0
	for end := time.Now().Add(timeout); ; time.Sleep(2 * time.Millisecond) {
		frozen := supervisor.Freeze(find)
		if len(frozen) > 0 {
			empty = 0
		} else if empty++; empty == 2 {
			return 0
		}
		if time.Now().After(end) {
			return len(frozen)
		}
		for pid := range frozen {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// KillFormer returns when no process with a mark of an earlier host is alive, and how
// many could not be killed. Supervisors that are alive get killTimeout to do it: their
// host is dead, so they are killing already, and they know all their descendants. Then
// KillFormer kills the remaining ones.
func KillFormer(former func(mark string) bool) int {
	for end := time.Now().Add(killTimeout); hasSupervisor(marked(former)) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return killMarked(former, killTimeout)
}
