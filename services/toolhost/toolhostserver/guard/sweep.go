package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

const (
	// maxSwept bounds the folders in which repositories are looked for that a call may have made
	// beyond those that are searched, and sweepTime the time for it.
	maxSwept  = 1_000_000
	sweepTime = 20 * time.Second
)

// A workspace with more folders than are searched has repositories that are not in the snapshot before
// a call. After the call the others are swept: a repository there whose configuration, hooks or pointers
// have changed since the call began has nothing to be compared with, and so counts as made by the call.
// One that has not changed is the user's, and is left, unless it was not there at an earlier sweep and
// a folder above it has changed: the call may have moved it there. This also holds for repositories that come
// into the searched part because the call has removed folders.

// sweep leaves, in found, repositories that the call has not changed, and adds those beyond the search that it has.
// It returns a note for the result of the call; empty if all
// was searched.
func (w *Watch) sweep(f *found) string {
	if w.alive == nil || !w.partial && len(f.rest) == 0 {
		return ""
	}
	w.guard.mu.Lock()
	w.leave(f)
	w.guard.mu.Unlock()
	t, ids := w.guard.finder.tree(w.workspace), map[string]bool{}
	end := time.Now().Add(sweepTime)
	rest, swept := slices.Clone(f.rest), 0
	for ; len(rest) > 0 && swept < maxSwept && (swept%1000 != 0 || time.Now().Before(end)); swept++ {
		path := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		n := node{}
		if path == w.guard.hidden || !n.read(path, &scarcity{}) {
			continue
		}
		if n.git || n.isBare {
			ids[gitID(path)] = true
		}
		switch {
		case !n.git && !n.isBare || !w.touched(path):
		case n.git:
			f.gits = append(f.gits, path)
		default:
			f.bare = append(f.bare, path)
		}
		for _, child := range n.folders {
			rest = append(rest, path+"/"+child.name)
		}
	}
	t.sweep(ids)
	if len(rest) > 0 {
		w.guard.log.Error("a workspace has so many folders that a call can hide repositories in them", "workspace", w.workspace, "swept", swept)
	}
	return gitguard.PartialText(maxFolders, len(rest) > 0)
}

// leave removes the repositories that are not known, and that the call has not changed, from those found in
// a workspace that is searched in part. Guard.mu is locked.
func (w *Watch) leave(f *found) {
	if !w.partial && len(f.rest) == 0 {
		return
	}
	unchanged := func(folder string) bool {
		_, pointer := w.before.Pointers[folder+"/.git"]
		return !pointer && w.before.Repositories[folder+"/.git"] == nil && w.before.Repositories[folder] == nil && !w.touched(folder)
	}
	f.gits, f.bare = slices.DeleteFunc(slices.Clone(f.gits), unchanged), slices.DeleteFunc(slices.Clone(f.bare), unchanged)
}

// touched reports whether the call has changed, made or moved a repository that is not known.
func (w *Watch) touched(folder string) bool {
	since := w.since()
	if changedSince(folder, since) {
		return true
	}
	if w.guard.finder.tree(w.workspace).wasSwept(gitID(folder)) {
		return false
	}
	for at := folder; len(at) > len(w.workspace); at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && !time.Unix(0, changed(info)).Before(since) {
			return true
		}
	}
	return false
}

// gitID identifies the repository in a folder, also after it is moved.
func gitID(folder string) string {
	for _, path := range []string{folder + "/.git", folder} {
		if info, err := os.Lstat(path); err == nil {
			return identity(info)
		}
	}
	return ""
}

// sweep remembers the repositories beyond the search.
func (t *tree) sweep(ids map[string]bool) {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	t.swept = ids
}

// wasSwept reports whether a repository was there at the last sweep, or there was none.
func (t *tree) wasSwept(id string) bool {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	return t.swept == nil || t.swept[id]
}

// since returns the time from which on a change is one of the call.
func (w *Watch) since() time.Time {
	if !keepsTimes(w.workspace) {
		return w.began.Add(-settled)
	}
	return w.began.Add(-10 * time.Millisecond) // the kernel's times are coarse
}

// changedSince reports whether what git runs programs by in a folder with .git, or in a bare repository,
// has changed since a time.
func changedSince(folder string, since time.Time) bool {
	paths := []string{folder + "/.git", folder + "/.git/hooks", folder + "/hooks"}
	for _, name := range []string{"config", "config.worktree", "commondir"} {
		paths = append(paths, folder+"/.git/"+name, folder+"/"+name)
	}
	for _, hooks := range []string{folder + "/.git/hooks", folder + "/hooks"} {
		entries, _ := os.ReadDir(hooks)
		for _, e := range entries {
			if !gitguard.IsSample(e.Name()) {
				paths = append(paths, hooks+"/"+e.Name())
			}
		}
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		if info.IsDir() && (filepath.Base(path) == ".git" || strings.HasSuffix(path, "/.git")) {
			return false // each commit changes it; files put there have their own time
		}
		return !time.Unix(0, changed(info)).Before(since)
	})
}
