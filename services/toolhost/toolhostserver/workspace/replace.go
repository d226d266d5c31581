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
	if w.hides(rel) {
		return "", errHidden
	}
	if w.Refuse != nil {
		if err := w.Refuse(path, rel); err != nil {
			return "", err
		}
	}
	folder, err := w.folderOf(rel)
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	return rel, replace(ctx, folder, filepath.Base(rel), content, sync)
}

// folderOf opens the folder of a file, and makes it if it is missing. Links that are made
// afterwards do not change where the file is written.
func (w *Workspace) folderOf(rel string) (*os.Root, error) {
	name := filepath.Dir(rel)
	switch info, err := w.Root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.Root.MkdirAll(name, 0o777); err != nil {
			return nil, err
		}
	case err == nil && !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	folder, err := w.Root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := w.checkFolder(folder, name); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// checkFolder returns an error if an open folder is not the one with a name, because a part of
// its path was replaced by a link in the meantime.
func (w *Workspace) checkFolder(folder *os.Root, name string) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if w.pathOf(f, name) != filepath.Join(w.base(), name) {
		return errors.New("a part of the path was moved during the call")
	}
	return nil
}

// replace stores content as a file of a folder.
func replace(ctx context.Context, folder *os.Root, base, content string, sync bool) error {
	mode := fs.FileMode(0o666)
	old, err := folder.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case old.IsDir():
		return errors.New("is a folder")
	case !old.Mode().IsRegular():
		return errors.New("is not a regular file")
	case old.Mode().Perm()&0o222 == 0:
		return errors.New("is read-only")
	default:
		mode = old.Mode().Perm()
	}
	name := temporaryName()
	if err := create(folder, name, content, mode, old, sync); err != nil {
		return errors.Join(err, ignoreMissing(folder.Remove(name)))
	}
	if ctx.Err() != nil {
		_ = folder.Remove(name)
		return ErrInterrupted
	}
	if err := folder.Rename(name, base); err != nil {
		return errors.Join(err, ignoreMissing(folder.Remove(name)))
	}
	return nil
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
func create(folder *os.Root, name, content string, mode fs.FileMode, old fs.FileInfo, sync bool) error {
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
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
