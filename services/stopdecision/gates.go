package stopdecision

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Reasons for which a stop is not accepted.
const (
	rejectedNotCalled = "work_complete_not_called"
	rejectedStrict    = "work_complete_required_strict"
	rejectedLong      = "answer_too_long"
	rejectedOutput    = "output_invalid"
	rejectedContract  = "contract_not_satisfied"
	rejectedItems     = "work_items_incomplete"
	rejectedHook      = "agent_stop_hook_blocked"
	rejectedQuality   = "quality_retry"
)

// gates decides whether an agent that considers itself done may stop. The required
// questions of the contract are put to the user first. Then, in order: it called
// work_complete, its answer is not too long, its output fits the output schema, the contract is satisfied, no work item
// is open, the work is good enough, no subscriber of agent_stop blocks. The first gate that objects decides.
func (d *decision) gates() error {
	if asked, err := d.askQuestions(); asked || err != nil {
		return err
	}
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
	for _, gate := range []func() (bool, error){d.lengthGate, d.outputGate, d.contractGate, d.itemsGate, d.qualityGate, d.hooksGate} {
		if decided, err := gate(); decided || err != nil {
			return err
		}
	}
	if d.turn.GetAnswered() {
		return d.continueRun() // the agent has not read the user's answer yet
	}
	accepted := d.turn.GetCalledWorkComplete() || !stop.GetRequireWorkComplete()
	verdict := s.GetQuality().GetVerdict()
	message := "The agent completed the work."
	switch {
	case !accepted:
		message = "The agent stopped without ever calling work_complete."
	case d.definition.Output != nil && s.GetOutput() == nil:
		accepted, message = false, "The agent stopped without an output that fits the output schema."
	case verdict != nil:
		accepted = d.acceptable(quality.Best(s.GetQuality().GetAttempts()))
		message = describeVerdict(verdict, accepted)
	}
	return d.end(harnessv1.RunStatus_RUN_STATUS_DONE, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "agent_done", message, accepted)
}

// describeVerdict returns how work ended that was judged.
func describeVerdict(verdict *harnessv1.QualityVerdict, accepted bool) string {
	switch {
	case verdict.GetDegraded():
		return fmt.Sprintf("No attempt of %d was good enough; the best is delivered.", verdict.GetAttempts())
	case !accepted && !verdict.GetContractPassed():
		return "The agent completed the work, but the work does not have what its kind requires."
	case !accepted:
		return "The agent completed the work, but the verifier did not accept it."
	}
	return "The agent completed the work."
}

// lengthGate decides, once in a segment, if the answer has more words than it may have.
func (d *decision) lengthGate() (decided bool, err error) {
	limit := int(d.definition.MaxAnswerWords)
	words := tree.Words(tree.AnswerOf(d.s))
	if limit == 0 || words <= limit || d.s.GetAnswerSentBack() {
		return false, nil
	}
	d.s.AnswerSentBack = true
	return true, d.reject(rejectedLong, fmt.Sprintf(
		"Your answer has %d words, and may have %d. Say the same in fewer words, the most important first, and stop again.", words, limit), nil)
}

// maxShownSchema bounds the schema in a rejection, in bytes. The tool shows all of it.
const maxShownSchema = 2000

// outputGate decides if the output is missing or does not fit its schema, until the agent
// has been rejected often enough.
func (d *decision) outputGate() (decided bool, err error) {
	s, limit := d.s, d.s.GetConfig().GetStop().GetOutputMaxRetries()
	if d.definition.Output == nil || s.GetOutput() != nil || s.GetOutputRejections() >= limit {
		return false, nil
	}
	s.OutputRejections++
	why := "You stopped without calling work_complete with an output."
	if d.turn.GetCalledWorkComplete() {
		why = "The output of work_complete is refused: " + s.GetOutputProblem() + "."
	}
	return true, d.reject(rejectedOutput, fmt.Sprintf("%s (Rejection %d of %d.)\nCall work_complete again with an output that fits this JSON Schema: %s",
		why, s.GetOutputRejections(), limit, content.Clip(d.definition.OutputSchema, maxShownSchema)), nil)
}

// contractGate decides if the contract is not satisfied.
func (d *decision) contractGate() (decided bool, err error) {
	if !d.hasContract() {
		return false, nil
	}
	if err := d.check(func(string) bool { return true }); err != nil {
		return false, err
	}
	verdict := d.evaluateContract()
	if !verdict.Satisfied {
		return true, d.reject(rejectedContract, contract.GapText(verdict.Gap), verdict.Gap)
	}
	d.contractVerified = true
	return false, nil
}

// askQuestions parks the run if required questions of the contract have no answer, unless
// the agent is autonomous.
func (d *decision) askQuestions() (asked bool, err error) {
	if !d.hasContract() || d.s.GetAutonomous() {
		return false, nil
	}
	open := contract.OpenQuestions(d.definition.Contract.Proto(), d.s.GetCoverageLedger())
	if len(open) == 0 {
		return false, nil
	}
	return true, d.parkForQuestions(open)
}

func (d *decision) hasContract() bool {
	return d.definition.Contract != nil && d.s.GetConfig().GetContract().GetEnabled()
}

// check records the current state of the outputs for which include is true. Its error
// is an *agent.NeedsError while one of them has not been observed.
func (d *decision) check(include func(id string) bool) error {
	var checks []*harnessv1.RequirementCoverage
	needed := &agent.NeedsError{}
	for _, output := range d.definition.Contract.Proto().GetRequiredOutputs() {
		if !include(output.GetId()) {
			continue
		}
		key := KeyCheck + output.GetId()
		if o := agent.Observation(d.in, key); o != nil {
			checks = append(checks, o.GetCheck())
			continue
		}
		needed.Keys = append(needed.Keys, key)
	}
	if len(needed.Keys) > 0 {
		return needed
	}
	if d.s.CoverageLedger == nil {
		d.s.CoverageLedger = contract.NewLedger(d.definition.Contract.Proto())
	}
	contract.Record(runstate.OwnCoverage(d.s), checks, d.turn.GetTurnNumber())
	return nil
}

// evaluateContract reports whether the recorded coverage satisfies the contract, and
// emits an event about it.
func (d *decision) evaluateContract() contract.Verdict {
	ledger := runstate.OwnCoverage(d.s)
	verdict := contract.Evaluate(d.definition.Contract.Proto(), ledger)
	ledger.Coverage = verdict.Coverage
	d.Emit(event.ContractEvaluated(verdict.Satisfied, verdict.Coverage, eventRequirements(ledger.GetRequirements())))
	return verdict
}

// maxEventRequirements bounds the outputs in an event, because the size of a record is
// bounded.
const maxEventRequirements = 60

// eventRequirements returns the outputs that an event names: all of them, or those that
// are not met if there are too many.
func eventRequirements(all []*harnessv1.RequirementCoverage) []*harnessv1.RequirementCoverage {
	if len(all) <= maxEventRequirements {
		return all
	}
	var unmet []*harnessv1.RequirementCoverage
	for _, r := range all {
		if r.GetStatus() != harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET && len(unmet) < maxEventRequirements {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// refreshCoverage updates the coverage in the result of a run that ends without its
// gates. It makes only the checks that have no effects.
func (d *decision) refreshCoverage() error {
	if !d.hasContract() || d.stopRequested() {
		return nil
	}
	if err := d.check(d.definition.Contract.Cheap); err != nil {
		return err
	}
	d.evaluateContract()
	return nil
}

// itemsGate decides if a work item is open.
func (d *decision) itemsGate() (decided bool, err error) {
	if !d.s.GetConfig().GetWorkItems().GetEnabled() {
		return false, nil
	}
	if !workitem.IsComplete(d.s.GetWorkItemLedger()) {
		return true, d.reject(rejectedItems, workitem.Reminder(d.s.GetWorkItemLedger()), nil)
	}
	d.itemsVerified = true
	return false, nil
}

// reject continues the run and appends the reason for the model.
func (d *decision) reject(kind, text string, gap *harnessv1.GapReport) error {
	s := d.s
	if s.GetRejectedKind() != kind {
		s.RejectedKind, s.RejectedCount = kind, 0
	}
	s.RejectedCount++
	count := s.GetRejectedCount()
	switch kind {
	case rejectedNotCalled, rejectedStrict:
		count = s.GetWorkCompleteRetries()
	case rejectedOutput:
		count = s.GetOutputRejections()
	}
	d.appendMessage(harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED, "stop:"+kind, runstate.MarkGuidance(text))
	d.Emit(event.StopRejected(kind, content.Cut(text, maxMessage), count, gap))
	return d.continueRun()
}

// maxMessage bounds the copy of a rejection in its event, in bytes.
const maxMessage = 4 << 10
