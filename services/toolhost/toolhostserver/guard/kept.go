package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

const (
	// maxKept bounds the calls of which something is kept, maxKeptBytes all of it, and
	// maxKeptFile one file.
	maxKept      = 200
	maxKeptBytes = 64 << 20
	maxKeptFile  = 16 << 20
)

// keep copies the entries that fixes replace into a folder of the host, and returns that folder.
func (g *Guard) keep(a *access, fixes []gitguard.Fix) (string, error) {
	place := filepath.Join(g.kept, stamp())
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", err
	}
	var list strings.Builder
	var errs []error
	for i, f := range fixes {
		name := fmt.Sprintf("%03d-%s", i, filepath.Base(f.Path))
		switch f.Was.Kind {
		case gitguard.File:
			errs = append(errs, keepFile(a, f, filepath.Join(place, name)))
			fmt.Fprintf(&list, "%s: file %q, executable %t\n", name, f.Path, f.Was.Executable)
		case gitguard.Link:
			fmt.Fprintf(&list, "-: link %q to %q\n", f.Path, f.Was.Data)
		case gitguard.Missing:
			fmt.Fprintf(&list, "-: %q was missing\n", f.Path)
		case gitguard.Folder, gitguard.Other:
			fmt.Fprintf(&list, "-: %q was no file\n", f.Path)
		}
	}
	errs = append(errs, os.WriteFile(filepath.Join(place, "LIST"), []byte(list.String()), 0o600))
	g.prune()
	return place, errors.Join(errs...)
}

// keepFile copies a file, or as much of it as is kept.
func keepFile(a *access, f gitguard.Fix, to string) error {
	if f.Was.Digest == "" {
		return os.WriteFile(to, f.Was.Data, 0o600)
	}
	root, name, err := a.open(f.Path)
	if err != nil {
		return err
	}
	from, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	copied, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, io.LimitReader(from, maxKeptFile))
	return errors.Join(err, copied.Close())
}

// prune removes the oldest kept copies, beyond the bounds.
func (g *Guard) prune() {
	places, _ := filepath.Glob(filepath.Join(g.kept, "*"))
	slices.Sort(places)
	var size int64
	for i, place := range slices.Backward(places) {
		files, _ := filepath.Glob(filepath.Join(place, "*"))
		for _, file := range files {
			if info, err := os.Lstat(file); err == nil {
				size += info.Size()
			}
		}
		if newer := len(places) - i; newer > maxKept || size > maxKeptBytes && newer > 1 {
			_ = os.RemoveAll(place)
		}
	}
}
