package repair

import (
	"cmp"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// applyApproval allows or refuses a call that waits for it.
func (d *decision) applyApproval(a *harnessv1.Approval) (refusal string, err error) {
	call, refusal := input.RecheckApproval(d.s, a)
	if refusal != "" {
		return refusal, nil
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
	if wrong := input.CheckGiven(c, a, given); wrong != nil {
		return wrong.Error(), nil
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
