package workspace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrInterrupted is returned by Replace if its context ended before the file changed.
var ErrInterrupted = errors.New("interrupted before the file changed")

// Replace stores content as a file in one step: a reader, also after a kill at any
// moment, finds the old content or the new one. Permissions and, if the system allows
// it, the owner are kept. With sync the content is on disk when Replace returns. It
// returns the file's name below the workspace.
func (w *Workspace) Replace(ctx context.Context, path, content string, sync bool) (rel string, err error) {
	if strings.HasSuffix(path, "/") {
		return "", errors.New("names a folder, not a file")
	}
	// A link is written through, never replaced.
	if rel, err = w.Resolve(path); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o666)
	old, err := w.Root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.Root.MkdirAll(filepath.Dir(rel), 0o777); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	case old.IsDir():
		return "", errors.New("is a folder")
	case !old.Mode().IsRegular():
		return "", errors.New("is not a regular file")
	case old.Mode().Perm()&0o222 == 0:
		return "", errors.New("is read-only")
	default:
		mode = old.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(rel), temporaryName())
	if err := w.create(name, content, mode, old, sync); err != nil {
		return "", errors.Join(err, ignoreMissing(w.Root.Remove(name)))
	}
	if ctx.Err() != nil {
		_ = w.Root.Remove(name)
		return "", ErrInterrupted
	}
	if err := w.Root.Rename(name, rel); err != nil {
		return "", errors.Join(err, ignoreMissing(w.Root.Remove(name)))
	}
	return rel, nil
}

// temporaryName returns a random name for a file that is renamed when it is complete.
func temporaryName() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return ".harness-" + hex.EncodeToString(b) + ".tmp"
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// create writes a new file. old is the file that it replaces, nil if there is none.
func (w *Workspace) create(name, content string, mode fs.FileMode, old fs.FileInfo, sync bool) error {
	f, err := w.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if old != nil {
		if stat, ok := old.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // only some users may
		}
		err = errors.Join(err, f.Chmod(mode))
	}
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}
