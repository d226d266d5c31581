package tools

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/calculate"
)

func init() {
	register(130, New(&harnessv1.ToolSpec{
		Name:   webtool.Calculate,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Calculate the exact value of an arithmetic expression. Operators: + - * / % ^ and brackets. " +
			"Functions: abs, ceil, floor, max, min, round(x, digits), sqrt. Example: round(1234.5 * 1.19, 2).",
		ParametersSchema: `{"type":"object","properties":{` +
			`"expression":{"type":"string","minLength":1,"description":"The expression, at most 4096 bytes."}},` +
			`"required":["expression"],"additionalProperties":false}`,
		Usage: "For every calculation that is not trivial.",
		Annotations: &harnessv1.ToolAnnotations{
			Idempotent: true, ParallelSafe: true, Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		},
	}, func(_ context.Context, _ *Environment, a calculateArguments) Result {
		value, err := calculate.Evaluate(a.Expression)
		if err != nil {
			return Failed("The expression has no value: " + err.Error() + ".")
		}
		return Result{Text: value}
	}))
}

type calculateArguments struct {
	Expression string `json:"expression"`
}
