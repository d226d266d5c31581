package toolhostserver

import (
	"bytes"
	"os"
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

// marked are the processes whose environment carries a mark that begins so, and
// all below them; never this process.
func marked(prefix string) []process {
	entry := []byte(markVariable + "=" + prefix)
	all := alive()
	roots := make(map[int]bool)
	var found []process
	for _, p := range all {
		if p.pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err != nil {
			continue
		}
		if bytes.HasPrefix(environ, entry) || bytes.Contains(environ, append([]byte{0}, entry...)) {
			roots[p.pid] = true
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return append(found, below(all, roots)...)
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

// sweep kills what carries a mark that begins so, until nothing is left or
// patience is over, and returns how many are left.
func sweep(prefix string, patience time.Duration) int {
	find := func() []process { return marked(prefix) }
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		frozen := freeze(find)
		if len(frozen) == 0 || time.Now().After(end) {
			return len(frozen)
		}
		for pid := range frozen {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// awaitFormerLife returns when no command of an earlier host on this ledger is
// alive, and how many could not be killed. Their supervisors are killing them
// already, as the earlier host is dead; what they do not manage is killed here.
func awaitFormerLife(ledgerID string) int {
	for end := time.Now().Add(killGrace); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if len(marked(ledgerID+".")) == 0 {
			return 0
		}
	}
	return sweep(ledgerID+".", killGrace)
}
