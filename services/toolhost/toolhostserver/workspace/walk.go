package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// MaxEntries is the maximum number of names read from one folder, to bound memory.
const MaxEntries = 50_000

// Walk calls visit for every file below start, sorted within each folder, until visit
// returns false. It does not follow links, and skips .git and what it cannot read.
func (w *Workspace) Walk(ctx context.Context, start string, visit func(name string, entry fs.DirEntry) bool) error {
	return fs.WalkDir(w.Root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == start:
			return err
		case entry != nil && entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case err != nil || entry.IsDir():
			return nil
		case !visit(name, entry):
			return fs.SkipAll
		}
		return nil
	})
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
