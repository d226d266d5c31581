package gateway

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// RunState is what Admit needs to know about a run to decide on an input.
type RunState struct {
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
func Admit(s RunState, item *harnessv1.InboxItem) (Admission, error) {
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
		if item.GetNoApprovals() && s.reviews() {
			return 0, fault.New(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
				"a resume approves the calls of "+s.Run.String()+" that wait for a review, and the token has no right \"approve\": ask for one whose line has may=approve",
				"namespace", s.Run.Namespace, "run_id", s.Run.ID, "right", "approve")
		}
		return s.resume(in.Resume)
	case *harnessv1.InboxItem_Cancel:
		return s.cancel()
	}
	return 0, fault.Invalid("input", "must be set")
}

// again returns the answer to a repeated input: for an answer that came second, an
// error.
func (s RunState) again(item *harnessv1.InboxItem) (Admission, error) {
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

// declares reports whether the run already has these tools and no stored input declares
// others.
func (s RunState) declares(d *harnessv1.ToolsDeclared) bool {
	return s.Step.GetSnapshot().GetClientTools().GetBlob().GetDigest() == d.GetTools().GetBlob().GetDigest() &&
		!s.waits(func(i *harnessv1.InboxItem) bool { return i.GetToolsDeclared() != nil })
}

// interrupt is stored while the run is running or about to run, and while calls wait for
// answers, because it answers them.
func (s RunState) interrupt() Admission {
	if n := len(s.Waiting); n > 0 {
		if s.Waiting[n-1].GetInterrupt() != nil {
			return Unneeded // one is already stored and nothing after it
		}
		return Store
	}
	if s.Quiescent && (s.at(runlog.End) || len(Awaited(s.Step.GetSnapshot())) == 0) {
		return Unneeded
	}
	return Store
}

// modeChange accepts a change to an existing mode of a run that has not ended or is
// about to be reopened.
func (s RunState) modeChange(m *harnessv1.ModeChange) (Admission, error) {
	if !mode.Exists(m.GetMode(), s.Modes) {
		return 0, unknownMode("mode_change.mode", m.GetMode(), s.Modes)
	}
	return s.steer()
}

// steer accepts an input for a run that has not ended or is about to be reopened.
func (s RunState) steer() (Admission, error) {
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("send it a message first")
	}
	return Store, s.room()
}

// feedback accepts what a user says of a run that has ended and is not about to be reopened.
func (s RunState) feedback() (Admission, error) {
	ended := s.at(runlog.End) || runstate.Ended(s.Step.GetSnapshot())
	if !ended || s.waits(isUserMessage) || s.waits(isResume) {
		return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ACTIVE,
			"run "+s.Run.String()+" has not ended; give feedback when it has", "namespace", s.Run.Namespace, "run_id", s.Run.ID)
	}
	return Store, s.room()
}

// reviews reports whether a call waits for a review.
func (s RunState) reviews() bool {
	return slices.ContainsFunc(Awaited(s.Step.GetSnapshot()), func(c *harnessv1.PendingCall) bool { return c.GetKind() == runstate.KindReview })
}

func (s RunState) resume(r *harnessv1.Resume) (Admission, error) {
	resumable := s.at(runlog.End) && runstate.Resumable(s.Step.GetSnapshot(), r.GetModel() != "")
	if short := runstate.InsufficientBudget(s.Step.GetSnapshot(), r.GetBudgets(), s.Now); short != nil && !s.at(runlog.End) {
		return 0, fault.Invalid("budgets."+runstate.BudgetField(short.GetBudget()), "%.6g is not above the %.6g that are used", short.GetLimit(), short.GetUsed())
	}
	if err := s.checkPrices(r); err != nil {
		return 0, err
	}
	switch {
	case s.at(runlog.End) && s.waits(isUserMessage) && r.GetModel() == "":
		return Unneeded, nil // the message will reopen it
	case s.at(runlog.Park), resumable:
		return Store, s.room()
	case s.at(runlog.End):
		return 0, s.ended("send a message instead")
	case s.waking(), s.waits(isInterrupt), s.waits(isCancel):
		return Store, s.room() // running, but about to park or just woken
	case proto.Size(r.GetBudgets()) > 0, r.GetModel() != "":
		return Store, s.room() // repair processes them before the next turn
	}
	return Unneeded, nil
}

// checkPrices refuses a resume with a budget in US dollars, or with another model, if the
// budget would not count.
func (s RunState) checkPrices(r *harnessv1.Resume) error {
	snapshot, b := s.Step.GetSnapshot(), r.GetBudgets()
	if s.Priced == nil || b.GetCostUsd() == 0 && r.GetModel() == "" {
		return nil
	}
	models := append([]string{cmp.Or(r.GetModel(), snapshot.GetModel())}, snapshot.GetFallbackModels()...)
	return checkPrices("budgets", runstate.BudgetsWith(snapshot, b), models, s.Priced)
}

func (s RunState) cancel() (Admission, error) {
	if n := len(s.Waiting); n > 0 && isCancel(s.Waiting[n-1]) {
		return Unneeded, nil
	}
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("there is nothing to cancel")
	}
	return Store, s.urgent()
}

func (s RunState) ended(advice string) error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED,
		"run "+s.Run.String()+" has ended; "+advice, "namespace", s.Run.Namespace, "run_id", s.Run.ID)
}

// at reports whether the run is parked or has ended at to.
func (s RunState) at(to string) bool { return s.Quiescent && s.Step.GetTo() == to }

// waking reports whether the run was woken and repair has not processed the wake yet.
func (s RunState) waking() bool {
	return s.Step.GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE
}

// knows reports whether an item with this id was accepted before.
func (s RunState) knows(id string) bool {
	return slices.Contains(s.Step.GetSnapshot().GetDrainedItems(), runlog.HashID(id)) ||
		s.waits(func(i *harnessv1.InboxItem) bool { return i.GetId() == id })
}

func (s RunState) waits(is func(*harnessv1.InboxItem) bool) bool {
	return slices.ContainsFunc(s.Waiting, is)
}

func (s RunState) room() error {
	if n := len(s.Waiting); n >= MaxWaiting {
		return TooLarge("inbox", n+1, MaxWaiting, "inputs wait")
	}
	return nil
}

// urgent bounds the inputs that a full inbox still accepts.
func (s RunState) urgent() error {
	if n := len(s.Waiting); n >= MaxWaiting+MaxUrgent {
		return TooLarge("inbox", n+1, MaxWaiting+MaxUrgent, "inputs wait")
	}
	return nil
}

// MaxUrgent bounds the interrupts and cancels of a full inbox.
const MaxUrgent = 100

// Expired returns the error for a deleted run.
func Expired(run runlog.Run) *fault.Error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_EXPIRED,
		"run "+run.String()+" was deleted", "namespace", run.Namespace, "run_id", run.ID)
}

func isUserMessage(i *harnessv1.InboxItem) bool { return i.GetUserMessage() != nil }
func isInterrupt(i *harnessv1.InboxItem) bool   { return i.GetInterrupt() != nil }
func isResume(i *harnessv1.InboxItem) bool      { return i.GetResume() != nil }
func isCancel(i *harnessv1.InboxItem) bool      { return i.GetCancel() != nil }
