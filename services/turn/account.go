package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Bounds of what the state remembers.
const (
	maxFired = 128
	maxTold  = 16
)

// opened notes what the turn began with: rules that fired, what the model was shown.
func (c *completing) opened() {
	s, first := c.s, c.p.opened
	for _, call := range c.p.approved {
		if c.p.Started[call.GetCallId()] {
			runstate.CountActivity(s, call)
		}
	}
	if !c.p.Resumed && c.p.Skip == "" {
		s.ToldTurn = max(s.GetToldTurn(), c.p.Number)
	}
	if len(first.GetFiredRules()) > 0 {
		if s.Jit == nil {
			s.Jit = &harnessv1.JitState{}
		}
		s.Jit.Fired = lastOf(append(s.Jit.Fired, first.GetFiredRules()...), maxFired)
	}
	if first.GetItemsShown() != 0 {
		s.ItemsShown, s.ItemsShownTurn = first.GetItemsShown(), c.p.Number
	}
	s.ToldControls = lastOf(append(s.ToldControls, first.GetToldControls()...), maxTold)
	if files := first.GetInstructionFiles(); len(files) > 0 {
		s.InstructionFiles = slices.DeleteFunc(slices.Clone(files), func(f *harnessv1.FileDigest) bool { return f.GetPath() == "" })
	}
	if first.GetFilesChanged() > 0 {
		runstate.OwnActivity(s).FilesChanged = first.GetFilesChanged()
	}
	if s.Hooks != nil && c.p.Skip != "" {
		s.Hooks.SkipNext = ""
	}
	switch a := c.p.Admitted; a.GetAction() {
	case harnessv1.HookAction_HOOK_ACTION_PAUSE:
		runstate.NoteHook(s, "", a.GetReason(), "")
		s.Hooks.ReviewedTurn = c.p.Number
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		runstate.NoteHook(s, "", "", a.GetReason())
	}
	if w := c.p.wants; w != nil {
		runstate.NoteHook(s, w.GetSkipNext(), w.GetPause(), w.GetReplan())
	}
}

// activity notes what the calls of the response do.
func (c *completing) activity() {
	s := c.s
	for _, call := range c.p.Prepared {
		runstate.CountToolUse(s, Canonical(call.GetTool()), call.GetOffered())
		if Hookable(call) && call.GetDisposition() != harnessv1.CallDisposition_CALL_DISPOSITION_ASK { // that may never run
			runstate.CountActivity(s, call)
		}
	}
	if len(c.p.items) > 0 {
		workitem.Upsert(runstate.OwnLedger(s), c.p.items)
	}
}

// outcomes notes the results of this step for the detection of loops and stalls.
func (c *completing) outcomes(end Ending) {
	s := c.s
	fresh := map[uint64]bool{}
	for _, r := range c.inOrder() {
		strict, loose := progress.Signature(r.tool, content.Key(c.p.written[r.call]), r.digest)
		known := fresh[strict] || slices.Contains(s.GetDoomLoop().GetStrict(), strict) || end.Seen != nil && end.Seen(strict)
		fresh[strict] = true
		runstate.RecordOutcome(s, r.tool, strict, loose, !known)
	}
}

// inOrder are the results of this step in the order of their calls: which of two that
// ran beside each other ended first says nothing.
func (c *completing) inOrder() []answered {
	place := map[string]int{}
	for i, call := range c.p.Response.GetCalls() {
		place[call.GetCallId()] = i
	}
	for i, call := range c.p.Calls {
		if _, known := place[call.ID]; !known {
			place[call.ID] = i
		}
	}
	results := slices.Clone(c.p.results)
	for _, call := range c.p.Calls { // repair answers it; that nobody knows is news too
		if c.p.Finished[call.ID] == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			results = append(results, answered{call: call.ID, tool: call.Tool, digest: "unknown"})
		}
	}
	slices.SortStableFunc(results, func(a, b answered) int { return place[a.call] - place[b.call] })
	return results
}

func lastOf(list []string, n int) []string {
	return list[max(0, len(list)-n):]
}

// Afterwards takes what subscribers of after_step said into the outcome of a turn.
func Afterwards(o *harnessv1.Outcome, p *Progress, r hook.Result) {
	s, complete := o.GetStep().GetSnapshot(), o.GetStep().GetTurnComplete()
	for _, e := range r.Events {
		o.Events = append(o.Events, event(s, p, e))
	}
	for _, n := range r.Context {
		o.Appended = append(o.Appended, runstate.AppendMessages(s, p.Number, guidance(p.Number, n.Text))...)
		o.Events = append(o.Events, event(s, p, runstate.Guided("hook", n.HookID, n.Text)))
	}
	runstate.NoteHook(s, r.Skip, r.Pause, r.Replan)
	if r.Action == harnessv1.HookAction_HOOK_ACTION_ABORT && complete.GetError() == nil {
		complete.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, Message: agent.Aborted(r)}
		o.GetStep().To = workflow.StopDecision
	}
}
