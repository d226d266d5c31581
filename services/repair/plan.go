package repair

import (
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// openSegment begins the work on a user message.
func (r *repairing) openSegment(whole string) error {
	runstate.OpenSegment(r.s)
	goal := content.Cut(whole, content.MaxPreview)
	r.s.GoalPreview = goal
	if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_START); err != nil {
		return err
	}
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{
		Goal: goal, Model: r.s.GetModel(), Workflow: r.s.GetWorkflow(), Segment: r.s.GetSegment(),
	}}})
	if _, err := r.call(harnessv1.HookTopic_HOOK_TOPIC_SESSION_START, "", "", map[string]any{
		"goal": goal, "segment": int64(r.s.GetSegment()),
	}); err != nil {
		return err
	}
	r.goal = content.Cut(whole, maxPlan)
	if r.s.Goal = nil; r.goal != goal {
		r.s.Goal = content.Inline(r.goal)
	}
	return r.makePlan(r.goal)
}

// makePlan drafts a plan and commits it. Without a planner the plan is the goal
// itself; subscribers may put another in its place. An empty one ends the run.
func (r *repairing) makePlan(plan string) error {
	for r.drafts = 1; ; r.drafts++ {
		err := r.draftPlan(plan)
		again := r.s.GetHooks().GetReplan()
		if err != nil || r.failure != nil || again == "" {
			return err
		}
		// A subscriber that is never content does not keep the work from beginning.
		r.s.Hooks.Replan = ""
		if r.drafts == maxDrafts {
			return nil
		}
		if err := r.enterPlanning(); err != nil {
			return err
		}
	}
}

// maxDrafts bounds how often a plan is made anew because its subscribers want it.
const maxDrafts = 3

// enterPlanning takes the phase back to where plans are made, from between two turns.
func (r *repairing) enterPlanning() error {
	for _, input := range []harnessv1.PhaseInput{harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED, harnessv1.PhaseInput_PHASE_INPUT_REPLAN} {
		if err := r.enter(input); err != nil {
			return err
		}
	}
	return nil
}

// draftPlan drafts a plan and commits it.
func (r *repairing) draftPlan(plan string) error {
	plan, done, err := r.plan(harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN, plan)
	if done || err != nil {
		return err
	}
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_PlanDraft{PlanDraft: &harnessv1.PlanDraft{Plan: plan}}})
	if plan, done, err = r.plan(harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN, plan); done || err != nil {
		return err
	}
	if strings.TrimSpace(plan) == "" {
		r.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_NO_PLAN, "There is no plan to carry out.")
		return nil
	}
	if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_PLAN_COMMITTED); err != nil {
		return err
	}
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_PlanCommit{PlanCommit: &harnessv1.PlanCommit{Plan: plan}}})
	if plan != r.s.GetGoalPreview() && plan != r.goal {
		r.guide("plan", "", "The plan for this work:\n"+plan)
	}
	return nil
}

// plan calls the subscribers around a plan. done says that the plan came to nothing.
func (r *repairing) plan(topic harnessv1.HookTopic, plan string) (after string, done bool, err error) {
	result, err := r.call(topic, "draft "+strconv.Itoa(r.drafts), "", map[string]any{"plan": plan})
	switch {
	case err != nil:
		return plan, false, err
	case result.Action == harnessv1.HookAction_HOOK_ACTION_ABORT:
		r.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, agent.Aborted(result))
		return plan, true, nil
	}
	if text, ok := result.Payload["plan"].(string); ok && result.Replaced {
		plan = content.Cut(text, maxPlan)
	}
	return plan, false, nil
}

// maxPlan bounds a plan, in bytes: it stands in events and in a message.
const maxPlan = 16 << 10

// replan makes another plan, as was asked for. A request that came in between two
// turns takes the phase back to where plans are made.
func (r *repairing) replan() error {
	if r.s.GetPhase() == harnessv1.Phase_PHASE_EXECUTING {
		if err := r.enterPlanning(); err != nil {
			return err
		}
	}
	reason := r.s.GetHooks().GetReplan()
	if r.s.Hooks != nil {
		r.s.Hooks.Replan = ""
	}
	plan := r.s.GetGoalPreview()
	if r.s.GetGoal() != nil {
		var err error
		if plan, err = r.whole(r.s.GetGoal()); err != nil {
			return err
		}
	}
	r.goal = plan
	if reason != "" {
		plan += "\nThe plan is made anew because: " + reason
	}
	return r.makePlan(plan)
}

// call calls the subscribers of a topic. key tells what it is about from other
// firings of the same record. What they want of the rest of the loop is noted in the
// state, what they tell the model is appended.
func (r *repairing) call(topic harnessv1.HookTopic, key, tool string, payload map[string]any) (hook.Result, error) {
	if !r.listens(topic) {
		return hook.Result{}, nil
	}
	result, err := agent.Fire(r.made.Hooks, r.in, hook.Point{
		Topic: topic, Turn: r.turn(), Tool: tool, Payload: runstate.HookPayload(r.s, payload),
		Key: strconv.FormatUint(r.in.GetVersion(), 10) + "/" + strconv.FormatUint(uint64(r.s.GetSegment()), 10) + "/" + key,
	})
	if err != nil {
		return result, err
	}
	for _, e := range result.Events {
		r.emit(e)
	}
	r.heard += len(result.Events)
	runstate.NoteHook(r.s, result.Skip, result.Pause, result.Replan)
	r.notes = append(r.notes, result.Context...)
	return result, nil
}

// listens says whether anybody subscribes to a topic.
func (r *repairing) listens(topic harnessv1.HookTopic) bool {
	return r.s.GetConfig().GetHooks().GetEnabled() && r.made.Hooks.Any(topic)
}

// whole is a text wherever it is; one that is stored elsewhere has to be read first.
func (r *repairing) whole(c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	seen := agent.Observation(r.in, NeedText+ref.GetDigest())
	if seen == nil {
		return "", &agent.NeedsError{Keys: []string{NeedText + ref.GetDigest()}}
	}
	return content.Text(seen.GetContext().GetText()), nil
}

// say appends what hooks told the model, behind everything else of this record.
func (r *repairing) say() {
	for _, note := range r.notes {
		r.guide("hook", note.HookID, note.Text)
	}
}

// guide tells the model something.
func (r *repairing) guide(kind, rule, text string) {
	r.append(r.turn(), runstate.Guidance(text))
	r.emit(runstate.Guided(kind, rule, text))
}

// fail gives the run up: the stop decision, which alone ends runs, gets it.
func (r *repairing) fail(kind harnessv1.TurnErrorKind, message string) {
	if r.failure == nil {
		r.failure = &harnessv1.TurnError{Kind: kind, Message: message}
	}
}
