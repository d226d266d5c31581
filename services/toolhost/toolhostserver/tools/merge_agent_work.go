package tools

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

func init() {
	register(35, New(&harnessv1.ToolSpec{
		Name:   tree.MergeTool,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Bring what a sub-agent changed in its worktree into this workspace: all its changes, or none if files conflict, " +
			"which are then named. For sub-agents that work in a worktree, after their end.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"run":{"type":"string","minLength":1,"description":"The run of the sub-agent, which the result of its call names."}},` +
			`"required":["run"],"additionalProperties":false}`,
		Usage: "After a sub-agent with a worktree has ended well: its files are not in this workspace before.",
		Annotations: &harnessv1.ToolAnnotations{
			Writes: true, Idempotent: true,
			Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
			PreservedFields: []string{"run", "success"},
		},
	}, func(ctx context.Context, env *Environment, a mergeArguments) Result { return env.Merge(ctx, a.Run) }))
}

type mergeArguments struct {
	Run string `json:"run"`
}
