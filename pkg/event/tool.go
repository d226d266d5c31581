package event

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ToolCalled announces a call. awaits is the kind of answer that the call waits for, empty when it waits for
// no answer from outside. level is that of a command.
func ToolCalled(callID, tool string, arguments *harnessv1.Content, awaits string, level harnessv1.SandboxLevel) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
		CallId: callID, Tool: tool, Arguments: proto.CloneOf(arguments), Awaits: awaits, SandboxLevel: level,
	}}}
}

// ToolEnded is ToolError for a call that failed, else ToolResult.
func ToolEnded(callID, tool string, failed bool, took *durationpb.Duration) *harnessv1.Event {
	if failed {
		return ToolError(callID, tool, took)
	}
	return ToolResult(callID, tool, took)
}

// ToolResult reports that a call succeeded. took is nil for a call that no tool
// ran.
func ToolResult(callID, tool string, took *durationpb.Duration) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{
		CallId: callID, Tool: tool, Duration: took,
	}}}
}

// ToolError reports that a call ended with an error. took is nil for a call
// that no tool ran.
func ToolError(callID, tool string, took *durationpb.Duration) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{
		CallId: callID, Tool: tool, Duration: took,
	}}}
}

// ToolDenied reports that a call was not allowed, and why.
func ToolDenied(callID, tool, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
		CallId: callID, Tool: tool, Reason: reason,
	}}}
}

// ApprovalRequested asks a person to allow a call until its deadline.
func ApprovalRequested(call *harnessv1.PendingCall) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{
		CallId: call.GetCallId(), Tool: call.GetTool(), Arguments: proto.CloneOf(call.GetArguments()), Why: call.GetWhy(), Deadline: call.GetDeadline(),
		Preview: proto.CloneOf(call.GetPreview()),
	}}}
}

// ApprovalAnswered reports what caller decided about a call: with an answer to it, or with one
// to another call that holds for it too. reason is that of the answer.
func ApprovalAnswered(call *harnessv1.PendingCall, a *harnessv1.Approval, reason, caller string) *harnessv1.Event {
	answered := &harnessv1.ApprovalAnswered{CallId: call.GetCallId(), Tool: call.GetTool(), Decision: a.GetDecision(), Reason: reason, Caller: caller}
	for _, rule := range a.GetRules() {
		answered.Rules = append(answered.Rules, proto.CloneOf(rule))
	}
	if a.GetCallId() == call.GetCallId() {
		answered.Digest, answered.Arguments = a.GetDigest(), proto.CloneOf(a.GetArguments())
	}
	return &harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: answered}}
}

// ToolQuestion reports that the server of a call asks a person until the deadline of the call.
func ToolQuestion(call *harnessv1.PendingCall) *harnessv1.Event {
	q := proto.CloneOf(call.GetQuestion())
	q.State = nil
	return &harnessv1.Event{Event: &harnessv1.Event_ToolQuestion{ToolQuestion: &harnessv1.ToolQuestion{
		CallId: call.GetCallId(), Tool: call.GetTool(), Question: q, Deadline: call.GetDeadline(),
	}}}
}

// ToolAnswered reports what caller did with the question of a call's server.
func ToolAnswered(call *harnessv1.PendingCall, action harnessv1.AnswerAction, caller string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswered{
		CallId: call.GetCallId(), Tool: call.GetTool(), Round: call.GetQuestion().GetRound(), Action: action, Caller: caller,
	}}}
}

// Repaired reports that repair answered a call that got no other answer.
func Repaired(callID, tool string, turn uint32, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{
		CallId: callID, Tool: tool, Turn: turn, Reason: reason,
	}}}
}
