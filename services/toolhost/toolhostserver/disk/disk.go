// Package disk has the operations of the rooms of the tool host on files of this machine:
// reading a file that may be no regular one, replacing one in one step, removing a tree
// with read-only folders, and the text of an error without the paths of the machine.
//
// It has no state. It follows links, apart from OpenFolder and OpenRoot; within a folder os.Root follows none
// that leads out of it.
package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ReadSmall reads a regular file of at most limit bytes. It does not wait for the other
// end of a named pipe.
func ReadSmall(path string, limit int64) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	return readSmall(f, limit)
}

// ReadSmallIn is ReadSmall for a file of a folder: no part of the folder's path may be a link, and the file's path may not
// lead out of the folder.
func ReadSmallIn(folder, name string, limit int64) (string, error) {
	root, err := OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	return readSmall(f, limit)
}

// readSmall reads a file and closes it.
func readSmall(f *os.File, limit int64) (string, error) {
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errors.New("is larger than expected")
	}
	return string(content), err
}

// Replace replaces a file in one step. It is on disk when it returns.
func Replace(path string, data []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// RemoveAll removes a folder, and what tools have made read-only in it, as go mod does.
func RemoveAll(root string) {
	if os.RemoveAll(root) == nil {
		return
	}
	_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return nil
	})
	_ = os.RemoveAll(root)
}

// Exists reports whether there is anything at a path, a link included.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Within reports whether a path is a folder or below it, and returns its name there. Both are
// absolute.
func Within(folder, path string) (string, bool) {
	rel := Relative(folder, path)
	return rel, filepath.IsLocal(rel)
}

// Relative returns an absolute path relative to another absolute path.
func Relative(from, path string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil {
		return path
	}
	return rel
}

// WithoutLinks returns the absolute paths to which paths lead. What does not exist keeps its
// name.
func WithoutLinks(paths []string) []string {
	all := slices.Clone(paths)
	for i, path := range all {
		if absolute, err := filepath.Abs(path); err == nil {
			all[i], path = absolute, absolute
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			all[i] = target
		}
	}
	return all
}

// RandomName returns a name of n random bytes in hexadecimal.
func RandomName(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Outside is the reason of a path that leads out of its folder.
const Outside = "is outside the workspace; only paths inside it can be used"

// Reason returns the text of an error's cause, without the paths of this machine.
func Reason(err error) string {
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
		return Outside
	}
	return err.Error()
}
