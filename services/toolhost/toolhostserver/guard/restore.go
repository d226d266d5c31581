package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

// apply puts a path back.
func (a *access) apply(f gitguard.Fix) error {
	root, name, err := a.open(f.Path)
	if err != nil {
		return err
	}
	if err = put(root, name, f.Put); errors.Is(err, fs.ErrPermission) {
		permit(root, path.Dir(name), 0o700)
		permit(root, name, 0o700)
		err = put(root, name, f.Put)
	}
	return err
}

func put(root *os.Root, name string, e gitguard.Entry) error {
	info, err := root.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch e.Kind {
	case gitguard.File:
		return putFile(root, name, info, e)
	case gitguard.Folder:
		if info != nil && info.IsDir() {
			return nil
		}
		return errors.Join(root.RemoveAll(name), root.MkdirAll(name, 0o755))
	case gitguard.Link:
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		return root.Symlink(string(e.Data), name)
	case gitguard.Missing:
		return root.RemoveAll(name)
	case gitguard.Other:
	}
	return fmt.Errorf("an entry of kind %d cannot be made", e.Kind)
}

// putFile replaces a file in one step. info describes the present file, nil for none.
func putFile(root *os.Root, name string, info fs.FileInfo, e gitguard.Entry) error {
	mode := fs.FileMode(0o644)
	switch {
	case info == nil:
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		mode = info.Mode().Perm() | 0o600
	default:
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	mode &^= 0o111
	if e.Executable {
		mode |= 0o111
	}
	temporary := name + ".harness-" + stamp()
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(e.Data)
	if owner, statErr := root.Lstat(path.Dir(name)); statErr == nil {
		if stat, ok := owner.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // only some users may
		}
	}
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
