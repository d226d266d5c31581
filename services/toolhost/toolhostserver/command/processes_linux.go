package command

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is an entry of the process table.
type process struct {
	pid, parent int
	name        string
}

// alive lists the processes that are not zombies. It skips those that end meanwhile.
func alive() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if p, ok := parseStat(pid, string(stat)); ok {
			all = append(all, p)
		}
	}
	return all
}

// parseStat parses /proc/pid/stat: pid (name) state parent …; the name may contain any
// characters, also parentheses.
func parseStat(pid int, stat string) (process, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid: pid, parent: parent, name: stat[open+1 : end]}, err == nil
}

// descendants lists the processes of which pid is an ancestor.
func descendants(pid int) []process {
	return below(alive(), map[int]bool{pid: true})
}

// below lists the processes with an ancestor in roots, without the roots.
func below(all []process, roots map[int]bool) []process {
	children := make(map[int][]process)
	var open, found []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if roots[p.pid] {
			open = append(open, p)
		}
	}
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		for _, child := range children[p.pid] {
			if !roots[child.pid] {
				found = append(found, child)
				open = append(open, child)
			}
		}
	}
	return found
}

// marked lists the processes with a matching mark in their environment, and all their
// descendants. This process is never among them.
func marked(match func(mark string) bool) []process {
	all := alive()
	roots := make(map[int]bool)
	var found []process
	for _, p := range all {
		if p.pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err == nil && hasMark(string(environ), match) {
			roots[p.pid] = true
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return append(found, below(all, roots)...)
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

// hasSupervisor reports whether one of the processes is a supervisor.
func hasSupervisor(processes []process) bool {
	return slices.ContainsFunc(processes, func(p process) bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		return err == nil && strings.HasPrefix(string(line), supervisorName+"\x00")
	})
}

// freeze stops the processes that find returns until there are no new ones, so that
// none can fork while they are killed. It returns their names by pid.
func freeze(find func() []process) map[int]string {
	frozen := make(map[int]string)
	const rounds = 200 // the caller repeats this, in case of a fork bomb
	for range rounds {
		fresh := false
		for _, p := range find() {
			if _, done := frozen[p.pid]; !done && unix.Kill(p.pid, unix.SIGSTOP) == nil {
				frozen[p.pid] = p.name
				fresh = true
			}
		}
		if !fresh {
			break
		}
	}
	return frozen
}

// killMarked kills the processes with a matching mark until none is left or the timeout
// is over, and returns how many are left. A process that forks and exits during a scan
// can be missed once, so two scans in a row must find nothing.
func killMarked(match func(mark string) bool, timeout time.Duration) int {
	find := func() []process { return marked(match) }
	empty := 0
	for end := time.Now().Add(timeout); ; time.Sleep(2 * time.Millisecond) {
		frozen := freeze(find)
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
// KillFormer kills what is left.
func KillFormer(former func(mark string) bool) int {
	for end := time.Now().Add(killTimeout); hasSupervisor(marked(former)) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return killMarked(former, killTimeout)
}
