package tools

import (
	"context"
	"io/fs"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// FindFiles is the name of the tool that finds files by name.
const FindFiles = "find_files"

func init() {
	register(50, New(&harnessv1.ToolSpec{
		Name:   FindFiles,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Find files by name in the whole workspace. The pattern knows * and ? within a name, ** for any number of folders, " +
			"[a-z], and {a,b} for alternatives, as in src/**/*.{ts,tsx}. A pattern without a slash is looked for in every folder. " +
			"Returns paths, sorted. The .git folder and, unless include_ignored is true, what .gitignore names are left out.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"Pattern for the path relative to the workspace."},` +
			includeIgnored + `},` +
			`"required":["pattern"],"additionalProperties":false}`,
		Usage: "When you know a part of a file's name or path. Use it rather than find or ls -R; to look for text inside " +
			"files use search_files.",
		Annotations: exploring(),
	}, findFiles))
}

type findFilesArguments struct {
	Pattern string `json:"pattern"`
	Ignored bool   `json:"include_ignored"`
}

func findFiles(ctx context.Context, env *Environment, a findFilesArguments) Result {
	glob, err := toolhost.ParseGlob(a.Pattern)
	if err != nil {
		return Failed(err.Error() + ".")
	}
	var text strings.Builder
	found, more := 0, false
	left, err := env.Workspace.Walk(ctx, env.extent(".", a.Ignored, glob.Within()), func(name string, _ fs.DirEntry) bool {
		if !glob.Match(name) {
			return true
		}
		if more = found == env.Limits.Paths; more {
			return false
		}
		found++
		text.WriteString(name + "\n")
		return true
	})
	text.WriteString(boundsNote(left, env.Limits, "begin the pattern with the names of folders, such as a/b/**/*.go"))
	return exploreResult(ctx, err, &text, found, more, "No file matches."+leftOutNote(left))
}
