// Package workspace opens the folder that a run works in and keeps every access
// inside it.
//
// A workspace is a folder, not a path: when a run starts, Find follows the links to it once, and each
// call opens the path without links that Find has returned (Open). So a link that
// replaces a part of that path later ends the access and moves it nowhere.
//
// Paths in it may be absolute or relative and may lead over links, as long as they end inside
// the workspace. What keeps them inside is os.Root, which checks each part of a path as
// it opens it, so a link that is swapped during a call leads nowhere. The rest of this
// package only finds the name under which Root opens what a path means.
//
// Errors are for the model: disk.Reason returns their text without the paths of this machine.
package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// maxLinks is the maximum number of links that a path may lead over.
const maxLinks = 64

// errOutside reports a path that leads out of the workspace.
var errOutside = errors.New(disk.Outside)

// Workspace is an open workspace.
type Workspace struct {
	// Dir is the workspace's path, clean and without links.
	Dir string
	// Root confines every access to the workspace.
	Root *os.Root
	// Refuse returns why a file must not be written, nil if it may be. It gets the path as
	// the caller has it, and the file's name below the workspace, without links. Nil: every
	// file may be written.
	Refuse func(path, name string) error
	// Above returns the rules of the folders of the repository around the workspace, the
	// outermost first. Nil: there are none.
	Above func() []Rules

	self   *os.File // the folder
	hidden *PrivateFolder
}

// Open opens a folder as a workspace, by a path without links. The caller closes it.
func Open(dir string) (*Workspace, error) {
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Workspace{Dir: filepath.Clean(dir), Root: root, self: self}, nil
}

// Close releases the folder.
func (w *Workspace) Close() {
	_ = w.self.Close()
	_ = w.Root.Close()
}

// Folder returns the open folder. It is closed with the workspace.
func (w *Workspace) Folder() *os.File { return w.self }

// short returns the name of a path below the workspace as far as its text shows it,
// and otherwise the path itself.
func (w *Workspace) short(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(w.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Resolve follows the links of a path and returns its name below the workspace,
// without any link in it; parts that do not exist yet are unchanged. Links may change
// afterwards, so the name is no permission: Root checks it again.
func (w *Workspace) Resolve(path string) (string, error) {
	base := w.base()
	if !filepath.IsAbs(path) {
		path = base + "/" + path
	}
	target, err := follow(path, os.Readlink)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(base, target)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errOutside
	}
	return rel, nil
}

// follow walks an absolute path name by name and returns it without links. readlink
// returns an error for a name that is no link.
func follow(path string, readlink func(string) (string, error)) (string, error) {
	done, links := "", 0
	todo := strings.Split(path, "/")
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = done[:max(0, strings.LastIndexByte(done, '/'))]
			continue
		}
		target, err := readlink(done + "/" + name)
		if err != nil {
			done += "/" + name
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		if strings.HasPrefix(target, "/") {
			done = ""
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if done == "" {
		return "/", nil
	}
	return done, nil
}

// Open opens a file or folder for reading and returns its name below the workspace. It
// does not wait for the other end of a named pipe.
func (w *Workspace) Open(path string) (*os.File, string, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	rel := w.short(path)
	f, err := w.Root.OpenFile(rel, flags, 0)
	if err == nil {
		return w.visible(f, rel)
	}
	// os.Root follows no absolute links, not even those that end inside.
	resolved, resolveErr := w.Resolve(path)
	if resolveErr != nil {
		return nil, "", resolveErr
	}
	if resolved == rel {
		return nil, "", err
	}
	if f, err = w.Root.OpenFile(resolved, flags, 0); err != nil {
		return nil, "", err
	}
	return w.visible(f, resolved)
}

// OpenRegular opens a regular file for reading.
func (w *Workspace) OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	f, _, err := w.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("is a folder; look into it with list_directory")
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file")
	default:
		return f, info, nil
	}
	_ = f.Close()
	return nil, nil, err
}
