//go:build !linux

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// open opens a path and compares what it leads to before and after: on this system a
// program of the user that replaces parts of the path at the right moments is not noticed.
func open(path string, folder bool) (*os.File, error) {
	if err := withoutLinks(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && folder && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err = errors.Join(err, withoutLinks(path)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func withoutLinks(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err == nil && target != path {
		err = &os.PathError{Op: "open", Path: path, Err: ErrLink}
	}
	return err
}

// RootOf returns a root of an open folder.
func RootOf(f *os.File) (*os.Root, error) { return os.OpenRoot(f.Name()) }

// ByDescriptor returns the path by which an open file was opened.
func ByDescriptor(f *os.File) string { return f.Name() }

// PathOf returns where a file is that was opened by an absolute path, without links; empty for
// other files.
func PathOf(f *os.File) string {
	if !filepath.IsAbs(f.Name()) {
		return ""
	}
	path, err := filepath.EvalSymlinks(f.Name())
	if err != nil {
		return ""
	}
	return path
}
