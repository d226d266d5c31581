package repair

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// applyApproval allows or refuses a call that waits for it.
func (d *decision) applyApproval(a *harnessv1.Approval) (refusal string, err error) {
	call := find(runstate.AwaitedCalls(d.s), a.GetCallId())
	switch {
	case !needsApproval(call) && runstate.Decided(d.s, a.GetCallId()):
		return fmt.Sprintf("call %s already has an answer", a.GetCallId()), nil
	case !needsApproval(call):
		return fmt.Sprintf("call %s does not wait for an approval", a.GetCallId()), nil
	case a.GetDecision() < harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE || a.GetDecision() > harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY:
		return "this program does not know such a decision", nil
	case a.GetDigest() != "" && a.GetDigest() != call.GetPreview().GetDigest():
		return fmt.Sprintf("call %s is not the one that was shown", a.GetCallId()), nil
	}
	if approval.Needed(a) {
		if refusal, err := d.applyGiven(call, a); refusal != "" || err != nil {
			return refusal, err
		}
	}
	d.recordApproval(call, a)
	switch a.GetDecision() {
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE:
		if err := d.allow(call); err != nil {
			return "", err
		}
	case harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
		if err := d.allow(call); err != nil {
			return "", err
		}
		if call.GetOnlyOnce() {
			break
		}
		if len(a.GetRules()) == 0 {
			runstate.Grant(d.s, call.GetTool())
		}
		for _, other := range runstate.AwaitedCalls(d.s) {
			granted := len(a.GetRules()) == 0 || approval.Covers(d.s, other, nil)
			if granted && other.GetTool() == call.GetTool() && other.GetKind() == runstate.KindApproval && !other.GetOnlyOnce() {
				d.recordApproval(other, a)
				if err := d.allow(other); err != nil {
					return "", err
				}
			}
		}
	default:
		text := "A person refused this call."
		if a.GetReason() != "" {
			text += " Their reason: " + a.GetReason()
		}
		d.refuse(call, text, cmp.Or(content.Cut(a.GetReason(), content.MaxPreview), "refused by a person"))
	}
	d.resumeIfAnswered("approval")
	return "", nil
}

// applyGiven stores the rules of an approval, and gives a call its changed arguments. refusal is
// why the approval does not count; the call then still waits.
func (d *decision) applyGiven(call *harnessv1.PendingCall, a *harnessv1.Approval) (refusal string, err error) {
	c := approval.Call{Snapshot: d.s, Pending: call, Policy: d.made.Policy}
	if c.Arguments, err = d.text(call.GetArguments()); err != nil {
		return "", err
	}
	if t := approval.Tool(d.s, call); t != nil {
		schema, err := d.text(t.GetParametersSchema())
		if err != nil {
			return "", err
		}
		c.Tool = approval.Spec(t, schema)
	}
	given, err := d.text(a.GetArguments())
	if err != nil {
		return "", err
	}
	if wrong := approval.Check(c, a, given); wrong != nil {
		return fault.In("approval", wrong).Error(), nil
	}
	if a.GetArguments() != nil {
		approval.Change(c, call, a.GetArguments(), given)
		if call.GetMarks() != nil {
			call.Marks = mark.Pending(mark.OfCall(d.s.GetConfig(), call.GetTool(), c.Tool, given))
		}
	}
	if !runstate.GrantRules(d.s, a.GetRules()) {
		return "the run has too many rules of approvals: approve the call once, or all calls of the tool", nil
	}
	return "", nil
}

// needsApproval reports whether a call waits for an approval or a review.
func needsApproval(call *harnessv1.PendingCall) bool {
	return call.GetKind() == runstate.KindApproval || call.GetKind() == runstate.KindReview
}

// resumeIfAnswered resumes a run that is parked only for answers, once it has
// all of them.
func (d *decision) resumeIfAnswered(cause string) {
	if d.s.GetPausedPhase() != unpaused && d.resumed == "" && len(runstate.AwaitedCalls(d.s)) == 0 && d.s.GetStopping() == nil && !d.stopped() {
		d.resumed = cause
	}
}

func (d *decision) recordApproval(call *harnessv1.PendingCall, a *harnessv1.Approval) {
	d.Emit(event.ApprovalAnswered(call, a, content.Cut(a.GetReason(), content.MaxPreview), d.caller))
	runstate.RecordDecision(d.s, call, a.GetDecision(), d.item)
}

// allow lets a call run: on the tool host with the rest of the turn, or at the
// client that has the tool, whose answer it waits for from now on. A call that
// the mode of work blocks is refused when the turn continues.
func (d *decision) allow(call *harnessv1.PendingCall) error {
	if call.GetWait() != nil { // from now on
		call.Why, call.Preview = runstate.WaitText(call.GetWait()), nil
		runstate.StartWait(call, d.now)
		d.Emit(event.ToolCalled(call.GetCallId(), call.GetTool(), call.GetArguments(), runstate.KindWait, call.GetSandboxLevel()))
		return nil
	}
	if call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT && d.modeAllows(call) {
		call.Why, call.Preview = "", nil
		d.Emit(event.ToolCalled(call.GetCallId(), call.GetTool(), call.GetArguments(), runstate.KindAgent, call.GetSandboxLevel()))
		if reply := tree.Accept(d.s, d.run(), call, d.made.Agents, d.now); reply != nil {
			return d.answerAgent(call, reply.Text, reply.Text, reply.Failed)
		}
		return nil // route starts it
	}
	if call.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT || !d.modeAllows(call) {
		call.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED
		return nil
	}
	runstate.CountActivity(d.s, call)
	call.Class = harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL
	call.Kind, call.Why = runstate.KindClientTool, ""
	call.Deadline = runstate.AnswerDeadline(d.s, runstate.KindClientTool, d.now)
	d.Emit(event.ToolCalled(call.GetCallId(), call.GetTool(), call.GetArguments(), runstate.KindClientTool, call.GetSandboxLevel()))
	return nil
}

// modeAllows reports whether the present mode of work, which may have changed
// since the call was made, allows it.
func (d *decision) modeAllows(call *harnessv1.PendingCall) bool {
	return mode.Allows(runstate.Mode(d.s), d.made.Modes, &harnessv1.ToolSpec{
		Name: call.GetTool(), Origin: call.GetOrigin(),
		Annotations: &harnessv1.ToolAnnotations{Reads: call.GetReads(), Writes: call.GetWrites(), Explores: call.GetExplores()},
	})
}

// refuseBlocked refuses approved calls that the mode of work no longer allows.
func (d *decision) refuseBlocked() {
	for _, call := range runstate.ApprovedCalls(d.s) {
		if !d.modeAllows(call) {
			text := mode.BlockedText(runstate.Mode(d.s), call.GetTool())
			d.refuse(call, text, text)
		}
	}
}

// refuse answers a call with an error and denies it for reason.
func (d *decision) refuse(call *harnessv1.PendingCall, text, reason string) {
	d.answerWithError(call, text, harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED)
	d.recordOutcome(call, content.Inline(text))
	d.Emit(event.ToolDenied(call.GetCallId(), call.GetTool(), reason))
}

// applyAnswer gives a call of a client's tool, or a question, its result.
func (d *decision) applyAnswer(a *harnessv1.ToolAnswer) (refusal string, err error) {
	call := find(runstate.AwaitedCalls(d.s), a.GetCallId())
	switch {
	case call.GetQuestion() != nil:
		return d.applyServerAnswer(call, a)
	case call == nil && runstate.Answered(d.s, a.GetCallId()):
		return fmt.Sprintf("call %s already has an answer", a.GetCallId()), nil
	case call == nil:
		return fmt.Sprintf("call %s does not wait for an answer", a.GetCallId()), nil
	case call.GetKind() == runstate.KindApproval:
		return fmt.Sprintf("call %s waits for an approval", a.GetCallId()), nil
	case call.GetKind() == runstate.KindAgent:
		return fmt.Sprintf("call %s waits for its sub-agent: send the message to the sub-agent's run", a.GetCallId()), nil
	case call.GetKind() == runstate.KindWait:
		return fmt.Sprintf("call %s waits for a time or an event: a message ends the wait", a.GetCallId()), nil
	}
	runstate.RecordAnswer(d.s, call.GetCallId(), d.item)
	result := proto.CloneOf(a.GetResult())
	if result == nil {
		result = content.Inline("")
	}
	if question, ok := runstate.QuestionOf(call); ok {
		d.answerQuestion(call, question, &harnessv1.QuestionAnswer{QuestionId: question, Answer: result, Declined: a.GetIsError()}, a.GetMedia()...)
		return "", nil
	}
	if err := d.answerFromOutside(call, result, a); err != nil {
		return "", err
	}
	d.resumeIfAnswered("answer")
	return "", nil
}

// answerFromOutside gives a call its result, after the hooks on_error and
// after_tool_call. answer is the text of a, for the call of a sub-agent with how that ended. A text of the hooks replaces its media too.
func (d *decision) answerFromOutside(call *harnessv1.PendingCall, answer *harnessv1.Content, a *harnessv1.ToolAnswer) error {
	arguments, text, failed := "", "", a.GetIsError()
	parts := media.Parts(a.GetMedia())
	if d.subscribed(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR) || d.subscribed(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL) {
		var err error
		if arguments, err = d.text(call.GetArguments()); err != nil {
			return err
		}
		if text, err = d.text(answer); err != nil {
			return err
		}
	}
	payload := func() map[string]any {
		return agent.CallPayload(call.GetCallId(), call.GetTool(), arguments, text, failed)
	}
	var effects hook.Effects
	if failed {
		p := payload()
		p["error"] = p["result"]
		onError, err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, call.GetCallId(), call.GetTool(), p)
		if err != nil {
			return err
		}
		effects = onError
	}
	after, err := d.fire(harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, call.GetCallId(), call.GetTool(), payload())
	if err != nil {
		return err
	}
	if text, ok := after.Text("result"); ok {
		answer, parts = content.Inline(text), nil
	}
	if after.Abort != "" {
		d.fail(harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED, after.Abort)
	}
	marked := content.Text(answer)
	if call.GetChanges() != "" {
		text, err := d.text(answer)
		if err != nil {
			return err
		}
		answer, marked = content.Inline(call.GetChanges()+text), text
	}
	result := &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, Content: answer, ToolCallId: call.GetCallId(), ToolName: call.GetTool(), IsError: failed, Parts: parts,
	}
	mark.Result(result, call.GetMarks(), marked, nil)
	d.AppendTo(call.GetTurnNumber(), result)
	quality.CountContent(d.s.GetQuality(), call.GetTool(), result.GetContent())
	d.Emit(event.ToolEnded(call.GetCallId(), call.GetTool(), failed, nil))
	effects.Merge(after)
	d.record(effects)
	runstate.RemovePending(d.s, call.GetCallId())
	if call.GetKind() == runstate.KindAgent {
		answer = a.GetResult() // without what differs between equal answers
	}
	d.recordOutcome(call, answer)
	return nil
}

// recordOutcome counts an answer from outside for the detection of loops and
// stalls.
func (d *decision) recordOutcome(call *harnessv1.PendingCall, result *harnessv1.Content) {
	if call.GetKind() == runstate.KindWait && runstate.RecordWait(d.s, call.GetWait(), d.now) {
		return
	}
	d.outcomes.Record(d.s, runstate.Outcome{
		Tool: call.GetTool(), Arguments: call.GetArguments(), Result: result, Basis: runstate.BasisOf(call.GetTool(), call),
	})
}

// answerQuestion records the user's answer to a question of the contract. A nil
// answer leaves the question open, so that it is put again.
func (d *decision) answerQuestion(call *harnessv1.PendingCall, question string, answer *harnessv1.QuestionAnswer, files ...*harnessv1.Media) {
	asked := call.GetWhy()
	if c := d.made.Contract; c != nil {
		for _, q := range c.Proto().GetQuestions() {
			if q.GetId() == question {
				asked = q.GetQuestion()
			}
		}
	}
	if answer == nil {
		d.Append(runstate.GuidanceMessage("The user did not answer this question of the task: " + asked))
	} else {
		coverage := runstate.OwnCoverage(d.s)
		coverage.Answers = append(coverage.Answers, answer)
		d.questionAnswered = d.questionAnswered || !answer.GetDeclined()
		text := "The user was asked: " + asked + "\nThe next message is the answer."
		if answer.GetDeclined() {
			text = "The user was asked: " + asked + "\nThe user does not want to answer; the next message says why. Go on as well as you can without."
		}
		question := runstate.GuidanceMessage(text)
		question.Kept = d.Marks() // the answer means nothing without it
		d.Append(question,
			&harnessv1.Message{
				Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_ANSWER, Kept: true,
				Content: proto.CloneOf(answer.GetAnswer()), Parts: media.Parts(files),
			})
	}
	runstate.RemovePending(d.s, call.GetCallId())
	d.resumeIfAnswered("answer")
}

// answerExpired answers the calls whose deadline has passed. The timer proves
// that the deadline of the park has passed, even if the clock here is slow.
func (d *decision) answerExpired() {
	now := d.now
	if at := d.s.GetWakeAt(); at != nil && at.AsTime().After(now) {
		now = at.AsTime()
	}
	for _, call := range runstate.AwaitedCalls(d.s) {
		if call.GetKind() == runstate.KindWait || call.GetDeadline() == nil || call.GetDeadline().AsTime().After(now) {
			continue
		}
		if call.GetKind() == runstate.KindAgent && d.overdue(call) {
			continue
		}
		if d.closeHeld(call) {
			continue
		}
		runstate.RecordAnswer(d.s, call.GetCallId(), "")
		d.repairCall(call, expiredText(call), "expired")
	}
}

func find(calls []*harnessv1.PendingCall, id string) *harnessv1.PendingCall {
	for _, c := range calls {
		if c.GetCallId() == id {
			return c
		}
	}
	return nil
}
