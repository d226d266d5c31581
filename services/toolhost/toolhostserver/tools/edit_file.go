package tools

import (
	"context"
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// EditFile is the name of the tool that replaces a text in a file.
const EditFile = "edit_file"

func init() {
	register(30, New(&harnessv1.ToolSpec{
		Name:   EditFile,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Replace one piece of text in a file. old has to occur exactly once in the file, character for character, " +
			"with its indentation and line breaks; include enough of the lines around it to make it unique. " +
			"Read the file first. An empty new deletes the text.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
			`"old":{"type":"string","minLength":1,"description":"The text to replace, exactly as it stands in the file."},` +
			`"new":{"type":"string","description":"The text to put in its place."}},` +
			`"required":["path","old","new"],"additionalProperties":false}`,
		Usage: "For changes to existing files, rather than write_file or sed. When old is not found, read the file again and " +
			"copy the text exactly; when it occurs more than once, add lines around it.",
		Annotations: &harnessv1.ToolAnnotations{
			Writes:          true,
			Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
			PreservedFields: []string{"path", "success"},
		},
	}, editFile))
}

type editFileArguments struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

func editFile(ctx context.Context, env *Environment, a editFileArguments) Result {
	content, err := contentOf(env.Workspace, env.Limits, a.Path)
	var large largeError
	if errors.As(err, &large) {
		return Failed(fmt.Sprintf("%s: has %d bytes; edit_file changes files of up to %d. Use a command such as sed.", a.Path, int64(large), env.Limits.FileBytes))
	}
	if err != nil {
		return pathFailed(a.Path, err)
	}
	edited, line, err := toolhost.ReplaceOnce(content, a.Old, a.New)
	if err != nil {
		return Failed(fmt.Sprintf("%s: %s.", a.Path, err))
	}
	return replaceFile(ctx, env, a.Path, edited, fmt.Sprintf("Edited %s at line %d: %d lines became %d.",
		a.Path, line, toolhost.CountLines(a.Old), toolhost.CountLines(a.New)))
}
