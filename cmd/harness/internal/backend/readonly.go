package backend

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// The embedded server opens its files for writing. So what a data directory contains that
// cannot be written, such as a backup or a read-only mount, is read from a copy.

// writable reports whether this process can use a data directory.
func writable(data string) bool {
	for _, dir := range append([]string{data}, node.Stored(data)) {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
			return false
		}
	}
	return true
}

// copyOf copies the runs of a data directory into a temporary one, which remove removes. No
// process uses the directory.
func copyOf(data string) (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "harness-read-"); err != nil {
		return "", nil, fmt.Errorf("data directory %s cannot be written, so a copy of it is read: %w", data, err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	if err := copyTree(node.Stored(data), node.Stored(dir)); err != nil {
		return "", nil, fmt.Errorf("data directory %s cannot be written, so a copy of it is read: %w; its files must be readable, and TMPDIR must have room for them", data, errors.Join(err, remove()))
	}
	return dir, remove, nil
}

// copyTree copies the folders and regular files of a folder. One that does not exist has none.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if path == from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch target := filepath.Join(to, name); {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case entry.Type().IsRegular():
			return copyFile(path, target)
		}
		return nil
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // shares the blocks where the file system can
	return errors.Join(err, out.Close())
}
