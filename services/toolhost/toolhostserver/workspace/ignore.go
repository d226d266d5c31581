package workspace

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitignore"
)

// maxIgnoreBytes bounds a file of rules; a larger one has none.
const maxIgnoreBytes = 1 << 20

// Rules are those of one .gitignore file or of .git/info/exclude.
type Rules struct {
	// Below is the path from the folder of the rules to the workspace, with a slash at its
	// end; empty if they are in the workspace itself.
	Below string
	File  *gitignore.File
}

// LeftOut is what a walk has not visited because of .gitignore files.
type LeftOut struct {
	// Count of the files and folders, without the entries below the folders.
	Count int
	// First is the name of the first, a folder with a slash at its end.
	First string
	// Deep counts the folders that were too deep, without those below them; FirstDeep is the first.
	Deep      int
	FirstDeep string
	// Unvisited is where the walk was when its time was over; empty if it ended before.
	Unvisited string
}

// scope has the rules that hold in a folder, and those of the folders around it.
type scope struct {
	outer *scope
	// folder is where the file is, with a slash at its end; empty for the workspace.
	folder string
	// below is prepended to names, for rules of folders above the workspace.
	below string
	file  *gitignore.File
}

// leavesOut reports whether the rules leave out a file or folder.
func (s *scope) leavesOut(name string, folder bool) bool {
	for at := s; at != nil; at = at.outer {
		if leftOut, decided := at.file.Match(at.below+strings.TrimPrefix(name, at.folder), folder); decided {
			return leftOut
		}
	}
	return false
}

// enter returns the scope of a folder with these entries. A repository within another one has
// only its own rules.
func (w *walk) enter(outer *scope, dir *os.Root, folder string, entries []fs.DirEntry) *scope {
	if w.extent.All {
		return nil
	}
	prefix := ""
	if folder != "." {
		prefix = folder + "/"
	}
	if at := find(entries, ".git"); at != nil && (at.IsDir() || at.Type().IsRegular()) {
		outer = nil
		if at.IsDir() {
			outer = add(nil, dir, prefix, ".git/info/exclude")
		}
	}
	if at := find(entries, ".gitignore"); at != nil && at.Type().IsRegular() { // git follows no link here either
		outer = add(outer, dir, prefix, ".gitignore")
	}
	return outer
}

// add returns a scope with the rules of a file in a folder; the outer one if it cannot be read.
func add(outer *scope, dir *os.Root, folder, name string) *scope {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return outer
	}
	defer func() { _ = f.Close() }()
	rules := ReadRules(f)
	if rules == nil {
		return outer
	}
	return &scope{outer: outer, folder: folder, file: rules}
}

// ReadRules returns the rules in an open file; nil if it has none.
func ReadRules(f *os.File) *gitignore.File {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return nil
	}
	return gitignore.Parse(string(content))
}

// around returns the scope in which a folder of the workspace is: the rules of the folders
// above it.
func (w *walk) around(start string) *scope {
	if w.extent.All {
		return nil
	}
	var s *scope
	if w.workspace.Above != nil {
		for _, r := range w.workspace.Above() {
			s = &scope{outer: s, below: r.Below, file: r.File}
		}
	}
	if start == "." {
		return s
	}
	dir, at, rest := w.workspace.Root, ".", start
	defer func() {
		if dir != w.workspace.Root {
			_ = dir.Close()
		}
	}()
	for {
		entries, err := w.read(dir)
		if err != nil {
			return s
		}
		s = w.enter(s, dir, at, entries)
		next, others, more := strings.Cut(rest, "/")
		if !more {
			return s
		}
		child, err := dir.OpenRoot(next)
		if err != nil {
			return s
		}
		if dir != w.workspace.Root {
			_ = dir.Close()
		}
		dir, at, rest = child, path.Join(at, next), others
	}
}

func find(entries []fs.DirEntry, name string) fs.DirEntry {
	at, found := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	if !found {
		return nil
	}
	return entries[at]
}
