package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxVerdicts bounds the events of hooks in one decision.
const maxVerdicts = 128

// drain applies a batch of the inbox, in order.
func (d *decision) drain(batch *harnessv1.InboxBatch) error {
	for _, item := range batch.GetItems() {
		if d.verdicts > maxVerdicts {
			return nil // the next decision takes in the rest: the cursor has not passed it
		}
		if runstate.Drained(d.s, item.GetId()) {
			continue // sent twice; the first one had its effect
		}
		d.item, d.caller, d.noApprovals = item.GetId(), item.GetCaller(), item.GetNoApprovals()
		if input.Forged(item) {
			// Neither its caller nor its id counts: an input of the gateway may have the id.
			runstate.PassInbox(d.s, item.GetSequence())
			d.Emit(event.InputRejected(item.GetId(), input.Kind(item), input.ForgedText, ""))
			continue
		}
		kind, refusal, err := d.apply(item)
		if err != nil {
			return err
		}
		if refusal == "" || item.GetTimerFired() == nil {
			// The id of a refused timer is not kept: a later park may set a timer of the
			// same id, if the park of the first was never committed.
			runstate.RecordDrained(d.s, item.GetId())
		}
		runstate.PassInbox(d.s, item.GetSequence())
		if refusal != "" {
			d.Emit(event.InputRejected(item.GetId(), kind, refusal, d.caller))
			continue
		}
		d.applied++
		d.Emit(event.InputAccepted(item.GetId(), kind, d.caller))
		if d.cancel != nil {
			return nil // later items are for the ended run: a message reopens it
		}
	}
	runstate.PassInbox(d.s, batch.GetCursor())
	return nil
}

// apply applies one item. refusal is why it has no effect, else empty.
func (d *decision) apply(item *harnessv1.InboxItem) (kind, refusal string, err error) {
	if item.GetOrder() > 0 {
		return d.applyOrder(item)
	}
	kind = input.Kind(item)
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_ChildReport:
		refusal, err = d.applyReport(in.ChildReport)
	case *harnessv1.InboxItem_UserMessage:
		err = d.applyMessage(in.UserMessage)
	case *harnessv1.InboxItem_Approval:
		refusal, err = d.applyApproval(in.Approval)
	case *harnessv1.InboxItem_Interrupt:
		refusal = d.applyInterrupt(in.Interrupt)
	case *harnessv1.InboxItem_Resume:
		refusal, err = d.applyResume(in.Resume, item.GetMaxInputTokens())
	case *harnessv1.InboxItem_Cancel:
		refusal = d.applyCancel(in.Cancel)
	case *harnessv1.InboxItem_TimerFired:
		refusal, err = d.applyTimer(in.TimerFired)
	case *harnessv1.InboxItem_ToolAnswer:
		refusal, err = d.applyAnswer(in.ToolAnswer)
	case *harnessv1.InboxItem_ToolsDeclared:
		d.s.ClientTools = proto.CloneOf(in.ToolsDeclared.GetTools())
	case *harnessv1.InboxItem_ModeChange:
		refusal = d.applyMode(in.ModeChange)
	case *harnessv1.InboxItem_ModelChange:
		d.applyModel(in.ModelChange.GetModel(), item.GetMaxInputTokens())
	case *harnessv1.InboxItem_Feedback:
		refusal, err = d.applyFeedback(in.Feedback)
	case *harnessv1.InboxItem_Replan:
		refusal = d.applyReplan(in.Replan)
	default:
		refusal = "this program does not know such an input"
	}
	return kind, refusal, err
}
