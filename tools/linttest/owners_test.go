package linttest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWritesToFieldsOfOtherOwnersAreReported writes a snapshot in each way that ./owners knows, from a package
// that owns the field and from one that does not.
func TestWritesToFieldsOfOtherOwnersAreReported(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module "+module+"\n\ngo 1.26\n")
	write(t, dir, "pkg/gen/harness/v1/snapshot.go", `package harnessv1

type Turn struct{ Open bool }

type Snapshot struct {
	Turn  *Turn
	Calls []*Turn
	Count uint32
	Free  bool
}

func (s *Snapshot) GetTurn() *Turn    { return s.Turn }
func (s *Snapshot) GetCalls() []*Turn { return s.Calls }
`)
	write(t, dir, "pkg/runstate/owner.go", `package runstate

import v1 "`+module+`/pkg/gen/harness/v1"

// Turn is a view.
//
//snapshot:writers services/turn
type TurnFields interface {
	GetTurn() *v1.Turn
	GetCalls() []*v1.Turn
	// GetCount has another writer.
	//
	//snapshot:writers services/stop
	GetCount() uint32
}

func Rule(s *v1.Snapshot) { s.Turn, s.Count = nil, 0 }
`)
	const body = `

import v1 "` + module + `/pkg/gen/harness/v1"

func Write(s *v1.Snapshot, step struct{ S *v1.Snapshot }) {
	s.Turn = nil
	step.S.Turn.Open = true
	s.GetTurn().Open = true
	s.Calls[0] = nil
	for _, c := range s.GetCalls() {
		c.Open = true
	}
	t := s.GetTurn()
	t.Open = true
	set(&s.Turn)
	_ = &v1.Snapshot{Turn: t}
	_ = s.GetTurn().Open
}

func set(**v1.Turn) {}
`
	write(t, dir, "services/turn/shell/turn.go", "package shell"+body)
	write(t, dir, "services/stop/stop.go", "package stop"+body+"\nfunc Count(s *v1.Snapshot) { s.Count++ }\n\nfunc Free(s *v1.Snapshot) { s.Free = true }\n")
	write(t, dir, "services/stop/view.go", "package stop\n\nimport \""+module+"/pkg/runstate\"\n\nfunc Open(v runstate.TurnFields) { v.GetTurn().Open = true }\n")
	write(t, dir, "services/turn/count.go", "package turn\n\nimport v1 \""+module+"/pkg/gen/harness/v1\"\n\nfunc Count(s *v1.Snapshot) { s.Count++ }\n")
	write(t, dir, "cmd/main.go", "package main\n\nfunc main() {}\n")

	cmd := exec.Command("go", "run", "./owners", dir)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err == nil {
		t.Error("the check passes")
	}
	const turn, count, free = "field Turn of the snapshot is written by services/turn only", "field Count of the snapshot is written by services/stop only", "field Free of the snapshot has no owner: add its getter to a view"
	calls := strings.Replace(turn, "Turn", "Calls", 1)
	want := []string{
		"services/stop/stop.go:6: " + turn,
		"services/stop/stop.go:7: " + turn,
		"services/stop/stop.go:8: " + turn,
		"services/stop/stop.go:9: " + calls,
		"services/stop/stop.go:11: " + calls,
		"services/stop/stop.go:14: " + turn,
		"services/stop/stop.go:15: " + turn,
		"services/stop/stop.go:16: " + turn,
		"services/stop/stop.go:24: " + free,
		"services/stop/view.go:5: " + turn,
		"services/turn/count.go:5: " + count,
	}
	slices.Sort(want)
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		t.Errorf("reported\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
