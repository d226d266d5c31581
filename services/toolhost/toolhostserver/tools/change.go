package tools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// change is what a call would change in a file.
type change struct {
	Path string
	// Exists is false for a new file.
	Exists        bool
	Before, After string
}

// largeError is the size of a file that has more bytes than the tools edit.
type largeError int64

func (e largeError) Error() string { return fmt.Sprintf("has %d bytes", int64(e)) }

// contentOf returns the content of a regular file. Errors: those of the file system, and largeError.
func contentOf(w *workspace.Workspace, limits toolhost.Limits, path string) (string, error) {
	f, info, err := w.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > int64(limits.FileBytes) {
		return "", largeError(info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limits.FileBytes)))
	return string(data), err
}

// changers are the tools that change one file, known before they run: each returns the path,
// and the file's new content from its present one.
var changers = map[string]func(arguments string) (path string, after func(before string) (string, error), err error){
	WriteFile: func(arguments string) (string, func(string) (string, error), error) {
		a, err := tool.Arguments[writeFileArguments](arguments)
		return a.Path, func(before string) (string, error) {
			after, _ := toolhost.Rewrite(before, a.Content)
			return after, nil
		}, err
	},
	EditFile: func(arguments string) (string, func(string) (string, error), error) {
		a, err := tool.Arguments[editFileArguments](arguments)
		return a.Path, func(before string) (string, error) {
			after, _, err := toolhost.ReplaceOnce(before, a.Old, a.New)
			return after, err
		}, err
	},
}

// changeOf returns what a call of such a tool would change in the present workspace. The error
// is why that is not known, for a person.
func changeOf(w *workspace.Workspace, limits toolhost.Limits, name, arguments string) (change, error) {
	path, after, err := changers[name](arguments)
	if err != nil {
		return change{}, err
	}
	c := change{Path: path}
	before, err := contentOf(w, limits, path)
	var large largeError
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.As(err, &large):
		return c, fmt.Errorf("%s has %d bytes, too many to show what changes", path, int64(large))
	case err != nil:
		return c, fmt.Errorf("%s: %s", path, disk.Reason(err))
	default:
		c.Exists, c.Before = true, before
	}
	if !c.Exists && name == EditFile {
		return c, fmt.Errorf("%s does not exist", path)
	}
	if c.After, err = after(c.Before); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
