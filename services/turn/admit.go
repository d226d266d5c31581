package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
)

// unadmitted reports whether the subscribers of before_step still decide about
// the turn.
func (p *Progress) unadmitted(s *State) bool {
	return !p.Resumed && p.Skip == "" && p.Admitted == nil && s.hooked(hookpoint.BeforeStep) &&
		s.Snapshot.GetHooks().GetReviewedTurn() != p.Number
}

// admit fires before_step and stores what its subscribers make of the turn.
func (p *Progress) admit(s *State) Action {
	e := p.execution.admission
	if e == nil {
		return s.fire(p.Number, hookpoint.BeforeStep, "step", "", nil)
	}
	admitted := admissionOf(*e)
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_TurnAdmitted{TurnAdmitted: admitted}})
	d.Emit(e.Events...)
	if admitted.GetAction() != harnessv1.HookAction_HOOK_ACTION_PAUSE {
		d.Emit(event.StepStart(max(p.Attempts, 1), false))
	}
	d.GuideNotes(e.Notes)
	return Append{Draft: d, Before: "asked", After: "admitted"}
}

// admissionOf returns the verdict of the subscribers of before_step: the strongest
// action, and their changes to the rest of the loop.
func admissionOf(e hook.Effects) *harnessv1.TurnAdmitted {
	a := &harnessv1.TurnAdmitted{Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE}
	rest := hook.Effects{Skip: e.Skip, Replan: e.Replan}
	switch {
	case e.Abort != "":
		a.Action, a.Reason = harnessv1.HookAction_HOOK_ACTION_ABORT, e.Abort
	case e.Pause != "":
		a.Action, a.Reason = harnessv1.HookAction_HOOK_ACTION_PAUSE, e.Pause
	case e.Skip != "":
		a.Action, a.Reason, rest.Skip = harnessv1.HookAction_HOOK_ACTION_SKIP, e.Skip, ""
	case e.Replan != "":
		a.Action, a.Reason, rest.Replan = harnessv1.HookAction_HOOK_ACTION_REPLAN, e.Replan, ""
	}
	a.Hooks = rest.Wants()
	return a
}
