package repair

import (
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// openSegment starts the work on a user message.
func (d *decision) openSegment(message string) error {
	if d.work == nil {
		var err error
		if d.work, err = d.classify(message, d.s.GetSegment()+1, d.kinds()); err != nil {
			return err
		}
	}
	runstate.OpenSegment(d.s)
	tree.StartSegment(d.s)
	d.Turn = presentTurn(d.s)
	preview := content.Cut(message, content.MaxPreview)
	d.s.GoalPreview = preview
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_START); err != nil {
		return err
	}
	d.Emit(event.SessionStart(preview, d.s.GetModel(), d.s.GetWorkflow(), d.s.GetSegment(), d.caller))
	if _, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_SESSION_START, "", "", map[string]any{
		"goal": preview, "segment": int64(d.s.GetSegment()),
	}); err != nil {
		return err
	}
	d.recordWork(d.work)
	if d.s.GetSegment() > 1 {
		if text := d.work.preamble(); text != "" {
			d.GuideOn("quality", "quality", "", text).Kept = d.Marks()
		}
	}
	d.goal = content.Cut(message, maxPlan)
	if d.s.Goal = nil; d.goal != preview {
		d.s.Goal = content.Inline(d.goal)
	}
	plan := content.Cut(d.work.planText(), maxPlan)
	d.work = nil // another message of this decision begins other work
	if plan == "" {
		plan = d.goal
	}
	return d.makePlan(plan)
}

// maxDrafts bounds how often a plan is redrafted because its hooks want it.
const maxDrafts = 3

// makePlan drafts a plan and commits it. Without a planner the plan is the goal;
// hooks may replace it. An empty plan ends the run.
func (d *decision) makePlan(plan string) error {
	for d.drafts = 1; ; d.drafts++ {
		err := d.draftPlan(plan)
		again := d.s.GetHooks().GetReplan()
		if err != nil || d.failure != nil || again == "" {
			return err
		}
		d.s.Hooks.Replan = ""
		if d.drafts == maxDrafts {
			return nil // a hook that rejects every plan does not keep the work from starting
		}
		if err := d.enterPlanning(); err != nil {
			return err
		}
	}
}

// enterPlanning changes the phase from between two turns to planning.
func (d *decision) enterPlanning() error {
	for _, input := range []harnessv1.PhaseInput{harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED, harnessv1.PhaseInput_PHASE_INPUT_REPLAN} {
		if err := d.Enter(input); err != nil {
			return err
		}
	}
	return nil
}

// draftPlan drafts a plan once and commits it.
func (d *decision) draftPlan(plan string) error {
	plan, err := d.callAroundPlan(harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN, plan)
	if err != nil || d.failure != nil {
		return err
	}
	d.Emit(event.PlanDraft(plan))
	if plan, err = d.callAroundPlan(harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN, plan); err != nil || d.failure != nil {
		return err
	}
	if strings.TrimSpace(plan) == "" {
		d.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN, "There is no plan to carry out.")
		return nil
	}
	if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_PLAN_COMMITTED); err != nil {
		return err
	}
	d.Emit(event.PlanCommit(plan))
	if plan != d.s.GetGoalPreview() && plan != d.goal {
		d.GuideOn("plan", "plan", "", "The plan for this work:\n"+plan).Kept = d.Marks()
	}
	return nil
}

// maxPlan bounds a plan, in bytes: it is stored in events and in a message.
const maxPlan = 16 << 10

// callAroundPlan calls the hooks before or after a plan, and returns the plan
// with what they replaced. A hook that aborts fails the run.
func (d *decision) callAroundPlan(topic harnessv1.HookTopic, plan string) (string, error) {
	effects, err := d.call(topic, "draft "+strconv.Itoa(d.drafts), "", map[string]any{"plan": plan})
	if err != nil {
		return plan, err
	}
	if effects.Abort != "" {
		d.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, effects.Abort)
		return plan, nil
	}
	if text, ok := effects.Text("plan"); ok {
		plan = content.Cut(text, maxPlan)
	}
	return plan, nil
}

// replan makes another plan, as a hook or a user requested. A request between
// two turns first changes the phase back to planning.
func (d *decision) replan() error {
	if d.s.GetPhase() == harnessv1.Phase_PHASE_EXECUTING {
		if err := d.enterPlanning(); err != nil {
			return err
		}
	}
	reason := d.s.GetHooks().GetReplan()
	if d.s.Hooks != nil {
		d.s.Hooks.Replan = ""
	}
	plan := d.s.GetGoalPreview()
	if d.s.GetGoal() != nil {
		var err error
		if plan, err = d.text(d.s.GetGoal()); err != nil {
			return err
		}
	}
	d.goal = plan
	if reason != "" {
		plan += "\nThe plan is made anew because: " + reason
	}
	return d.makePlan(plan)
}
