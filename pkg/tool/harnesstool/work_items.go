package harnesstool

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// Properties that the work item tools share. The schemas name the values of
// priority, role and status in their descriptions only: an unknown value gets a
// default or an answer that lists the values, not a refusal by schema.
const (
	itemID       = `"id":{"type":"string","minLength":1,"description":"The item's id, such as w2."}`
	itemNotes    = `"notes":{"type":["string","null"],"description":"What is worth remembering, in at most 512 bytes."}`
	itemPriority = `"priority":{"type":["string","null"],"description":"HIGH, MEDIUM (default) or LOW."}`
)

// workItemTool returns a tool that changes work items.
func workItemTool(run Run, name, description, properties, required, usage string) *Tool {
	return &Tool{
		Tool: tool.Tool[Run]{
			Spec: &harnessv1.ToolSpec{
				Name: name, Description: description, Usage: usage,
				ParametersSchema: `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`,
				Origin:           harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
				Annotations: &harnessv1.ToolAnnotations{
					Durability: harnessv1.Durability_DURABILITY_ANCHORING, PreservedFields: []string{"id"},
				},
			},
			Run: run,
		},
		Enabled: func(s Setting) bool { return s.WorkItems },
	}
}
