package toolhostserver

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a line of the process table.
type process struct {
	pid, parent int
	name        string
}

// alive lists the processes that are not zombies. Those that end while it looks
// are left out.
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

// parseStat reads /proc/pid/stat: pid (name) state parent …; the name may hold
// anything, parentheses too.
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

// descendants are the processes of which pid is an ancestor.
func descendants(pid int) []process {
	return below(alive(), map[int]bool{pid: true})
}

// below are the processes with an ancestor in roots, the roots not among them.
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

// marked are the processes whose environment carries such a mark, and all below
// them; never this process.
func marked(match func(mark string) bool) []process {
	all := alive()
	roots := make(map[int]bool)
	var found []process
	for _, p := range all {
		if p.pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err == nil && carries(string(environ), match) {
			roots[p.pid] = true
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return append(found, below(all, roots)...)
}

// carries says that an environment, NUL after each entry, has such a mark.
func carries(environ string, match func(mark string) bool) bool {
	for entry := range strings.SplitSeq(environ, "\x00") {
		if mark, is := strings.CutPrefix(entry, markVariable+"="); is && match(mark) {
			return true
		}
	}
	return false
}

// supervised says that one of the processes is a supervisor.
func supervised(all []process) bool {
	return slices.ContainsFunc(all, func(p process) bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		return err == nil && strings.HasPrefix(string(line), supervisorName+"\x00")
	})
}

// freeze stops what find finds until it finds nothing new, so that nothing
// forks away while it is being killed.
func freeze(find func() []process) map[int]string {
	frozen := make(map[int]string)
	const rounds = 200 // a fork bomb that wins this long is met again by the caller
	for range rounds {
		fresh := false
		for _, p := range find() {
			if _, has := frozen[p.pid]; !has && unix.Kill(p.pid, unix.SIGSTOP) == nil {
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

// sweep kills what carries such a mark, until nothing is left or patience is
// over, and returns how many are left. A process that forks and ends just as it
// looks can hide from it once, so it looks twice before it believes that.
func sweep(match func(mark string) bool, patience time.Duration) int {
	find := func() []process { return marked(match) }
	empty := 0
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
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

// awaitFormerLife returns when nothing with a mark of earlier hosts is alive, and
// how many could not be killed. Supervisors that live are killing it already, as
// their host is dead, and know best what belongs to them; what they do not
// manage and what has none any more is killed here.
func awaitFormerLife(former func(mark string) bool) int {
	for end := time.Now().Add(killGrace); supervised(marked(former)) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return sweep(former, killGrace)
}
