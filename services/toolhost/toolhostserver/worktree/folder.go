package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// treeFolder is an open folder whose files are read as git has them: links are not followed.
type treeFolder struct {
	ctx  context.Context //nolint:containedctx // of one operation: its end ends reads of large files
	root *os.Root
	// plain reports, of paths looked at before, whether they are folders, and not links.
	plain map[string]bool
}

// openTree opens a folder. The caller closes it.
func openTree(ctx context.Context, dir string) (*treeFolder, error) {
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &treeFolder{ctx: ctx, root: root, plain: map[string]bool{}}, nil
}

func (t *treeFolder) close() { _ = t.root.Close() }

// blocked returns the first folder above a path that is not a plain folder, with whether
// anything is there; empty if there is none.
func (t *treeFolder) blocked(name string) (at string, found bool) {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		folder := name[:i]
		if t.plain[folder] {
			continue
		}
		info, err := t.root.Lstat(folder)
		if err != nil || !info.IsDir() {
			return folder, err == nil
		}
		t.plain[folder] = true
	}
	return "", false
}

// mode returns the mode of the entry at a path.
func (t *treeFolder) mode(name string) (toolhost.FileMode, fs.FileInfo, error) {
	if at, _ := t.blocked(name); at != "" {
		return toolhost.NoFile, nil, nil
	}
	info, err := t.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return toolhost.NoFile, nil, nil
	case err != nil:
		return toolhost.NoFile, nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return toolhost.Symlink, info, nil
	case info.IsDir():
		return toolhost.Directory, info, nil
	case !info.Mode().IsRegular():
		return toolhost.NoFile, info, nil
	case info.Mode().Perm()&0o100 != 0:
		return toolhost.Executable, info, nil
	}
	return toolhost.Regular, info, nil
}

// read returns the entry at a path, and writes its content to to, unless that is nil.
func (t *treeFolder) read(name string, to io.Writer) (toolhost.TreeFile, error) {
	mode, _, err := t.mode(name)
	f := toolhost.TreeFile{Mode: mode}
	switch {
	case err != nil || mode == toolhost.NoFile || mode == toolhost.Directory:
		return f, err
	case mode == toolhost.Symlink:
		target, err := t.root.Readlink(name)
		if err == nil && to != nil {
			_, err = io.WriteString(to, target)
		}
		f.Size, f.Digest = int64(len(target)), digestOf(target)
		return f, err
	}
	file, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return f, err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	writer := io.Writer(sum)
	if to != nil {
		writer = io.MultiWriter(sum, to)
	}
	f.Size, err = io.Copy(writer, interruptible{t.ctx, file})
	f.Digest = hex.EncodeToString(sum.Sum(nil))
	return f, err
}

// interruptible is a reader that fails once a context has ended.
type interruptible struct {
	ctx  context.Context //nolint:containedctx // of one read
	from io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// copyFrom copies a file of another folder, links as links. It returns what it has copied.
func (t *treeFolder) copyFrom(from *treeFolder, name string) (toolhost.TreeFile, error) {
	mode, info, err := from.mode(name)
	if err != nil || info == nil || mode == toolhost.Directory || mode == toolhost.NoFile {
		return toolhost.TreeFile{}, err
	}
	if err := t.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return toolhost.TreeFile{}, err
	}
	if mode == toolhost.Symlink {
		var target strings.Builder
		f, err := from.read(name, &target)
		if err != nil {
			return f, err
		}
		return f, t.root.Symlink(target.String(), name)
	}
	file, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return toolhost.TreeFile{}, err
	}
	f, err := from.read(name, file)
	return f, errors.Join(err, file.Close())
}

// scan returns the files at some paths. Other entries, such as folders, are left out.
func (t *treeFolder) scan(names []string) (map[string]toolhost.TreeFile, error) {
	files := make(map[string]toolhost.TreeFile, len(names))
	for _, name := range names {
		if t.ctx.Err() != nil {
			return nil, context.Cause(t.ctx)
		}
		f, err := t.read(name, nil)
		if err != nil {
			return nil, err
		}
		if f.Mode != toolhost.NoFile && f.Mode != toolhost.Directory {
			files[name] = f
		}
	}
	return files, nil
}

// below reports whether a path is one of some folders and files, or in one. All are absolute.
func below(at string, folders []string) bool {
	for _, folder := range folders {
		if _, inside := disk.Within(folder, at); inside || filepath.Clean(folder) == at {
			return true
		}
	}
	return false
}
