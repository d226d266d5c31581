package repair

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func (d *decision) applyResume(resume *harnessv1.Resume, window uint32) (refusal string, err error) {
	if refusal := input.RecheckResume(d.s, resume, d.noApprovals, d.now); refusal != "" {
		return refusal, nil
	}
	if runstate.Ended(d.s) {
		guidance := "The run was cancelled and is now resumed. Look at what is done and go on."
		switch {
		case resume.GetModel() != "":
			guidance = "The run was stopped and is now resumed. Look at what is done and go on."
			d.applyModel(resume.GetModel(), window)
		case d.s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED:
			guidance = "The run was stopped by an error of the harness and is now resumed. Look at what is done and go on."
		}
		d.resumed = "resume"
		runstate.ExtendBudgets(d.s, resume.GetBudgets())
		d.Append(runstate.GuidanceMessage(guidance))
		return "", d.reopen(d.s.GetGoalPreview())
	}
	runstate.ExtendBudgets(d.s, resume.GetBudgets())
	if resume.GetModel() != "" {
		d.applyModel(resume.GetModel(), window)
	}
	d.interrupt, d.resumed = nil, "resume"
	for _, call := range runstate.AwaitedCalls(d.s) {
		if call.GetKind() == runstate.KindReview { // the resume is the review
			runstate.RecordDecision(d.s, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, d.item)
			if err := d.allow(call); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}
