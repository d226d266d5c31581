package event

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ToolCalled announces a call. awaits is what the call waits for, empty when it
// waits for no answer from outside.
func ToolCalled(callID, tool string, arguments *harnessv1.Content, awaits string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
		CallId: callID, Tool: tool, Arguments: proto.CloneOf(arguments), Awaits: awaits,
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

// ApprovalRequested asks a person to allow a call until deadline.
func ApprovalRequested(callID, tool string, arguments *harnessv1.Content, why string, deadline *timestamppb.Timestamp) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{
		CallId: callID, Tool: tool, Arguments: proto.CloneOf(arguments), Why: why, Deadline: deadline,
	}}}
}

// ApprovalAnswered reports what the person decided about a call.
func ApprovalAnswered(callID, tool string, decision harnessv1.ApprovalDecision, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
		CallId: callID, Tool: tool, Decision: decision, Reason: reason,
	}}}
}

// Repaired reports that repair answered a call that got no other answer.
func Repaired(callID, tool string, turn uint32, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_Repair{Repair: &harnessv1.Repaired{
		CallId: callID, Tool: tool, Turn: turn, Reason: reason,
	}}}
}
