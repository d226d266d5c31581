package turn

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func called(s *harnessv1.Snapshot, p *Progress, id, tool string, arguments *harnessv1.Content) *harnessv1.Event {
	return event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{
		CallId: id, Tool: tool, Arguments: proto.CloneOf(arguments),
	}}})
}

func ended(s *harnessv1.Snapshot, p *Progress, id, tool string, failed bool, took *durationpb.Duration) *harnessv1.Event {
	if failed {
		return event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{
			CallId: id, Tool: tool, Duration: took,
		}}})
	}
	return event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{
		CallId: id, Tool: tool, Duration: took,
	}}})
}
