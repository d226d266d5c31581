package repair

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxHeard bounds what subscribers say in one decision.
const maxHeard = 128

// drain takes in a part of the inbox, in order.
func (r *repairing) drain(batch *harnessv1.InboxBatch) error {
	for _, item := range batch.GetItems() {
		if r.heard > maxHeard {
			return nil // what is left is taken in by the next decision: the cursor has not passed it
		}
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
			r.s.InboxCursor = max(r.s.GetInboxCursor(), item.GetSequence())
			continue
		}
		r.applied++
		r.s.InboxCursor = max(r.s.GetInboxCursor(), item.GetSequence())
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
		refused, err := r.takeApproval(input.Approval)
		return "approval", refused, err
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
		refused, err := r.takeAnswer(input.ToolAnswer)
		return "tool_answer", refused, err
	case *harnessv1.InboxItem_ToolsDeclared:
		r.s.ClientTools = proto.CloneOf(input.ToolsDeclared.GetTools())
		return "tools_declared", "", nil
	case *harnessv1.InboxItem_ModeChange:
		return "mode_change", r.takeMode(input.ModeChange), nil
	case *harnessv1.InboxItem_Replan:
		return "replan", r.takeReplan(input.Replan), nil
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
		return r.reopen(content.Text(m.GetContent()))
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

func (r *repairing) takeApproval(a *harnessv1.Approval) (refused string, err error) {
	call := find(runstate.Awaited(r.s), a.GetCallId())
	switch {
	case !asksLeave(call) && runstate.Decided(r.s, a.GetCallId()):
		return fmt.Sprintf("call %s has an answer already", a.GetCallId()), nil
	case !asksLeave(call):
		return fmt.Sprintf("call %s does not wait for an approval", a.GetCallId()), nil
	case a.GetDecision() < harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE || a.GetDecision() > harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY:
		return "this program does not know such a decision", nil
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
		r.noteOutcome(call, content.Inline(text))
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
			CallId: call.GetCallId(), Tool: call.GetTool(), Reason: cmp.Or(content.Cut(a.GetReason(), content.MaxPreview), "refused by a person"), // whole in the message
		}}})
	}
	r.wakes("approval")
	return "", nil
}

// asksLeave says that a call waits for somebody to let it run.
func asksLeave(call *harnessv1.PendingCall) bool {
	return call.GetKind() == runstate.KindApproval || call.GetKind() == runstate.KindReview
}

// wakes lets a run go on that rests for nothing but answers, once it has them all.
func (r *repairing) wakes(cause string) {
	if r.s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED && r.resumed == "" && len(runstate.Awaited(r.s)) == 0 {
		r.resumed = cause
	}
}

// answered notes that a call has its approval or refusal.
func (r *repairing) answered(call *harnessv1.PendingCall, a *harnessv1.Approval) {
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
		CallId: call.GetCallId(), Tool: call.GetTool(), Decision: a.GetDecision(), Reason: content.Cut(a.GetReason(), content.MaxPreview),
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
	if !r.modeAllows(call) {
		call.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED // refused when the turn goes on
		return
	}
	runstate.CountActivity(r.s, call)
	call.Class = harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL
	call.Kind, call.Why = runstate.KindClientTool, ""
	call.Deadline = runstate.AnswerBy(r.s, runstate.KindClientTool, r.now)
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
		CallId: call.GetCallId(), Tool: call.GetTool(), Arguments: proto.CloneOf(call.GetArguments()), Awaits: runstate.KindClientTool,
	}}})
}

// takeAnswer gives a call of a client's tool, or a question, its result.
func (r *repairing) takeAnswer(a *harnessv1.ToolAnswer) (refused string, err error) {
	call := find(runstate.Awaited(r.s), a.GetCallId())
	switch {
	case call == nil && runstate.Answered(r.s, a.GetCallId()):
		return fmt.Sprintf("call %s has an answer already", a.GetCallId()), nil
	case call == nil:
		return fmt.Sprintf("call %s does not wait for an answer", a.GetCallId()), nil
	case call.GetKind() == runstate.KindApproval:
		return fmt.Sprintf("call %s waits for an approval", a.GetCallId()), nil
	}
	runstate.NoteAnswered(r.s, call.GetCallId(), r.item)
	result := proto.CloneOf(a.GetResult())
	if result == nil {
		result = content.Inline("")
	}
	if question, ok := runstate.QuestionOf(call); ok {
		r.answerQuestion(call, question, &harnessv1.QuestionAnswer{QuestionId: question, Answer: result, Declined: a.GetIsError()})
		return "", nil
	}
	if err := r.conclude(call, result, a.GetIsError()); err != nil {
		return "", err
	}
	r.wakes("answer")
	return "", nil
}

// conclude gives a call that somebody outside has answered its result, past the
// subscribers.
func (r *repairing) conclude(call *harnessv1.PendingCall, answer *harnessv1.Content, failed bool) error {
	at := len(r.events)
	arguments, text := "", ""
	if r.listens(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR) || r.listens(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL) {
		var err error
		if arguments, err = r.whole(call.GetArguments()); err != nil {
			return err
		}
		if text, err = r.whole(answer); err != nil {
			return err
		}
	}
	payload := func() map[string]any {
		return agent.CallPayload(call.GetCallId(), call.GetTool(), arguments, text, failed)
	}
	if failed {
		p := payload()
		p["error"] = p["result"]
		if _, err := r.call(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, call.GetCallId(), call.GetTool(), p); err != nil {
			return err
		}
	}
	result, err := r.call(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, call.GetCallId(), call.GetTool(), payload())
	if err != nil {
		return err
	}
	if text, ok := result.Payload["result"].(string); ok && result.Replaced {
		answer = content.Inline(text)
	}
	if result.Action == harnessv1.HookAction_HOOK_ACTION_ABORT {
		r.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, agent.Aborted(result))
	}
	after := append([]*harnessv1.Event(nil), r.events[at:]...)
	r.events = r.events[:at]
	r.append(call.GetTurnNumber(), &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, Content: answer, ToolCallId: call.GetCallId(), ToolName: call.GetTool(), IsError: failed,
	})
	if failed {
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: call.GetCallId(), Tool: call.GetTool()}}})
	} else {
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: call.GetCallId(), Tool: call.GetTool()}}})
	}
	r.events = append(r.events, after...)
	runstate.Settle(r.s, call.GetCallId())
	r.noteOutcome(call, answer)
	return nil
}

// noteOutcome counts an answer from outside for the detection of loops and stalls.
// Only the last calls are known here: an outcome that is not among them is new.
func (r *repairing) noteOutcome(call *harnessv1.PendingCall, result *harnessv1.Content) {
	strict, loose := progress.Signature(call.GetTool(), content.Key(call.GetArguments()), content.DigestOf(result))
	runstate.NoteOutcome(r.s, call.GetTool(), strict, loose, !slices.Contains(r.s.GetDoomLoop().GetStrict(), strict))
}

// answerQuestion notes what the user says to a question of the contract; nil: nothing,
// so that it is asked again.
func (r *repairing) answerQuestion(call *harnessv1.PendingCall, question string, answer *harnessv1.QuestionAnswer) {
	asked := call.GetWhy()
	if c := r.made.Contract; c != nil {
		for _, q := range c.Proto().GetQuestions() {
			if q.GetId() == question {
				asked = q.GetQuestion()
			}
		}
	}
	if answer == nil {
		r.append(r.turn(), runstate.Guidance("The user did not answer this question of the task: "+asked))
	} else {
		coverage := runstate.CoverageOf(r.s)
		coverage.Answers = append(coverage.Answers, answer)
		r.questionAnswered = r.questionAnswered || !answer.GetDeclined()
		said := "The user was asked: " + asked + "\nThe next message is the answer."
		if answer.GetDeclined() {
			said = "The user was asked: " + asked + "\nThe user does not want to answer; the next message says why. Go on as well as you can without."
		}
		r.append(r.turn(), runstate.Guidance(said),
			&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_ANSWER, Kept: true, Content: proto.CloneOf(answer.GetAnswer())})
	}
	runstate.Settle(r.s, call.GetCallId())
	r.wakes("answer")
}

// takeMode changes the mode of work from the next call on.
func (r *repairing) takeMode(m *harnessv1.ModeChange) (refused string) {
	from, to := runstate.ModeOf(r.s), m.GetMode()
	switch {
	case runstate.Ended(r.s):
		return "the run has ended"
	case !mode.Exists(to, r.made.Modes):
		return fmt.Sprintf("there is no mode %q; there are %s", content.Cut(to, 64), strings.Join(mode.Names(r.made.Modes), ", "))
	case from == to:
		return ""
	}
	r.s.Mode = to
	r.emit(&harnessv1.Event{Event: &harnessv1.Event_ModeChanged{ModeChanged: &harnessv1.ModeChanged{From: from, To: to}}})
	r.guide("mode", "", mode.ChangeText(from, to, r.made.Modes))
	return ""
}

// modeAllows says whether a call that has waited is one that the mode of work, which
// may have changed since, allows.
func (r *repairing) modeAllows(call *harnessv1.PendingCall) bool {
	return mode.Allows(runstate.ModeOf(r.s), r.made.Modes, &harnessv1.ToolSpec{
		Name: call.GetTool(), Origin: call.GetOrigin(),
		Annotations: &harnessv1.ToolAnnotations{Reads: call.GetReads(), Writes: call.GetWrites(), Explores: call.GetExplores()},
	})
}

// refuseBlocked answers calls that were approved and that the mode of work no longer
// allows.
func (r *repairing) refuseBlocked() {
	for _, call := range runstate.Approved(r.s) {
		if r.modeAllows(call) {
			continue
		}
		text := mode.BlockedText(runstate.ModeOf(r.s), call.GetTool())
		r.answer(call, text, harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED)
		r.noteOutcome(call, content.Inline(text))
		r.emit(&harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
			CallId: call.GetCallId(), Tool: call.GetTool(), Reason: text,
		}}})
	}
}

// takeReplan asks for another plan before the next turn.
func (r *repairing) takeReplan(p *harnessv1.ReplanRequest) (refused string) {
	if runstate.Ended(r.s) {
		return "the run has ended"
	}
	runstate.NoteHook(r.s, "", "", cmp.Or(p.GetReason(), "it was asked for"))
	return ""
}

func (r *repairing) takeInterrupt(i *harnessv1.Interrupt) (refused string) {
	switch {
	case runstate.Ended(r.s):
		return "the run has ended"
	case r.s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED && r.resumed == "" && len(runstate.Awaited(r.s)) == 0:
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
		r.append(r.turn(), runstate.Guidance("The run was cancelled and is now resumed. Look at what is done and go on."))
		return "", r.reopen(r.s.GetGoalPreview())
	case runstate.Ended(r.s):
		return "the run has ended; a message reopens it", nil
	}
	if short := runstate.Below(r.s, resume.GetBudgets(), r.now); short != nil {
		return fmt.Sprintf("a budget of %.6g %s is not above the %.6g that are used", short.GetLimit(), short.GetBudget(), short.GetUsed()), nil
	}
	runstate.Extend(r.s, resume.GetBudgets())
	r.interrupt, r.resumed = nil, "resume"
	for _, call := range runstate.Awaited(r.s) {
		if call.GetKind() == runstate.KindReview { // who lets the run go on has looked at it
			runstate.NoteDecided(r.s, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, r.item)
			r.allow(call)
		}
	}
	return "", nil
}

func (r *repairing) takeTimer(t *harnessv1.TimerFired) (refused string) {
	if r.s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || t.GetParkVersion() != r.s.GetParkVersion() {
		return "the park that set the timer is over"
	}
	if len(runstate.Awaited(r.s)) > 0 {
		r.expire()
		r.wakes("timer")
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
		case runstate.KindApproval, runstate.KindReview:
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
	if question, ok := runstate.QuestionOf(call); ok {
		r.answerQuestion(call, question, nil)
		return
	}
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
		Content:    content.Inline(text),
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
