package mcptool

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// AsWritten returns messages in which calls by call_tool, whose name is given, and their results
// are as the model wrote and read them. Messages with others are the same values. All contents
// must be inline.
func AsWritten(messages []*harnessv1.Message, callTool string) ([]*harnessv1.Message, error) {
	written := map[string]bool{}
	shown := messages
	own := false
	replace := func(i int, m *harnessv1.Message) {
		if !own {
			shown, own = slices.Clone(messages), true
		}
		shown[i] = m
	}
	for i, m := range messages {
		if written[m.GetToolCallId()] && m.GetRole() == harnessv1.Role_ROLE_TOOL {
			m = proto.CloneOf(m)
			m.ToolName = callTool
			replace(i, m)
			continue
		}
		copied := false
		for n, c := range m.GetToolCalls() {
			if !c.GetByCallTool() {
				continue
			}
			text := c.GetArguments().GetInline()
			if !json.Valid([]byte(text)) {
				text = "{}"
			}
			name, err := json.Marshal(c.GetName())
			if err != nil {
				return nil, err
			}
			if !copied {
				m, copied = proto.CloneOf(m), true
			}
			written[c.GetId()] = true
			m.ToolCalls[n].Name = callTool
			m.ToolCalls[n].Arguments = content.Inline(fmt.Sprintf(`{"name":%s,"arguments":%s}`, name, text))
		}
		if copied {
			replace(i, m)
		}
	}
	return shown, nil
}
