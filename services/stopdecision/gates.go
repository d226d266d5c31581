package stopdecision

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Reasons for which a stop is not accepted.
const (
	rejectedNotCalled = "work_complete_not_called"
	rejectedStrict    = "work_complete_required_strict"
	rejectedContract  = "contract_not_satisfied"
	rejectedItems     = "work_items_incomplete"
	rejectedHook      = "agent_stop_hook_blocked"
)

// gates judges an agent that considers itself done: work_complete, the contract,
// the work items, the subscribers of agent_stop. The first that objects decides.
func (d *deciding) gates() error {
	s, stop := d.s, d.s.GetConfig().GetStop()
	if stop.GetRequireWorkComplete() && !d.turn.GetCalledWorkComplete() {
		s.WorkCompleteRetries++
		switch {
		case s.GetWorkCompleteRetries() <= stop.GetWorkCompleteMaxRetries():
			return d.reject(rejectedNotCalled, fmt.Sprintf(
				"You stopped without calling work_complete (reminder %d of %d). If the task is done and checked, call work_complete now with a summary. "+
					"If it is not, make the next tool call.", s.GetWorkCompleteRetries(), stop.GetWorkCompleteMaxRetries()), nil)
		case stop.GetPolicy() == harnessv1.StopPolicy_STOP_POLICY_STRICT:
			return d.reject(rejectedStrict, "This run ends only with work_complete. Finish what is left with tool calls, then call work_complete with a summary.", nil)
		}
	}
	for _, gate := range []func() (bool, error){d.contractGate, d.itemsGate, d.hooksGate} {
		if decided, err := gate(); decided || err != nil {
			return err
		}
	}
	if d.turn.GetAnswered() {
		return d.goOn() // the agent has not read what the user has answered
	}
	accepted := d.turn.GetCalledWorkComplete() || !stop.GetRequireWorkComplete()
	message := "The agent completed the work."
	if !accepted {
		message = "The agent stopped without ever calling work_complete."
	}
	return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "agent_done", message, accepted)
}

// contractGate holds the agent to its contract.
func (d *deciding) contractGate() (decided bool, err error) {
	if !d.hasContract() {
		return false, nil
	}
	if err := d.look(func(string) bool { return true }); err != nil {
		return false, err
	}
	verdict := d.judgeContract()
	switch {
	case len(verdict.Ask) > 0 && !d.s.GetAutonomous():
		return true, d.parkForQuestions(verdict.Ask)
	case !verdict.Satisfied:
		return true, d.reject(rejectedContract, contract.GapText(verdict.Gap), verdict.Gap)
	}
	d.contractVerified = true
	return false, nil
}

func (d *deciding) hasContract() bool {
	return d.made.Contract != nil && d.s.GetConfig().GetContract().GetEnabled()
}

// look brings the coverage up to date for the outputs that which names.
func (d *deciding) look(which func(id string) bool) error {
	var checks []*harnessv1.RequirementCoverage
	needed := &agent.NeedsError{}
	for _, output := range d.made.Contract.Proto().GetRequiredOutputs() {
		if !which(output.GetId()) {
			continue
		}
		key := KeyCheck + output.GetId()
		if seen := agent.Observation(d.in, key); seen != nil {
			checks = append(checks, seen.GetCheck())
			continue
		}
		needed.Keys = append(needed.Keys, key)
	}
	if len(needed.Keys) > 0 {
		return needed
	}
	if d.s.CoverageLedger == nil {
		d.s.CoverageLedger = contract.NewLedger(d.made.Contract.Proto())
	}
	contract.Record(runstate.OwnCoverage(d.s), checks, d.turn.GetTurnNumber())
	return nil
}

// judgeContract says whether the coverage is enough, and tells observers.
func (d *deciding) judgeContract() contract.Verdict {
	ledger := runstate.OwnCoverage(d.s)
	verdict := contract.Evaluate(d.made.Contract.Proto(), ledger)
	ledger.Coverage = verdict.Coverage
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
		Satisfied: verdict.Satisfied, Coverage: verdict.Coverage, Requirements: told(ledger.GetRequirements()),
	}}})
	return verdict
}

// maxTold bounds the outputs that an event names: a record has its bound.
const maxTold = 60

// told are the outputs that observers are told of.
func told(all []*harnessv1.RequirementCoverage) []*harnessv1.RequirementCoverage {
	if len(all) <= maxTold {
		return all
	}
	var unmet []*harnessv1.RequirementCoverage
	for _, r := range all {
		if r.GetStatus() != harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET && len(unmet) < maxTold {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// lastLook brings the coverage in the result of a run that ends without its gates
// up to date, as far as that has no effects.
func (d *deciding) lastLook() error {
	if !d.hasContract() || d.stopAsked() {
		return nil // it ends, and nobody waits for what else could be seen
	}
	if err := d.look(d.made.Contract.Cheap); err != nil {
		return err
	}
	d.judgeContract()
	return nil
}

// itemsGate holds the agent to its work items.
func (d *deciding) itemsGate() (decided bool, err error) {
	if !d.s.GetConfig().GetWorkItems().GetEnabled() {
		return false, nil
	}
	if !workitem.IsComplete(d.s.GetWorkItemLedger()) {
		return true, d.reject(rejectedItems, workitem.Reminder(d.s.GetWorkItemLedger()), nil)
	}
	d.itemsVerified = true
	return false, nil
}

// reject does not accept a stop: the model is told why.
func (d *deciding) reject(kind, text string, gap *harnessv1.GapReport) error {
	s := d.s
	if s.GetRejectedKind() != kind {
		s.RejectedKind, s.RejectedCount = kind, 0
	}
	s.RejectedCount++
	count := s.GetRejectedCount()
	if kind == rejectedNotCalled || kind == rejectedStrict {
		count = s.GetWorkCompleteRetries()
	}
	d.tell(harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED, runstate.MarkGuidance(text))
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
		Kind: kind, Message: content.Cut(text, maxMessage), Count: count, Gap: gap,
	}}})
	return d.goOn()
}

// maxMessage bounds what an event repeats of what the model is told, in bytes.
const maxMessage = 4 << 10

// stateForHooks is what subscribers of agent_stop are given.
func (d *deciding) stateForHooks() map[string]any {
	finished, total := workitem.Counts(d.s.GetWorkItemLedger())
	cov := d.s.GetCoverageLedger().GetCoverage()
	usage := map[string]any{}
	for _, u := range d.s.GetToolUsage() {
		usage[u.GetTool()] = int64(u.GetCalls())
	}
	unmet := []any{}
	for _, id := range cov.GetUnmet() {
		unmet = append(unmet, id)
	}
	return map[string]any{
		"turn_count":           int64(d.s.GetTurnCount()),
		"called_work_complete": d.turn.GetCalledWorkComplete(),
		"tool_usage":           usage,
		"work_items":           map[string]any{"open": int64(total - finished), "finished": int64(finished), "total": int64(total)},
		"contract":             map[string]any{"met": int64(cov.GetMet()), "total": int64(cov.GetTotal()), "unmet": unmet},
		"summary":              content.Text(d.s.GetSummary()),
		"answer":               content.Text(d.s.GetAnswer()),
	}
}
