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
	"time"
)

// MaxEntries is the maximum number of names read from one folder, to bound memory.
const MaxEntries = 50_000

// maxRead is the number of names that are read from a folder between two checks of the
// context.
const maxRead = 1000

// Extent is how much of a workspace a walk visits.
type Extent struct {
	// Start is the folder or the file that it begins with, relative to the workspace.
	Start string
	// All includes what .gitignore files and .git/info/exclude name.
	All bool
	// Within has the folders that lead to the searched ones, such as a/b: other folders than these
	// and those below them are not visited. Empty: all are.
	Within string
	// Depth bounds the folders within each other, from Start or the last of Within on, and Time the duration. 0: none.
	Depth int
	Time  time.Duration
}

// Walk calls visit for every file of an extent, sorted within each folder, until visit
// returns false. It does not follow links, and skips .git, the hidden folder and what it
// cannot read. Unless all is set it leaves out what .gitignore files and .git/info/exclude
// name, but not start itself. Each folder is opened from the one that has it, so that the cost of one
// does not grow with its depth.
func (w *Workspace) Walk(ctx context.Context, e Extent, visit func(name string, entry fs.DirEntry) bool) (LeftOut, error) {
	if w.hides(e.Start) {
		return LeftOut{}, errHidden
	}
	info, err := w.Root.Lstat(e.Start)
	if err != nil {
		return LeftOut{}, err
	}
	if !info.IsDir() {
		visit(e.Start, fs.FileInfoToDirEntry(info))
		return LeftOut{}, ctx.Err()
	}
	walk := walk{ctx: ctx, workspace: w, hidden: w.hiddenName(), extent: e, visit: visit}
	if e.Time > 0 {
		walk.end = time.Now().Add(e.Time)
	}
	dir, err := w.Root.OpenRoot(e.Start)
	if err != nil {
		return LeftOut{}, err
	}
	defer func() { _ = dir.Close() }()
	_, err = walk.folder(dir, e.Start, walk.around(e.Start), 0)
	return walk.left, cmp.Or(ctx.Err(), err)
}

// walk is a walk through a workspace.
type walk struct {
	ctx       context.Context //nolint:containedctx // of one call
	workspace *Workspace
	hidden    string
	extent    Extent
	// end is when the walk ends; zero: it may take any time.
	end   time.Time
	left  LeftOut
	visit func(name string, entry fs.DirEntry) bool
}

// folder visits the entries below a folder, which is in a scope and depth folders below the first. It
// returns false if the walk is over, and an error if the folder cannot be read.
func (w *walk) folder(dir *os.Root, name string, around *scope, depth int) (more bool, err error) {
	entries, err := w.read(dir)
	if err != nil {
		return true, err
	}
	rules := w.enter(around, dir, name, entries)
	for _, entry := range entries {
		if w.ctx.Err() != nil {
			return false, nil
		}
		below := path.Join(name, entry.Name())
		if w.late(below) {
			return false, nil
		}
		switch {
		case entry.IsDir() && (entry.Name() == ".git" || below == w.hidden || !leadsTo(below, w.extent.Within)):
			continue
		case rules.leavesOut(below, entry.IsDir()):
			w.leave(below, entry)
			continue
		case !entry.IsDir():
			more = w.visit(below, entry)
		case w.tooDeep(below, depth+1):
			continue
		default:
			more = w.enterFolder(dir, below, entry.Name(), rules, depth+1)
		}
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// enterFolder visits the entries below a folder in dir. What cannot be opened is skipped.
func (w *walk) enterFolder(dir *os.Root, below, name string, rules *scope, depth int) (more bool) {
	child, err := dir.OpenRoot(name)
	if err != nil {
		return true
	}
	defer func() { _ = child.Close() }()
	more, _ = w.folder(child, below, rules, depth)
	return more
}

// leadsTo reports whether a folder is one of those that lead to within, or below it.
func leadsTo(folder, within string) bool {
	return within == "" || isBelow(folder, within) || isBelow(within, folder)
}

// tooDeep reports whether a folder is too deep to be visited, and counts it.
func (w *walk) tooDeep(name string, depth int) bool {
	if w.extent.Depth == 0 || depth <= w.extent.Depth || isBelow(w.extent.Within, name) ||
		w.extent.Within != "" && strings.Count(name, "/")-strings.Count(w.extent.Within, "/") <= w.extent.Depth {
		return false
	}
	if w.left.Deep++; w.left.Deep == 1 {
		w.left.FirstDeep = name
	}
	return true
}

// late reports whether the time of the walk is over, and notes where it ends.
func (w *walk) late(name string) bool {
	if w.end.IsZero() || time.Now().Before(w.end) {
		return false
	}
	w.left.Unvisited = name
	return true
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
func (w *walk) read(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
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
