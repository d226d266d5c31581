package repair

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// drain takes in a part of the inbox, in order.
func (r *repairing) drain(batch *harnessv1.InboxBatch) error {
	for _, item := range batch.GetItems() {
		if runstate.Drained(r.s, item.GetId()) {
			continue // sent twice; the first one had its effect
		}
		r.item = item.GetId()
		kind, refused, err := r.take(item)
		if err != nil {
			return err
		}
		if refused == "" || item.GetTimerFired() == nil {
			// A timer that came too early is another one's name later: a park that
			// was not committed has left it behind.
			runstate.NoteDrained(r.s, item.GetId())
		}
		if refused != "" {
			r.emit(&harnessv1.Event{Event: &harnessv1.Event_InputRejected{InputRejected: &harnessv1.InputRejected{
				ItemId: item.GetId(), Kind: kind, Reason: refused,
			}}})
			continue
		}
		r.applied++
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_InputAccepted{InputAccepted: &harnessv1.InputAccepted{
			ItemId: item.GetId(), Kind: kind,
		}}})
		if r.cancel != nil {
			// What comes behind it is for the run that has ended: a message reopens it.
			r.s.InboxCursor = max(r.s.GetInboxCursor(), item.GetSequence())
			return nil
		}
	}
	r.s.InboxCursor = max(r.s.GetInboxCursor(), batch.GetCursor())
	return nil
}

// take applies one item. refused says why it has no effect.
func (r *repairing) take(item *harnessv1.InboxItem) (kind, refused string, err error) {
	switch input := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return "user_message", "", r.takeMessage(input.UserMessage)
	case *harnessv1.InboxItem_Approval:
		return "approval", r.takeApproval(input.Approval), nil
	case *harnessv1.InboxItem_Interrupt:
		return "interrupt", r.takeInterrupt(input.Interrupt), nil
	case *harnessv1.InboxItem_Resume:
		refused, err := r.takeResume(input.Resume)
		return "resume", refused, err
	case *harnessv1.InboxItem_Cancel:
		if runstate.Ended(r.s) {
			return "cancel", "the run has ended", nil
		}
		r.cancel = input.Cancel
		return "cancel", "", nil
	case *harnessv1.InboxItem_TimerFired:
		return "timer_fired", r.takeTimer(input.TimerFired), nil
	case *harnessv1.InboxItem_ToolAnswer:
		return "tool_answer", r.takeAnswer(input.ToolAnswer), nil
	case *harnessv1.InboxItem_ToolsDeclared:
		r.s.ClientTools = proto.CloneOf(input.ToolsDeclared.GetTools())
		return "tools_declared", "", nil
	}
	return "unknown", "this program does not know such an input", nil
}

func (r *repairing) takeMessage(m *harnessv1.UserMessage) error {
	message := &harnessv1.Message{
		Role:    harnessv1.Role_ROLE_USER,
		Kind:    harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT,
		Kept:    true,
		Content: proto.CloneOf(m.GetContent()),
	}
	r.append(r.turn(), message)
	r.interrupt, r.resumed = nil, "user_message"
	if t := r.s.GetTurn(); t.GetOpen() {
		// The agent was done with what it knew; it does not know this yet.
		t.AgentDone, t.CalledWorkComplete, r.s.Summary = false, false, nil
	}
	if runstate.Ended(r.s) {
		return r.reopen(runlog.Cut(runlog.Text(m.GetContent()), runlog.MaxPreview))
	}
	return nil
}

// reopen begins another segment on a run that has ended.
func (r *repairing) reopen(goal string) error {
	if err := r.enter(harnessv1.PhaseInput_PHASE_INPUT_REOPEN); err != nil {
		return err
	}
	r.reopened = true
	return r.openSegment(goal)
}

func (r *repairing) takeApproval(a *harnessv1.Approval) (refused string) {
	call := find(runstate.Awaited(r.s), a.GetCallId())
	switch {
	case (call == nil || call.GetKind() != runstate.KindApproval) && runstate.Decided(r.s, a.GetCallId()):
		return fmt.Sprintf("call %s has an answer already", a.GetCallId())
	case call == nil || call.GetKind() != runstate.KindApproval:
		return fmt.Sprintf("call %s does not wait for an approval", a.GetCallId())
	case a.GetDecision() < harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE || a.GetDecision() > harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY:
		return "this program does not know such a decision"
	}
	r.answered(call, a)
	switch a.GetDecision() {
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE:
		r.allow(call)
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
		r.allow(call)
		runstate.Grant(r.s, call.GetTool())
		for _, other := range runstate.Awaited(r.s) {
			if other.GetTool() == call.GetTool() && other.GetKind() == runstate.KindApproval {
				r.answered(other, a)
				r.allow(other)
			}
		}
	default:
		text := "A person refused this call."
		if a.GetReason() != "" {
			text += " Their reason: " + a.GetReason()
		}
		r.answer(call, text, harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED)
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
			CallId: call.GetCallId(), Tool: call.GetTool(), Reason: orElse(runlog.Cut(a.GetReason(), runlog.MaxPreview), "refused by a person"), // whole in the message
		}}})
	}
	return ""
}

// answered notes that a call has its approval or refusal.
func (r *repairing) answered(call *harnessv1.PendingCall, a *harnessv1.Approval) {
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
		CallId: call.GetCallId(), Tool: call.GetTool(), Decision: a.GetDecision(), Reason: runlog.Cut(a.GetReason(), runlog.MaxPreview),
	}}})
	runstate.NoteDecided(r.s, call, a.GetDecision(), r.item)
}

// allow lets a call run: on the tool host with the rest of the turn, or with the
// client that has the tool, for whose answer it waits from now on.
func (r *repairing) allow(call *harnessv1.PendingCall) {
	if call.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT {
		call.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED
		return
	}
	call.Kind, call.Why = runstate.KindClientTool, ""
	call.Deadline = runstate.AnswerBy(r.s, runstate.KindClientTool, r.now)
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
		CallId: call.GetCallId(), Tool: call.GetTool(), Arguments: proto.CloneOf(call.GetArguments()), Awaits: runstate.KindClientTool,
	}}})
}

// takeAnswer gives a call of a client's tool, or a question, its result.
func (r *repairing) takeAnswer(a *harnessv1.ToolAnswer) (refused string) {
	call := find(runstate.Awaited(r.s), a.GetCallId())
	switch {
	case call == nil && runstate.Answered(r.s, a.GetCallId()):
		return fmt.Sprintf("call %s has an answer already", a.GetCallId())
	case call == nil:
		return fmt.Sprintf("call %s does not wait for an answer", a.GetCallId())
	case call.GetKind() == runstate.KindApproval:
		return fmt.Sprintf("call %s waits for an approval", a.GetCallId())
	}
	runstate.NoteAnswered(r.s, call.GetCallId(), r.item)
	content := proto.CloneOf(a.GetResult())
	if content == nil {
		content = runlog.Inline("")
	}
	r.append(call.GetTurnNumber(), &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, Content: content, ToolCallId: call.GetCallId(), ToolName: call.GetTool(), IsError: a.GetIsError(),
	})
	if a.GetIsError() {
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: call.GetCallId(), Tool: call.GetTool()}}})
	} else {
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: call.GetCallId(), Tool: call.GetTool()}}})
	}
	runstate.Settle(r.s, call.GetCallId())
	return ""
}

func (r *repairing) takeInterrupt(i *harnessv1.Interrupt) (refused string) {
	switch {
	case runstate.Ended(r.s):
		return "the run has ended"
	case r.s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED && r.resumed == "":
		return "the run rests already"
	}
	r.interrupt = i
	return ""
}

func (r *repairing) takeResume(resume *harnessv1.Resume) (refused string, err error) {
	switch {
	case r.s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_CANCELLED && runstate.Ended(r.s):
		r.resumed = "resume"
		runstate.Extend(r.s, resume.GetBudgets())
		r.append(r.turn(), guidance("The run was cancelled and is now resumed. Look at what is done and go on."))
		return "", r.reopen(r.s.GetGoalPreview())
	case runstate.Ended(r.s):
		return "the run has ended; a message reopens it", nil
	}
	if short := runstate.Below(r.s, resume.GetBudgets(), r.now); short != nil {
		return fmt.Sprintf("a budget of %.6g %s is not above the %.6g that are used", short.GetLimit(), short.GetBudget(), short.GetUsed()), nil
	}
	runstate.Extend(r.s, resume.GetBudgets())
	r.interrupt, r.resumed = nil, "resume"
	return "", nil
}

func (r *repairing) takeTimer(t *harnessv1.TimerFired) (refused string) {
	if r.s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || t.GetParkVersion() != r.s.GetParkVersion() {
		return "the park that set the timer is over"
	}
	if r.s.GetPhase() == harnessv1.Phase_PHASE_AWAITING_TOOL {
		r.expire()
		return ""
	}
	r.resumed = "timer"
	return ""
}

// expire answers the calls whose time is over with errors. The timer proves that
// the time of the park has come, whatever the clock here says.
func (r *repairing) expire() {
	now := r.now
	if at := r.s.GetWakeAt(); at != nil && at.AsTime().After(now) {
		now = at.AsTime()
	}
	for _, call := range runstate.Awaited(r.s) {
		if call.GetDeadline() == nil || call.GetDeadline().AsTime().After(now) {
			continue
		}
		runstate.NoteAnswered(r.s, call.GetCallId(), "")
		text := "Nobody answered this call in time."
		switch call.GetKind() {
		case runstate.KindApproval:
			text = "Nobody approved this call in time, so it did not run."
		case runstate.KindQuestion:
			text = "The user did not answer this question in time. Go on as well as you can without the answer."
		}
		r.repairCall(call, text, "expired")
	}
}

// answerPending gives every call that still waits an error as its answer.
func (r *repairing) answerPending(text string) {
	for _, call := range append(runstate.Awaited(r.s), runstate.Approved(r.s)...) {
		runstate.NoteAnswered(r.s, call.GetCallId(), "")
		r.repairCall(call, text, "not answered")
	}
}

// settleUnknown answers calls that were started and of which nobody knows how
// they ended.
func (r *repairing) settleUnknown() {
	for _, call := range r.s.GetPendingToolCalls() {
		if call.GetClass() == harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN {
			r.repairCall(call, "The process that ran this call died while it ran. "+
				"Its effect is unknown: it may have happened wholly, in part or not at all, and it was not run again. "+
				"Look at the present state before you decide whether to repeat it.", "effect unknown")
		}
	}
}

func (r *repairing) repairCall(call *harnessv1.PendingCall, text, reason string) {
	r.repairs++
	r.answer(call, text, harnessv1.MessageKind_MESSAGE_KIND_REPAIR)
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{
		CallId: call.GetCallId(), Tool: call.GetTool(), Turn: call.GetTurnNumber(), Reason: reason,
	}}})
}

// answer appends an error as the call's result and takes the call off the list.
func (r *repairing) answer(call *harnessv1.PendingCall, text string, kind harnessv1.MessageKind) {
	r.append(call.GetTurnNumber(), &harnessv1.Message{
		Role:       harnessv1.Role_ROLE_TOOL,
		Kind:       kind,
		Content:    runlog.Inline(text),
		ToolCallId: call.GetCallId(),
		ToolName:   call.GetTool(),
		IsError:    true,
	})
	runstate.Settle(r.s, call.GetCallId())
}

func find(calls []*harnessv1.PendingCall, id string) *harnessv1.PendingCall {
	for _, c := range calls {
		if c.GetCallId() == id {
			return c
		}
	}
	return nil
}

func guidance(text string) *harnessv1.Message {
	return &harnessv1.Message{
		Role:    harnessv1.Role_ROLE_USER,
		Kind:    harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
		Content: runlog.Inline(text),
	}
}
