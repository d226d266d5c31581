package tools

import (
	"context"
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// WriteFile is the name of the tool that writes a whole file.
const WriteFile = "write_file"

func init() {
	register(20, New(&harnessv1.ToolSpec{
		Name:   WriteFile,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Create a file with the given content, or replace all of an existing one. Missing parent folders are created. " +
			"To change a part of a file use edit_file.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
			`"content":{"type":"string","description":"The whole new content."}},` +
			`"required":["path","content"],"additionalProperties":false}`,
		Usage: "For new files, and for files of which little stays. To change a part of a file use edit_file, which cannot " +
			"lose the rest.",
		Annotations: &harnessv1.ToolAnnotations{
			Writes: true, Idempotent: true,
			Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
			PreservedFields: []string{"path", "success"},
		},
	}, writeFile))
}

type writeFileArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFile(ctx context.Context, env *Environment, a writeFileArguments) Result {
	before, _ := contentOf(env.Workspace, env.Limits, a.Path) // a new file, and one that is too large, keep nothing
	stored, kept := toolhost.Rewrite(before, a.Content)
	text := fmt.Sprintf("Wrote %s: %d bytes, %d lines.", a.Path, len(stored), toolhost.CountLines(a.Content))
	if kept != "" {
		text += fmt.Sprintf(" The file's line ends are %s and were kept.", kept)
	}
	return replaceFile(ctx, env, a.Path, stored, text)
}

// replaceFile stores a file's content and returns text, or why it could not be stored.
func replaceFile(ctx context.Context, env *Environment, path, content, text string) Result {
	changed, err := env.Workspace.Replace(ctx, path, content, env.Sync)
	switch {
	case errors.Is(err, workspace.ErrInterrupted):
		return Result{Interrupted: true}
	case err != nil:
		return pathFailed(path, err)
	}
	return Result{Text: text, Changed: []string{changed}}
}
