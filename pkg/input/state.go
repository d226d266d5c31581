package input

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// State is what Admit needs to know about a run to decide on an input.
type State struct {
	Run runlog.Run
	// Step is the newest step.
	Step *harnessv1.Step
	// Quiescent: nothing newer than Step is stored, and Step is addressed to park or
	// end.
	Quiescent bool
	// Waiting are the items in the inbox that repair has not processed, oldest first.
	Waiting []*harnessv1.InboxItem
	// Announced are the calls of the current turn that will wait for an answer once it
	// has ended. Only for answers.
	Announced []*harnessv1.PreparedCall
	// Asked is the call that an approval with rules or arguments is for; nil if it does not
	// wait. Only for such an approval.
	Asked *approval.Call
	// Question is that of a server, with its texts inline, that an answer is for; nil if no such
	// question waits. Only for such an answer.
	Question *harnessv1.ServerQuestion
	// Modes are the agent's custom modes. Only for changes of the mode.
	Modes []*harnessv1.ModeSpec
	// Now is the current time.
	Now time.Time
	// Priced reports whether the price of a model is known. Nil: all are.
	Priced func(model string) bool
}

// Admission is the decision about a valid input.
type Admission int

const (
	// Store: append it to the inbox.
	Store Admission = iota + 1
	// Existed: it is already stored under the same id.
	Existed
	// Unneeded: the run already is in the state that the input asks for.
	Unneeded
)

// Admit decides what to do with an input. The item is valid.
//
// The run may continue between this decision and the append. Repair re-validates every
// item that it processes, so a stale Store is harmless.
func Admit(s State, item *harnessv1.InboxItem) (Admission, error) {
	if runstate.Expired(s.Step.GetSnapshot()) {
		return 0, Expired(s.Run)
	}
	if s.knows(item.GetId()) {
		return s.again(item)
	}
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return Store, s.room()
	case *harnessv1.InboxItem_Approval:
		return s.approval(in.Approval)
	case *harnessv1.InboxItem_ToolAnswer:
		return s.toolAnswer(in.ToolAnswer)
	case *harnessv1.InboxItem_ToolsDeclared:
		if s.declares(in.ToolsDeclared) {
			return Unneeded, nil
		}
		return Store, s.room()
	case *harnessv1.InboxItem_ModeChange:
		return s.modeChange(in.ModeChange)
	case *harnessv1.InboxItem_ModelChange:
		return Store, s.room()
	case *harnessv1.InboxItem_Feedback:
		return s.feedback()
	case *harnessv1.InboxItem_Replan:
		return s.steer()
	case *harnessv1.InboxItem_Interrupt:
		return s.interrupt(), s.urgent()
	case *harnessv1.InboxItem_Resume:
		return s.resume(in.Resume, item.GetNoApprovals())
	case *harnessv1.InboxItem_Cancel:
		return s.cancel()
	}
	return 0, fault.Invalid("input", "must be set")
}

// again returns the answer to a repeated input: for an answer that came second, an
// error.
func (s State) again(item *harnessv1.InboxItem) (Admission, error) {
	call, approval := Answers(item)
	if call == "" {
		return Existed, nil
	}
	if i := slices.IndexFunc(s.Waiting, func(i *harnessv1.InboxItem) bool { return i.GetId() == item.GetId() }); i >= 0 {
		if s.before(call, approval) || s.AnsweredBy(s.Waiting[:i], call, approval) {
			return 0, Answered(call)
		}
		return Existed, nil
	}
	by, known := runstate.AnsweredBy(s.Step.GetSnapshot(), call, item.GetId())
	if approval {
		by, known = runstate.DecidedBy(s.Step.GetSnapshot(), call, item.GetId())
	}
	if known && !by {
		return 0, Answered(call)
	}
	return Existed, nil
}

func (s State) ended(advice string) error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED,
		"run "+s.Run.String()+" has ended; "+advice, "namespace", s.Run.Namespace, "run_id", s.Run.ID)
}

// at reports whether the run is parked or has ended at to.
func (s State) at(to string) bool { return s.Quiescent && s.Step.GetTo() == to }

// waking reports whether the run was woken and repair has not processed the wake yet.
func (s State) waking() bool {
	return s.Step.GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE
}

// knows reports whether an item with this id was accepted before.
func (s State) knows(id string) bool {
	return slices.Contains(s.Step.GetSnapshot().GetDrainedItems(), runlog.HashID(id)) ||
		s.waits(func(i *harnessv1.InboxItem) bool { return i.GetId() == id })
}

func (s State) waits(is func(*harnessv1.InboxItem) bool) bool {
	return slices.ContainsFunc(s.Waiting, is)
}

func (s State) room() error {
	if n := len(s.Waiting); n >= MaxWaiting {
		return TooLarge("inbox", n+1, MaxWaiting, "inputs wait")
	}
	return nil
}

// urgent bounds the inputs that a full inbox still accepts.
func (s State) urgent() error {
	if n := len(s.Waiting); n >= MaxWaiting+MaxUrgent {
		return TooLarge("inbox", n+1, MaxWaiting+MaxUrgent, "inputs wait")
	}
	return nil
}

// Expired returns the error for a deleted run.
func Expired(run runlog.Run) *fault.Error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_EXPIRED,
		"run "+run.String()+" was deleted", "namespace", run.Namespace, "run_id", run.ID)
}

// hasEnded is the refusal of an input that only a run that has not ended takes.
const hasEnded = "the run has ended"

func isUserMessage(i *harnessv1.InboxItem) bool { return i.GetUserMessage() != nil }
func isInterrupt(i *harnessv1.InboxItem) bool   { return i.GetInterrupt() != nil }
func isResume(i *harnessv1.InboxItem) bool      { return i.GetResume() != nil }
func isCancel(i *harnessv1.InboxItem) bool      { return i.GetCancel() != nil }
