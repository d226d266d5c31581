// Package input has the checks of the inputs that a run receives, one file for each kind. They are made
// three times:
//
//   - Check: whether an input is valid by itself. The gateway refuses an invalid one.
//   - Admit: whether the run takes it as it is stored, with what waits in its inbox. The gateway
//     appends the input, or refuses it with an error for its sender.
//   - The Recheck functions: whether the run takes it in the state in which repair applies it. A refusal is
//     the text of the event that reports it; empty if there is none.
//
// The run may continue between the last two, so a stale Admit is harmless: repair re-validates
// every input that it processes.
//
// Everything here is a function of its arguments and changes none of them.
package input

import (
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Check validates an input from outside. The id of the item is the caller's request
// id and not empty.
func Check(item *harnessv1.InboxItem) error {
	if err := CheckRequestID(item.GetId()); err != nil {
		return err
	}
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return checkMessage(in.UserMessage)
	case *harnessv1.InboxItem_Approval:
		return checkApproval(in.Approval)
	case *harnessv1.InboxItem_ToolAnswer:
		return checkAnswer(in.ToolAnswer)
	case *harnessv1.InboxItem_ToolsDeclared:
		return nil // made by this program
	case *harnessv1.InboxItem_ModeChange:
		return checkMode("mode_change.mode", in.ModeChange.GetMode())
	case *harnessv1.InboxItem_ModelChange:
		return checkNewModel("model_change.model", in.ModelChange.GetModel())
	case *harnessv1.InboxItem_Feedback:
		return checkFeedback(in.Feedback)
	case *harnessv1.InboxItem_Replan:
		return CheckSize("replan.reason", in.Replan.GetReason(), MaxReason)
	case *harnessv1.InboxItem_Interrupt:
		return CheckSize("reason", in.Interrupt.GetReason(), MaxReason)
	case *harnessv1.InboxItem_Resume:
		return checkResume(in.Resume)
	case *harnessv1.InboxItem_Cancel:
		return CheckSize("reason", in.Cancel.GetReason(), MaxReason)
	}
	return fault.Invalid("input", "must be set")
}

// CheckRequestID validates a request id. Empty is valid.
func CheckRequestID(id string) error { return checkID("request_id", id) }

// Limits on inputs; one that exceeds one is refused with TOO_LARGE.
const (
	// MaxText bounds a goal and a user message, in bytes.
	MaxText = 1 << 20
	// MaxReason bounds the reason of an approval, an interrupt or a cancel, and
	// the text of a nudge, in bytes.
	MaxReason = 4 << 10
	// MaxID bounds a request id and a call id, in bytes.
	MaxID = 128
	// MaxName bounds names of models and agents, in bytes.
	MaxName = 256
	// MaxWaiting bounds the messages and answers that wait in an inbox.
	MaxWaiting = 1000
	// MaxUrgent bounds the interrupts and cancels of a full inbox.
	MaxUrgent = 100
)

// Kind returns the name of the kind of an input in events, such as user_message; unknown for one that this
// program does not know.
func Kind(item *harnessv1.InboxItem) string {
	r := item.ProtoReflect()
	if field := r.WhichOneof(r.Descriptor().Oneofs().ByName("input")); field != nil {
		return string(field.Name())
	}
	return "unknown"
}
