package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// pathFlags open what needs no permission to be read.
const pathFlags = unix.O_PATH | unix.O_CLOEXEC

// open opens by openat2(2); where a kernel or a filter of system calls has none, name by name.
func open(path string, folder bool) (*os.File, error) {
	how := &unix.OpenHow{Flags: pathFlags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if folder {
		how.Flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return walk(path, folder)
	case errors.Is(err, unix.ELOOP):
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrLink}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// walk opens a path name by name, each from the one before.
func walk(path string, folder bool) (*os.File, error) {
	at, err := unix.Open("/", pathFlags|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/", Err: err}
	}
	for rest := strings.Trim(path, "/"); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next, err := step(at, name, folder || rest != "")
		_ = unix.Close(at)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		at = next
	}
	return os.NewFile(uintptr(at), path), nil
}

// step opens an entry of a folder that is no link.
func step(at int, name string, folder bool) (int, error) {
	fd, err := unix.Openat(at, name, pathFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	switch kind := stat.Mode & unix.S_IFMT; {
	case err != nil:
	case kind == unix.S_IFLNK:
		err = ErrLink
	case folder && kind != unix.S_IFDIR:
		err = unix.ENOTDIR
	default:
		return fd, nil
	}
	_ = unix.Close(fd)
	return -1, err
}

// RootOf returns a root of an open folder, wherever that has been moved.
func RootOf(f *os.File) (*os.Root, error) { return os.OpenRoot(ByDescriptor(f)) }

// ByDescriptor returns a path that leads to an open file of this process, or of one that it has
// just forked, wherever the file has been moved.
func ByDescriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// PathOf returns where an open file is, without links, also if it was moved; empty if that is not known.
func PathOf(f *os.File) string {
	path, err := os.Readlink(ByDescriptor(f))
	if err != nil {
		return ""
	}
	return path
}
