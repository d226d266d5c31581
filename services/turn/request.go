package turn

import (
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Prepare is exactly what the model is sent for the turn that step begins:
// the view of the conversation and the tools that are offered. Contents may
// still be references; whoever sends it puts the text in.
func Prepare(s *harnessv1.Snapshot, messages []*harnessv1.Message, tools []*harnessv1.ToolSpec) *harnessv1.ModelRequest {
	return &harnessv1.ModelRequest{
		Model:    s.GetModel(),
		Messages: conversation.View(messages),
		Tools:    tools,
	}
}
