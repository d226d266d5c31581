package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// ListDirectory is the name of the tool that lists a folder.
const ListDirectory = "list_directory"

func init() {
	register(40, New(&harnessv1.ToolSpec{
		Name:   ListDirectory,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "List what is in one folder: a name a line, folders with a slash at the end, files with their size in bytes. " +
			"To look through folders below it use find_files.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"Path of the folder, relative to the workspace. Default: the workspace itself."}},` +
			`"required":[],"additionalProperties":false}`,
		Usage: "For a first look at one folder. When you know what you look for, find_files or search_files gets there in one " +
			"call.",
		Annotations: exploring(),
	}, listDirectory))
}

type listDirectoryArguments struct {
	Path string `json:"path"`
}

func listDirectory(_ context.Context, env *Environment, a listDirectoryArguments) Result {
	if a.Path == "" {
		a.Path = "."
	}
	f, name, err := env.Workspace.Open(a.Path)
	if err != nil {
		return pathFailed(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(workspace.MaxEntries)
	switch {
	case errors.Is(err, io.EOF):
		return Result{Text: "[The folder is empty.]"}
	case errors.Is(err, syscall.ENOTDIR):
		return Failed(a.Path + ": is a file, not a folder; use read_file.")
	case err != nil:
		return pathFailed(a.Path, err)
	}
	entries = env.Workspace.Visible(f, name, entries)
	workspace.SortEntries(entries)
	var text strings.Builder
	for i, entry := range entries {
		if i == env.Limits.Paths {
			fmt.Fprintf(&text, "[%d more; use find_files with a pattern.]\n", len(entries)-i)
			break
		}
		text.WriteString(entryLine(env.Workspace, path.Join(name, entry.Name()), entry))
	}
	return Result{Text: text.String()}
}

// entryLine returns the line for an entry of a folder. It uses Root instead of the
// entry's own methods, which would look outside if the folder was swapped.
func entryLine(w *workspace.Workspace, name string, entry fs.DirEntry) string {
	shown := toolhost.Clip(entry.Name(), 255)
	switch {
	case entry.IsDir():
		return shown + "/\n"
	case entry.Type()&fs.ModeSymlink != 0:
		if target, err := w.Root.Readlink(name); err == nil {
			return shown + " -> " + toolhost.Clip(target, 255) + "\n"
		}
	case entry.Type().IsRegular():
		if info, err := w.Root.Lstat(name); err == nil {
			return fmt.Sprintf("%s  %d\n", shown, info.Size())
		}
	}
	return shown + "\n"
}
