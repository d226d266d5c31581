package node

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// ancestor describes a process of the peer's line.
type ancestor struct {
	parent int
	// program is argv[0].
	program string
	// mark is the value of process.MarkVariable in its environment; empty if it has none
	// or cannot be read.
	mark string
}

// maxAncestors bounds a line of processes, which may change while it is read.
const maxAncestors = 1 << 12

// ownLine is this process and its ancestors. A command of another node, in which this
// node runs itself, is not a command of a run here.
type ownLine struct {
	pids map[int]bool
	mark string
}

// newOwnLine reads the ancestors of this process.
func newOwnLine(pid int, read func(pid int) (ancestor, error)) ownLine {
	line := ownLine{pids: map[int]bool{}}
	for range maxAncestors {
		if pid <= 0 || line.pids[pid] {
			break
		}
		line.pids[pid] = true
		a, err := read(pid)
		if err != nil {
			break
		}
		if line.mark == "" {
			line.mark = a.mark
		}
		pid = a.parent
	}
	return line
}

// admit returns an error if a process descends from a supervised command of a run. A
// command that leaves its supervisor by a double fork is adopted by it, so its line leads
// there. A process outside of this node's PID namespace, 0, is no descendant.
func (own ownLine) admit(pid int, read func(pid int) (ancestor, error)) error {
	for range lineTries {
		supervised, err := own.descends(pid, read)
		switch {
		case err != nil:
			continue
		case supervised:
			return fmt.Errorf("process %d cannot use the local socket: it descends from a command of a run, and runs cannot start, answer, approve or read runs; call it from a terminal", pid)
		}
		return nil
	}
	return fmt.Errorf("process %d cannot use the local socket: its ancestors cannot be read, and commands of runs have no access", pid)
}

// lineTries is how often a line is read: an ancestor may end while it is read.
const lineTries = 3

// descends reports whether a supervised command is in the line of a process.
func (own ownLine) descends(pid int, read func(pid int) (ancestor, error)) (bool, error) {
	for n := 0; pid > 0 && !own.pids[pid]; n++ {
		a, err := read(pid)
		switch {
		case err != nil:
			return false, err
		case n == maxAncestors:
			return false, errors.New("the line has no end")
		case a.program == supervisor.Name || a.mark != "" && a.mark != own.mark:
			return true, nil
		}
		pid = a.parent
	}
	return false, nil
}

// markPrefix begins the entry of a mark in an environment.
const markPrefix = process.MarkVariable + "="
