package toolhostserver

import (
	"cmp"
	"encoding/json"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// shownCommand bounds the text of a command that a hand-over waits for, in bytes.
const shownCommand = 200

// Pause keeps new calls from starting, as Drain does, if no command runs, and returns nil.
// Otherwise it returns the commands that run, those in the background included, sorted by
// run and text, and changes nothing. Calls that are no commands continue.
func (s *Server) Pause() []*harnessv1.LocalCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running []*harnessv1.LocalCommand
	add := func(run, line string) {
		namespace, id := ledger.RunParts(run)
		running = append(running, &harnessv1.LocalCommand{
			Run: &harnessv1.LocalRun{Namespace: namespace, RunId: id}, Command: toolhost.Clip(line, shownCommand),
		})
	}
	for _, c := range s.calls {
		if c.commandLine != "" {
			add(c.run, c.commandLine)
		}
	}
	for _, l := range s.backgrounds.Lines() {
		add(l.Run, l.Text)
	}
	if len(running) == 0 {
		s.draining = true
	}
	slices.SortFunc(running, func(a, b *harnessv1.LocalCommand) int {
		return cmp.Or(cmp.Compare(a.GetRun().GetRunId(), b.GetRun().GetRunId()), cmp.Compare(a.GetCommand(), b.GetCommand()))
	})
	return running
}

// Continue ends a Pause.
func (s *Server) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = false
}

// commandOf returns the command line of a call that executes; the tool's name if it has
// none.
func commandOf(name, arguments string) string {
	var a struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(arguments), &a) // a call without a command has its name
	return cmp.Or(a.Command, name)
}
