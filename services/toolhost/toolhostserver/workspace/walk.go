package workspace

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MaxEntries is the maximum number of names read from one folder, to bound memory.
const MaxEntries = 50_000

// maxRead is the number of names that are read from a folder between two checks of the
// context.
const maxRead = 1000

// Walk calls visit for every file below start, sorted within each folder, until visit
// returns false. It does not follow links, and skips .git, the hidden folder and what it
// cannot read. Unless all is set it leaves out what .gitignore files and .git/info/exclude
// name, but not start itself.
func (w *Workspace) Walk(ctx context.Context, start string, all bool, visit func(name string, entry fs.DirEntry) bool) (LeftOut, error) {
	if w.hides(start) {
		return LeftOut{}, errHidden
	}
	info, err := w.Root.Lstat(start)
	if err != nil {
		return LeftOut{}, err
	}
	if !info.IsDir() {
		visit(start, fs.FileInfoToDirEntry(info))
		return LeftOut{}, ctx.Err()
	}
	walk := walk{ctx: ctx, workspace: w, hidden: w.hiddenName(), all: all, visit: visit}
	_, err = walk.folder(start, walk.around(start))
	return walk.left, cmp.Or(ctx.Err(), err)
}

// walk is a walk through a workspace.
type walk struct {
	ctx       context.Context //nolint:containedctx // of one call
	workspace *Workspace
	hidden    string
	// all visits the files that .gitignore files name too; left counts the others.
	all   bool
	left  LeftOut
	visit func(name string, entry fs.DirEntry) bool
}

// folder visits the entries below a folder, which is in a scope. It returns false if the walk
// is over, and an error if the folder cannot be read.
func (w *walk) folder(name string, around *scope) (more bool, err error) {
	entries, err := w.read(name)
	if err != nil {
		return true, err
	}
	rules := w.enter(around, name, entries)
	for _, entry := range entries {
		if w.ctx.Err() != nil {
			return false, nil
		}
		below := path.Join(name, entry.Name())
		switch {
		case entry.IsDir() && (entry.Name() == ".git" || below == w.hidden):
			continue
		case rules.leavesOut(below, entry.IsDir()):
			w.leave(below, entry)
			continue
		case !entry.IsDir():
			more = w.visit(below, entry)
		default:
			more, _ = w.folder(below, rules)
		}
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// leave counts an entry that is not visited.
func (w *walk) leave(name string, entry fs.DirEntry) {
	if w.left.Count++; w.left.Count > 1 {
		return
	}
	if w.left.First = name; entry.IsDir() {
		w.left.First += "/"
	}
}

// read returns the entries of a folder, sorted by name.
func (w *walk) read(name string) ([]fs.DirEntry, error) {
	f, err := w.workspace.Root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe may be there by now
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []fs.DirEntry
	for w.ctx.Err() == nil {
		some, err := f.ReadDir(maxRead)
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	SortEntries(entries)
	return entries, nil
}

// hiddenName returns the name of the hidden folder below the workspace, empty if it has
// none.
func (w *Workspace) hiddenName() string {
	at := w.hiddenPath()
	if at == "" {
		return ""
	}
	name, err := filepath.Rel(w.base(), at)
	if err != nil {
		return ""
	}
	return name
}

// readSorted returns the entries of a folder, sorted by name, at most MaxEntries.
func readSorted(files fs.FS, name string) ([]fs.DirEntry, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("is not a folder")
	}
	entries, err := dir.ReadDir(MaxEntries)
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return nil, err
	}
	SortEntries(entries)
	return entries, nil
}

// SortEntries sorts the entries of a folder by name.
func SortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}
