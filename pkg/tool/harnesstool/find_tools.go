package harnesstool

import (
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

const (
	// FindTools is the name of the tool that searches the tools of servers.
	FindTools = "find_tools"
	// CallTool is the name of the tool that calls one that FindTools has found.
	CallTool = "call_tool"
)

var findTools = &harnessv1.ToolSpec{
	Name:        FindTools,
	Description: "Search the tools of the connected servers. The result has names, descriptions and schemas; call one with call_tool.",
	ParametersSchema: `{"type":"object","properties":{"query":{"type":"string","description":"A few words for what the tool does. Empty: the names of all tools."}},` +
		`"required":["query"],"additionalProperties":false}`,
	Usage:       "When none of your other tools does what you need.",
	Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
	Annotations: &harnessv1.ToolAnnotations{Explores: true, Idempotent: true, Durability: harnessv1.Durability_DURABILITY_REPLAYABLE},
}

var _ = register(90, &Tool{
	Tool:    tool.Tool[Run]{Spec: findTools},
	Enabled: func(s Setting) bool { return len(s.Servers) > 0 },
	Describe: func(s Setting) *harnessv1.ToolSpec {
		spec := proto.CloneOf(findTools)
		spec.Description += " Servers: " + strings.Join(s.Servers, ", ") + "."
		return spec
	},
	Unrestricted: true,
	Reserved:     true,
	Search:       true,
})

var _ = register(91, &Tool{
	Tool: tool.Tool[Run]{
		Spec: &harnessv1.ToolSpec{
			Name:        CallTool,
			Description: "Call a tool that find_tools has listed.",
			ParametersSchema: `{"type":"object","properties":{"name":{"type":"string","description":"Its name, as find_tools lists it."},` +
				`"arguments":{"type":"object","description":"Arguments that fit its schema.","additionalProperties":true}},"required":["name"],"additionalProperties":false}`,
			Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
			Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_ANCHORING},
		},
		Run: func(*harnessv1.WorkItemLedger, string) workitem.Outcome {
			return workitem.Outcome{Result: "There is no tool of that name behind find_tools. Use a name that find_tools lists; call other tools by their names.", IsError: true}
		},
	},
	Enabled:      func(s Setting) bool { return len(s.Servers) > 0 },
	Unrestricted: true,
	Reserved:     true,
})
