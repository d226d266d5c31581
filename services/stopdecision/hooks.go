package stopdecision

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// hooksGate asks the subscribers of agent_stop. The first that blocks decides.
func (d *deciding) hooksGate() (decided bool, err error) {
	result, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, "stop", d.stateForHooks())
	if err != nil {
		return false, err
	}
	switch {
	case result.Action == harnessv1.HookAction_HOOK_ACTION_BLOCK:
		text := "The work is not accepted as done: " + cmp.Or(result.Reason, "a check of this installation objects.") +
			"\nDo what it asks for, then call work_complete again."
		return true, d.reject(rejectedHook, text, nil)
	case result.Action == harnessv1.HookAction_HOOK_ACTION_ABORT:
		if err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "turn", map[string]any{"error": agent.Aborted(result)}); err != nil {
			return false, err
		}
		return true, d.end(harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, "failed", agent.Aborted(result), false)
	case result.Pause != "" && d.s.GetHooks().GetReviewedStop() != d.turn.GetTurnNumber():
		d.s.Hooks.ReviewedStop = d.turn.GetTurnNumber()
		return true, d.parkForReview(result.Pause)
	case result.Replan != "":
		return true, d.goOn()
	}
	return false, nil
}

// fire calls the subscribers of a topic whose word changes nothing here.
func (d *deciding) fire(topic harnessv1.HookTopic, key string, payload map[string]any) error {
	_, err := d.call(topic, key, payload)
	return err
}

// call calls the subscribers of a topic. What they want of the rest of the loop is
// noted in the state, what they tell the model is appended.
func (d *deciding) call(topic harnessv1.HookTopic, key string, payload map[string]any) (hook.Result, error) {
	if !d.s.GetConfig().GetHooks().GetEnabled() || !d.made.Hooks.Any(topic) {
		return hook.Result{}, nil
	}
	result, err := agent.Fire(d.made.Hooks, d.in, hook.Point{
		Topic: topic, Turn: d.turn.GetTurnNumber(), Payload: runstate.HookPayload(d.s, payload),
		Key: strconv.FormatUint(d.in.GetVersion(), 10) + "/" + key,
	})
	if err != nil {
		return result, err
	}
	for _, e := range result.Events {
		d.emit(e)
	}
	runstate.NoteHook(d.s, result.Skip, result.Pause, result.Replan)
	for _, note := range result.Context {
		d.guide("hook", note.HookID, note.Text)
	}
	return result, nil
}

func statusName(s harnessv1.RunStatus) string {
	return strings.TrimPrefix(s.String(), "RUN_STATUS_")
}
