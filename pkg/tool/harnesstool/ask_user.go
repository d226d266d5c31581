package harnesstool

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// AskUser is the name of the tool that asks the user a question.
const AskUser = "ask_user"

var _ = register(70, &Tool{
	Tool: tool.Tool[Run]{Spec: &harnessv1.ToolSpec{
		Name: AskUser,
		Description: "Ask the user a question and wait for the answer, which may take days. Use it only when the task cannot go on " +
			"without something that only the user knows or may decide.",
		ParametersSchema: `{"type":"object","properties":{"question":{"type":"string","minLength":1,"description":"One question, with what the user has to know to answer it."},` +
			`"options":{"type":"array","items":{"type":"string"},"description":"Answers to choose from, if there are some that fit."}},"required":["question"]}`,
		Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
		Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE},
	}},
	Enabled:      func(s Setting) bool { return s.Questions },
	Unrestricted: true,
	Reserved:     true,
	Question:     question,
})

// question returns the question in the arguments, which have passed the schema.
func question(arguments string) string {
	given, _ := tool.Arguments[struct {
		Question string `json:"question"`
	}](arguments)
	return given.Question
}
