package stopdecision

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// hooksGate calls the subscribers of agent_stop. The first that blocks decides.
func (d *decision) hooksGate() (decided bool, err error) {
	e, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, "stop", d.stopPayload())
	if err != nil {
		return false, err
	}
	if d.s.Hooks != nil {
		d.s.Hooks.FailedStop = content.Cut(e.FailedStop, content.MaxPreview)
	}
	switch {
	case e.Refused:
		text := "The work is not accepted as done: " + cmp.Or(e.Reason, "a check of this installation objects.") +
			"\nDo what it asks for, then call work_complete again."
		return true, d.reject(rejectedHook, text, nil)
	case e.Abort != "":
		if err := d.notify(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, "turn", map[string]any{"error": e.Abort}); err != nil {
			return false, err
		}
		return true, d.end(harnessv1.RunStatus_RUN_STATUS_FAILED, harnessv1.PhaseInput_PHASE_INPUT_FAIL, "failed", e.Abort, false)
	case e.Pause != "" && d.s.GetHooks().GetReviewedStop() != d.turn.GetTurnNumber():
		d.s.Hooks.ReviewedStop = d.turn.GetTurnNumber()
		return true, d.parkForReview(e.Pause)
	case e.Replan != "":
		return true, d.continueRun()
	}
	return false, nil
}

// stopPayload is the payload of agent_stop.
func (d *decision) stopPayload() map[string]any {
	finished, total := workitem.Counts(d.s.GetWorkItemLedger())
	cov := d.s.GetCoverageLedger().GetCoverage()
	unmet := []any{}
	for _, id := range cov.GetUnmet() {
		unmet = append(unmet, id)
	}
	return map[string]any{
		"turn_count":           int64(d.s.GetTurnCount()),
		"called_work_complete": d.turn.GetCalledWorkComplete(),
		"tool_usage":           toolUsage(d.s),
		"work_items":           map[string]any{"open": int64(total - finished), "finished": int64(finished), "total": int64(total)},
		"contract":             map[string]any{"met": int64(cov.GetMet()), "total": int64(cov.GetTotal()), "unmet": unmet},
		"summary":              content.Text(d.s.GetSummary()),
		"answer":               content.Text(d.s.GetAnswer()),
	}
}

// notify calls the subscribers of a topic whose verdicts decide nothing here.
func (d *decision) notify(topic harnessv1.HookTopic, key string, payload map[string]any) error {
	_, err := d.call(topic, key, payload)
	return err
}

// call calls the subscribers of a topic. What they want of later steps is recorded in
// the snapshot, and their notes are appended for the model.
func (d *decision) call(topic harnessv1.HookTopic, key string, payload map[string]any) (hook.Effects, error) {
	if !d.s.GetConfig().GetHooks().GetEnabled() || !d.definition.Hooks.Any(topic) {
		return hook.Effects{}, nil
	}
	result, err := agent.Fire(d.definition.Hooks, d.in, hook.Point{
		Topic: topic, Turn: d.turn.GetTurnNumber(), Payload: runstate.HookPayload(d.s, payload),
		Key: strconv.FormatUint(d.in.GetVersion(), 10) + "/" + key,
	})
	if err != nil {
		return hook.Effects{}, err
	}
	e := result.Effects()
	d.Apply(e)
	return e, nil
}

// failedHooks names the hooks that refused calls or the end of the work because they failed;
// it is empty if none did.
func (d *decision) failedHooks() string {
	var text string
	if why := d.s.GetHooks().GetFailedCall(); why != "" {
		text += " Calls were denied: " + why
	}
	if why := d.s.GetHooks().GetFailedStop(); why != "" {
		text += " The end of the work was blocked: " + why
	}
	return text
}

// statusName is a status as hooks see it, such as DONE.
func statusName(s harnessv1.RunStatus) string {
	return strings.TrimPrefix(s.String(), "RUN_STATUS_")
}
