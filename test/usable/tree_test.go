//go:build linux && usable

package usable

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// state is what is known of a file without reading it.
type state struct {
	mode    fs.FileMode
	size    int64
	written int64 // when its content was written
	changed int64 // when anything of it was changed
	inode   uint64
}

// tree is a folder that is put back after each command. The copy has what it held.
type tree struct {
	dir, copy string
	files     map[string]state
}

// newTree copies a folder.
func newTree(dir, copied string) (*tree, error) {
	if output, err := exec.Command("cp", "-a", dir, copied).CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(output)))
	}
	files, err := list(dir)
	return &tree{dir: dir, copy: copied, files: files}, err
}

// list returns the files of a folder.
func list(dir string) (map[string]state, error) {
	files := map[string]state{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // has vanished
		}
		if err != nil {
			return err
		}
		system := info.Sys().(*syscall.Stat_t)
		s := state{mode: info.Mode(), inode: system.Ino}
		if !entry.IsDir() {
			s.size, s.written, s.changed = info.Size(), info.ModTime().UnixNano(), system.Ctim.Nano()
		}
		files[name] = s
		return nil
	})
	return files, err
}

// changes returns what is different from before: names with + for a new file, - for one that is
// gone and ~ for another content. Folders and the files of git are left out.
func (t *tree) changes() ([]string, error) {
	now, err := list(t.dir)
	if err != nil {
		return nil, err
	}
	var all []string
	add := func(mark, name string, s state) {
		if !s.mode.IsDir() && name != ".git" && !strings.HasPrefix(name, ".git/") {
			all = append(all, mark+name)
		}
	}
	for name, s := range now {
		before, found := t.files[name]
		switch {
		case !found:
			add("+", name, s)
		case before.size != s.size || before.written != s.written || before.mode != s.mode:
			add("~", name, s)
		}
	}
	for name, s := range t.files {
		if _, found := now[name]; !found {
			add("-", name, s)
		}
	}
	slices.Sort(all)
	return all, nil
}

// restore puts back what is different.
func (t *tree) restore() error {
	now, err := list(t.dir)
	if err != nil {
		return err
	}
	for name, s := range now {
		if before, found := t.files[name]; !found || before.mode.Type() != s.mode.Type() {
			if err := remove(filepath.Join(t.dir, name)); err != nil {
				return err
			}
			delete(now, name)
		}
	}
	var back []string
	for name, before := range t.files {
		if s, found := now[name]; !found || s != before {
			back = append(back, name)
		}
	}
	slices.Sort(back) // folders first
	return t.copyBack(back)
}

// copyTogether is how many files one process copies.
const copyTogether = 500

// copyBack puts files back, with their times.
func (t *tree) copyBack(names []string) error {
	var files []string
	for _, name := range names {
		to, mode := filepath.Join(t.dir, name), t.files[name].mode
		if !mode.IsDir() {
			files = append(files, name)
			continue
		}
		if err := errors.Join(os.MkdirAll(to, mode.Perm()), os.Chmod(to, mode.Perm())); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(files, copyTogether) {
		cmd := exec.Command("cp", append([]string{"-a", "--parents", "--remove-destination", "-t", t.dir, "--"}, some...)...)
		cmd.Dir = t.copy
		if output, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(err, errors.New(string(output)))
		}
	}
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(t.dir, name))
		if err != nil {
			return err
		}
		system := info.Sys().(*syscall.Stat_t)
		s := t.files[name]
		s.changed, s.inode = system.Ctim.Nano(), system.Ino
		t.files[name] = s
	}
	return nil
}
