package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/pattern"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// SearchFiles is the name of the tool that searches the contents of files.
const SearchFiles = "search_files"

func init() {
	register(60, New(&harnessv1.ToolSpec{
		Name:   SearchFiles,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Search the contents of files for a regular expression (RE2 syntax, one line at a time; (?i) ignores case). " +
			"Returns matching lines as path:line: text. Binary files, very large files, the .git folder and, unless include_ignored is true, what .gitignore names are left out. " +
			"Use it rather than grep.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"The regular expression."},` +
			`"path":{"type":"string","minLength":1,"description":"File or folder to search, relative to the workspace. Default: the whole workspace."},` +
			includeIgnored + `},` +
			`"required":["pattern"],"additionalProperties":false}`,
		Usage: "To find where something is defined or used. Use it rather than grep, narrow it with path when there are many " +
			"matches, and read the files that it names before you change them.",
		Annotations: exploring(),
	}, searchFiles))
}

type searchFilesArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Ignored bool   `json:"include_ignored"`
}

func searchFiles(ctx context.Context, env *Environment, a searchFilesArguments) Result {
	compiled, err := pattern.Compile(a.Pattern)
	if err != nil {
		return Failed(fmt.Sprintf("pattern: %s (RE2 syntax).", err))
	}
	start := "."
	if a.Path != "" {
		if start, err = env.Workspace.Resolve(a.Path); err != nil {
			return pathFailed(a.Path, err)
		}
		if _, err := env.Workspace.Root.Stat(start); err != nil {
			return pathFailed(a.Path, err)
		}
	}
	search := search{pattern: compiled, limits: env.Limits}
	left, err := env.Workspace.Walk(ctx, env.extent(start, a.Ignored, ""), func(name string, entry fs.DirEntry) bool {
		if entry.Type().IsRegular() {
			search.file(ctx, env.Workspace, name)
		}
		return !search.more
	})
	if search.large > 0 {
		fmt.Fprintf(&search.text, "[Not searched: %d files of more than %d bytes.]\n", search.large, env.Limits.FileBytes)
	}
	search.text.WriteString(boundsNote(left, env.Limits, "set path to a folder below"))
	return exploreResult(ctx, err, &search.text, search.found, search.more, "No match."+leftOutNote(left))
}

// search collects the matching lines of files.
type search struct {
	pattern *pattern.Pattern
	limits  toolhost.Limits
	text    strings.Builder
	buffer  bytes.Buffer
	found   int
	// Files that were too large.
	large int
	// A limit was reached.
	more bool
}

func (s *search) file(ctx context.Context, w *workspace.Workspace, name string) {
	f, _, err := w.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Size() > int64(s.limits.FileBytes) {
		s.large++
		return
	}
	s.buffer.Reset()
	if _, err := s.buffer.ReadFrom(io.LimitReader(f, int64(s.limits.FileBytes))); err != nil {
		return
	}
	content := s.buffer.Bytes()
	if isBinary(content) {
		return
	}
	for number := 1; len(content) > 0 && ctx.Err() == nil; number++ {
		line, rest, _ := bytes.Cut(content, []byte("\n"))
		content = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		match := s.pattern.Find(ctx, line)
		if match == nil {
			continue
		}
		if s.more = s.found == s.limits.Matches || s.text.Len() > s.limits.ResultBytes/2; s.more {
			return
		}
		s.found++
		fmt.Fprintf(&s.text, "%s:%d: %s\n", name, number, excerpt(line, match, s.limits.LineBytes))
	}
}

// excerpt returns the part of a line around a match, about limit bytes.
func excerpt(line []byte, match []int, limit int) string {
	if len(line) <= limit {
		return toolhost.Readable(string(line))
	}
	from := max(0, min(match[0]-limit/4, len(line)-limit))
	part := toolhost.Clip(strings.ToValidUTF8(string(line[from:]), ""), limit)
	if from > 0 {
		part = "…" + part
	}
	return part
}
