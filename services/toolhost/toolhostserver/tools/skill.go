package tools

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

func init() {
	register(45, New(&harnessv1.ToolSpec{
		Name:   tree.SkillTool,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Read a skill: instructions for one kind of task, and the list of its files. With path, one of these files. " +
			"The system prompt names the skills.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"name":{"type":"string","minLength":1,"description":"Name of the skill."},` +
			`"path":{"type":"string","description":"File of the skill, relative to its folder. Left out: its instructions."}},` +
			`"required":["name"],"additionalProperties":false}`,
		Usage: "Before a task that a skill is for.",
		Annotations: &harnessv1.ToolAnnotations{
			Reads: true, Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_REPLAYABLE, PreservedFields: []string{"name", "path"},
		},
	}, func(_ context.Context, env *Environment, a skillArguments) Result { return env.Skill(a.Name, a.Path) }))
}

type skillArguments struct {
	Name string `json:"name"`
	Path string `json:"path"`
}
