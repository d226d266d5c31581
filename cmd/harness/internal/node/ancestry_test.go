package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
)

// TestProcessesOfRunsAreRecognisedByTheirLine: 1 is init, 10 a terminal, 20 the node, 30
// the supervisor of a command with the processes 31 and 32; 50 is the supervisor of a
// command of another node.
func TestProcessesOfRunsAreRecognisedByTheirLine(t *testing.T) {
	table := map[int]ancestor{
		1: {0, "init", ""}, 10: {1, "sh", ""}, 20: {10, "harness", ""},
		30: {20, supervisor.Name, ""}, 31: {30, "sh", "r.1"}, 32: {31, "harness", ""},
		40: {10, "harness", ""}, 41: {1, "harness", ""},
		42: {1, "harness", "r.1"}, // left by a supervisor that was killed
		50: {40, supervisor.Name, ""}, 51: {50, "sh", ""},
		60: {61, "x", ""}, 61: {60, "y", ""}, // a table that changes while it is read
	}
	read := func(pid int) (ancestor, error) {
		if a, ok := table[pid]; ok {
			return a, nil
		}
		return ancestor{}, errors.New("no such process")
	}
	own := newOwnLine(20, read)
	for pid, want := range map[int]string{
		20: "", 10: "", 40: "", 41: "", 1: "", 0: "",
		30: "command of a run", 31: "command of a run", 32: "command of a run", 42: "command of a run", 51: "command of a run",
		60: "cannot be read", 99: "cannot be read",
	} {
		err := own.admit(pid, read)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("process %d: %v, want %q", pid, err, want)
		}
	}
}

// TestLineIsReadAgainWhenAnAncestorEnds: its children have another parent then.
func TestLineIsReadAgainWhenAnAncestorEnds(t *testing.T) {
	reads := 0
	read := func(pid int) (ancestor, error) {
		switch reads++; {
		case pid == 31 && reads <= 2:
			return ancestor{parent: 30}, nil
		case pid == 30:
			return ancestor{}, errors.New("no such process")
		}
		return ancestor{parent: 10}, nil
	}
	own := ownLine{pids: map[int]bool{10: true}}
	if err := own.admit(31, read); err != nil {
		t.Error(err)
	}
}

// TestNodeInsideACommandAdmitsItsNeighbours: a node that a command of another node has
// started, as tests of this program do, shares that supervisor and its mark.
func TestNodeInsideACommandAdmitsItsNeighbours(t *testing.T) {
	table := map[int]ancestor{
		1: {0, "init", ""}, 10: {1, supervisor.Name, ""}, 11: {10, "sh", "outer.1"},
		20: {11, "harness", "outer.1"}, 21: {11, "harness", "outer.1"},
		30: {20, supervisor.Name, "outer.1"}, 31: {30, "sh", "inner.1"}, 32: {1, "sh", "inner.1"},
	}
	read := func(pid int) (ancestor, error) { return table[pid], nil }
	own := newOwnLine(20, read)
	if err := own.admit(21, read); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{30, 31, 32} {
		if own.admit(pid, read) == nil {
			t.Errorf("process %d of a run is admitted", pid)
		}
	}
}
