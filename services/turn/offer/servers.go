package offer

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/runstate"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// Find answers a search of the tools of servers, in a run with the state s.
func (o *Offer) Find(s runstate.DefinitionFields, arguments string) string {
	given, err := tool.Arguments[struct {
		Query string `json:"query"`
	}](arguments)
	if err != nil {
		return err.Error() // its schema was checked
	}
	return o.Servers.Find(given.Query, s.GetMcp().GetServers(), func(t *harnessv1.McpTool) bool {
		_, spec := o.Reach(t.GetSpec().GetName(), true)
		return spec != nil && (t.GetChange() == nil || !s.GetAutonomous())
	})
}

// Unwrap turns a call of call_tool into the call of the tool that it names, if that is one of a
// server: policy, hooks, events and the ledger see this one. Others stay as they are written.
func (o *Offer) Unwrap(call *harnessv1.ToolCall) {
	if call.GetName() != harnesstool.CallTool || o.Servers == nil {
		return
	}
	var given struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal([]byte(call.GetArguments().GetInline()), &given) != nil || o.Servers.Lookup(given.Name) == nil {
		return
	}
	arguments := string(given.Arguments)
	if arguments == "" || arguments == "null" {
		arguments = "{}"
	}
	call.Name, call.Arguments, call.ByCallTool = given.Name, content.Inline(arguments), true
}

// AsWritten returns a conversation in which calls by call_tool are those that the model wrote. It
// changes no message.
func AsWritten(messages []*harnessv1.Message) ([]*harnessv1.Message, error) {
	return mcptool.AsWritten(messages, harnesstool.CallTool)
}
