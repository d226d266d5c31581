package compactionserver

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestRequestsFit whatever the messages are: the first and the last remain, in order.
func TestRequestsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(leastRequest, 40_000).Draw(t, "limit")
		var messages []*harnessv1.Message
		for i := range rapid.IntRange(1, 300).Draw(t, "messages") {
			m := &harnessv1.Message{Id: uint64(i) + 7, Content: content.Inline(strings.Repeat("é", rapid.IntRange(0, 3000).Draw(t, "length")))}
			if rapid.Bool().Draw(t, "call") {
				m.ToolCalls = []*harnessv1.ToolCall{{Arguments: content.Inline(strings.Repeat("a", rapid.IntRange(0, 3000).Draw(t, "arguments")))}}
			}
			messages = append(messages, m)
		}
		first, last := messages[0].GetId(), messages[len(messages)-1].GetId()
		shown := fit(messages, limit)
		bytes := 0
		for i, m := range shown {
			bytes += len(m.GetContent().GetInline()) + heading
			for _, c := range m.GetToolCalls() {
				bytes += len(c.GetArguments().GetInline())
			}
			if i > 0 && m.GetId() <= shown[i-1].GetId() {
				t.Fatalf("message %d comes after %d", m.GetId(), shown[i-1].GetId())
			}
		}
		if bytes > limit+200 { // the note
			t.Fatalf("%d bytes of %d", bytes, limit)
		}
		if len(messages) > 20 && (shown[0].GetId() != first || shown[len(shown)-1].GetId() != last) {
			t.Fatalf("messages %d to %d of %d to %d", shown[0].GetId(), shown[len(shown)-1].GetId(), first, last)
		}
	})
}
