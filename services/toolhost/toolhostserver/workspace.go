package toolhostserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxLinks is how many links a path may lead over.
const maxLinks = 64

// errOutside says that a path leads out of the workspace.
var errOutside = errors.New("is outside the workspace; only paths inside it can be used")

// workspace is an opened workspace. What keeps paths inside is root alone; the
// rest only finds the name under which root will open what a path means.
type workspace struct {
	dir  string
	root *os.Root
}

// checkWorkspacePath refuses what can be no workspace.
func checkWorkspacePath(dir string) error {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return unusable(dir, errors.New("it is not an absolute path"))
	}
	return nil
}

func unusable(dir string, cause error) error {
	e := fault.New(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE,
		fmt.Sprintf("workspace %q cannot be used: %s; name an existing folder that the tool host can read", dir, plain(cause)),
		"workspace", dir)
	e.Err = cause
	return e
}

func openWorkspace(dir string) (*workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &workspace{dir: filepath.Clean(dir), root: root}, nil
}

func (w *workspace) close() { _ = w.root.Close() }

// short is the name of a path below the workspace, as far as its text says;
// the path as it is where it says nothing.
func (w *workspace) short(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(w.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// resolve follows the links of a path as they are now and returns its name
// below the workspace, without any link in it; what does not exist yet stays as
// it is. Links may change afterwards: the name is no permission, root asks again.
func (w *workspace) resolve(path string) (string, error) {
	base, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		return "", err
	}
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

// follow walks an absolute path name by name. readlink fails for what is no link.
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

// open opens a file or folder for reading and returns its name below the
// workspace. It does not wait for the other end of a pipe.
func (w *workspace) open(path string) (*os.File, string, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	rel := w.short(path)
	f, err := w.root.OpenFile(rel, flags, 0)
	if err == nil {
		return f, rel, nil
	}
	// os.Root follows no absolute links, not even those that stay inside.
	resolved, resolveErr := w.resolve(path)
	if resolveErr != nil {
		return nil, "", resolveErr
	}
	if resolved == rel {
		return nil, "", err
	}
	f, err = w.root.OpenFile(resolved, flags, 0)
	return f, resolved, err
}

// openRegular opens a regular file for reading.
func (w *workspace) openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, _, err := w.open(path)
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

// refused is what the model reads when a path could not be used.
func refused(path string, err error) effect {
	return failed(fmt.Sprintf("%s: %s.", path, plain(err)))
}

// plain is the cause without the paths of this machine around it.
func plain(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		err = linkErr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file or folder"
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is a file, not a folder"
	case strings.Contains(err.Error(), "path escapes from parent"):
		return errOutside.Error()
	}
	return err.Error()
}
