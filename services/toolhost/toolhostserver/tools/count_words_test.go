package tools

import (
	"context"
	"fmt"
	"io"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// CountWords is the name of a tool that exists only in tests. This file is everything
// that a new tool needs; service_test.go calls it as a worker does.
const CountWords = "count_words"

func init() {
	register(1000, New(&harnessv1.ToolSpec{
		Name:        CountWords,
		Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Count the words of a text file.",
		ParametersSchema: `{"type":"object","properties":{"path":{"type":"string","minLength":1}},` +
			`"required":["path"],"additionalProperties":false}`,
		Usage: "To see how long a text is.",
		Annotations: &harnessv1.ToolAnnotations{
			Reads: true, Idempotent: true, ParallelSafe: true,
			Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		},
	}, countWords))
}

type countWordsArguments struct {
	Path string `json:"path"`
}

func countWords(_ context.Context, env *Environment, a countWordsArguments) Result {
	f, _, err := env.Workspace.OpenRegular(a.Path)
	if err != nil {
		return pathFailed(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, int64(env.Limits.FileBytes)))
	if err != nil {
		return pathFailed(a.Path, err)
	}
	return Result{Text: fmt.Sprintf("%s: %d words.", a.Path, len(strings.Fields(string(content))))}
}
