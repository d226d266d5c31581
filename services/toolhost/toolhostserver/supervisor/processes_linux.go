package supervisor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is an entry of the process table.
type Process struct {
	PID, Parent int
	Name        string
}

// Alive lists the processes that are not zombies. It skips those that end meanwhile.
func Alive() []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var all []Process
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
func parseStat(pid int, stat string) (Process, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return Process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return Process{PID: pid, Parent: parent, Name: stat[open+1 : end]}, err == nil
}

// descendants lists the processes of which pid is an ancestor.
func descendants(pid int) []Process {
	return Below(Alive(), map[int]bool{pid: true})
}

// Below lists the processes with an ancestor in roots, without the roots.
func Below(all []Process, roots map[int]bool) []Process {
	children := make(map[int][]Process)
	var open, found []Process
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
		if roots[p.PID] {
			open = append(open, p)
		}
	}
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		for _, child := range children[p.PID] {
			if !roots[child.PID] {
				found = append(found, child)
				open = append(open, child)
			}
		}
	}
	return found
}

// Freeze stops the processes that find returns until there are no new ones, so that
// none can fork while they are killed. It returns their names by pid.
func Freeze(find func() []Process) map[int]string {
	frozen := make(map[int]string)
	const rounds = 200 // the caller repeats this, in case of a fork bomb
	for range rounds {
		fresh := false
		for _, p := range find() {
			if _, done := frozen[p.PID]; !done && unix.Kill(p.PID, unix.SIGSTOP) == nil {
				frozen[p.PID] = p.Name
				fresh = true
			}
		}
		if !fresh {
			break
		}
	}
	return frozen
}
