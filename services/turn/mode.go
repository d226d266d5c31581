package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// ModeAfter returns the mode of work of a run after the changes, in their order, that its
// inbox asks for. It is empty if none of them changes the mode. Repair refuses a change to a
// mode that the agent does not have, so that one has no effect here either, and a run whose parent is in plan mode
// stays in it.
func ModeAfter(s runstate.DefinitionFields, definition *agent.Definition, changes []string) string {
	after := runstate.Mode(s)
	for _, to := range changes {
		if mode.Exists(to, definition.Modes) {
			after = to
		}
	}
	if len(changes) == 0 || s.GetParent().GetPlans() || after == runstate.Mode(s) {
		return ""
	}
	return after
}

// blocks reports whether the mode of work does not allow a call that a tool host runs.
func (p *Progress) blocks(s *State, c toolcall.Call) bool {
	return p.offer(s).Blocked[harnesstool.CanonicalName(c.Tool)]
}

// block answers a call that has not started and that the mode of work does not allow.
func (p *Progress) block(s *State, c toolcall.Call) Action {
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{
		CallId: c.ID, Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED,
	}}})
	text := mode.BlockedText(p.mode(s), harnesstool.CanonicalName(c.Tool))
	result := toolcall.Result(c.ID, c.Tool, text, true)
	mark.Result(result, c.Marks, text, nil)
	d.Append(result)
	d.Emit(event.ToolDenied(c.ID, c.Tool, text))
	return Append{Draft: d, After: "tool_finished"}
}
