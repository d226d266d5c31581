package gateway

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Standing is what is known of a run when an input for it comes in.
type Standing struct {
	Run runlog.Run
	// Step is the newest step.
	Step *harnessv1.Step
	// Rests says that nothing newer than Step is stored and that it is
	// addressed to a place of rest.
	Rests bool
	// Waiting are the items in the inbox that repair has not drained, oldest
	// first.
	Waiting []*harnessv1.InboxItem
	// Announced are the calls of the turn under way that will wait for somebody
	// once it has come to its end. Only for answers.
	Announced []*harnessv1.PreparedCall
	// Modes are those of the agent's own. Only for changes of the mode.
	Modes []*harnessv1.ModeSpec
	// Now is the time.
	Now time.Time
}

// Admission says what becomes of an input that is not refused.
type Admission int

const (
	// Store it.
	Store Admission = iota + 1
	// Existed: it was stored before, under the same id.
	Existed
	// Unneeded: the run is already where the input would bring it.
	Unneeded
)

// Admit decides what becomes of an input. The item is well-formed.
//
// The run may move on between this decision and the append. That costs nothing:
// repair, which takes items in one by one, refuses what has no place any more.
func Admit(s Standing, item *harnessv1.InboxItem) (Admission, error) {
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
	case *harnessv1.InboxItem_Replan:
		return s.steer()
	case *harnessv1.InboxItem_Interrupt:
		return s.interrupt(), s.urgent()
	case *harnessv1.InboxItem_Resume:
		return s.resume(in.Resume)
	case *harnessv1.InboxItem_Cancel:
		return s.cancel()
	}
	return 0, fault.Invalid("input", "must be set")
}

// again is what the sender of an input is told that was stored before: of an
// answer that came second, that it did.
func (s Standing) again(item *harnessv1.InboxItem) (Admission, error) {
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

// declares says that the run has these tools already and nobody is about to
// declare others.
func (s Standing) declares(d *harnessv1.ToolsDeclared) bool {
	return s.Step.GetSnapshot().GetClientTools().GetBlob().GetDigest() == d.GetTools().GetBlob().GetDigest() &&
		!s.waits(func(i *harnessv1.InboxItem) bool { return i.GetToolsDeclared() != nil })
}

// interrupt is taken while something runs or is about to, and while calls are
// awaited: it answers them.
func (s Standing) interrupt() Admission {
	if n := len(s.Waiting); n > 0 {
		if s.Waiting[n-1].GetInterrupt() != nil {
			return Unneeded // one is on its way and nothing has come since
		}
		return Store
	}
	if s.Rests && (s.at(runlog.End) || len(Awaited(s.Step.GetSnapshot())) == 0) {
		return Unneeded
	}
	return Store
}

// modeChange takes a change to a mode that there is, of a run that goes on or may.
func (s Standing) modeChange(m *harnessv1.ModeChange) (Admission, error) {
	if !mode.Exists(m.GetMode(), s.Modes) {
		return 0, unknownMode("mode_change.mode", m.GetMode(), s.Modes)
	}
	return s.steer()
}

// steer takes what changes the way of a run that has not ended, or is about to be
// taken up again.
func (s Standing) steer() (Admission, error) {
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("send it a message first")
	}
	return Store, s.room()
}

func (s Standing) resume(r *harnessv1.Resume) (Admission, error) {
	status := s.Step.GetSnapshot().GetStatus()
	if short := runstate.InsufficientBudget(s.Step.GetSnapshot(), r.GetBudgets(), s.Now); short != nil && !s.at(runlog.End) {
		return 0, fault.Invalid("budgets."+runstate.BudgetField(short.GetBudget()), "%.6g is not above the %.6g that are used", short.GetLimit(), short.GetUsed())
	}
	switch {
	case s.at(runlog.End) && status == harnessv1.RunStatus_RUN_STATUS_CANCELLED && s.waits(isUserMessage):
		return Unneeded, nil // the message takes it up again
	case s.at(runlog.Park), s.at(runlog.End) && status == harnessv1.RunStatus_RUN_STATUS_CANCELLED:
		return Store, s.room()
	case s.at(runlog.End) && s.waits(isUserMessage):
		return Unneeded, nil // the message takes it up again
	case s.at(runlog.End):
		return 0, s.ended("send a message instead")
	case s.waking(), s.waits(isInterrupt), s.waits(isCancel):
		return Store, s.room() // it runs, but is about to rest or just woken to be looked at
	case proto.Size(r.GetBudgets()) > 0:
		return Store, s.room() // repair takes them in before the next turn
	}
	return Unneeded, nil
}

func (s Standing) cancel() (Admission, error) {
	if n := len(s.Waiting); n > 0 && isCancel(s.Waiting[n-1]) {
		return Unneeded, nil
	}
	if s.at(runlog.End) && !s.waits(isUserMessage) && !s.waits(isResume) {
		return 0, s.ended("there is nothing to cancel")
	}
	return Store, s.urgent()
}

func (s Standing) ended(advice string) error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED,
		"run "+s.Run.String()+" has ended; "+advice, "namespace", s.Run.Namespace, "run_id", s.Run.ID)
}

// at says that the run rests at to.
func (s Standing) at(to string) bool { return s.Rests && s.Step.GetTo() == to }

// waking says that the run was woken and repair has not looked at it yet.
func (s Standing) waking() bool {
	return s.Step.GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE
}

// knows says that an item with this id was taken before.
func (s Standing) knows(id string) bool {
	return slices.Contains(s.Step.GetSnapshot().GetDrainedItems(), runlog.HashID(id)) ||
		s.waits(func(i *harnessv1.InboxItem) bool { return i.GetId() == id })
}

func (s Standing) waits(is func(*harnessv1.InboxItem) bool) bool {
	return slices.ContainsFunc(s.Waiting, is)
}

func (s Standing) room() error {
	if n := len(s.Waiting); n >= MaxWaiting {
		return TooLarge("inbox", n+1, MaxWaiting, "inputs wait")
	}
	return nil
}

// urgent bounds what is taken also when no message has room any more.
func (s Standing) urgent() error {
	if n := len(s.Waiting); n >= MaxWaiting+MaxUrgent {
		return TooLarge("inbox", n+1, MaxWaiting+MaxUrgent, "inputs wait")
	}
	return nil
}

// MaxUrgent bounds the interrupts and cancels beside a full inbox.
const MaxUrgent = 100

// Expired says that the run was deleted.
func Expired(run runlog.Run) *fault.Error {
	return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_RUN_EXPIRED,
		"run "+run.String()+" was deleted", "namespace", run.Namespace, "run_id", run.ID)
}

func isUserMessage(i *harnessv1.InboxItem) bool { return i.GetUserMessage() != nil }
func isInterrupt(i *harnessv1.InboxItem) bool   { return i.GetInterrupt() != nil }
func isResume(i *harnessv1.InboxItem) bool      { return i.GetResume() != nil }
func isCancel(i *harnessv1.InboxItem) bool      { return i.GetCancel() != nil }
