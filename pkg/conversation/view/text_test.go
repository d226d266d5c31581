package view_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPlaceholdersNameTheSource: a cleared result names itself, one that was read back what
// it was read from, unless that failed.
func TestPlaceholdersNameTheSource(t *testing.T) {
	s := &story{}
	s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("Go on.")})
	var want []string
	for _, c := range []struct {
		tool, ref string
		failed    bool
		want      string
	}{{"read_file", "", false, "m3"}, {view.ReadArtifact, "m3-m9", false, "m3-m9"}, {view.ReadArtifact, "everything", true, "m7"}, {"other", "m3", false, "m9"}} {
		result := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: c.want, ToolName: c.tool, IsError: c.failed, Content: content.Inline(strings.Repeat("text ", 200))}
		if c.ref != "" {
			result.Preserved = []*harnessv1.PreservedField{{Name: "ref", Value: c.ref}}
		}
		s.add(&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: c.want, Name: c.tool, Arguments: content.Inline("{}")}}}, result)
		want = append(want, "ref "+c.want+".]")
	}
	var v view.View
	items := v.Update(&s.Conversation, &harnessv1.CompactionPlan{Renderer: view.Renderer, Watermarks: []*harnessv1.Watermark{{
		Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: 9,
	}}}, nil)
	for _, it := range items {
		if it.Message.GetRole() != harnessv1.Role_ROLE_TOOL {
			continue
		}
		if text := content.Text(it.Message.GetContent()); !strings.HasSuffix(text, want[0]) {
			t.Errorf("%s does not end with %s", text, want[0])
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
}
