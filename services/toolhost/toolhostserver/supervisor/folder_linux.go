package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// closed is the descriptor of a folder that does not exist.
const closed = ^uintptr(0)

// openFolders opens the folders of the plan.
func (s *setup) openFolders() error {
	for _, f := range s.plan.Folders {
		fd, err := f.open()
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) || f.Pinned && errors.Is(err, disk.ErrLink) {
			fd, err = closed, nil
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", f.Path, err)
		}
		s.folders = append(s.folders, fd)
	}
	return nil
}

// open opens a folder for this process and those that it starts.
func (f Folder) open() (uintptr, error) {
	if f.Path == "" {
		fd, err := unix.Open(".", unix.O_PATH|unix.O_CLOEXEC, 0)
		return uintptr(fd), err
	}
	opened, err := disk.OpenPath(f.Path)
	if err != nil {
		return closed, err
	}
	defer func() { _ = opened.Close() }()
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return uintptr(fd), err
}

// withoutMissing removes the options of bubblewrap that name folders which do not exist.
func (s *setup) withoutMissing(argv []string) []string {
	for i, fd := range s.folders {
		if fd != closed {
			continue
		}
		for at, option := range argv {
			if (option == "--bind-fd" || option == "--ro-bind-fd") && argv[at+1] == FolderArgument(i) {
				argv = slices.Delete(slices.Clone(argv), at, at+3)
				break
			}
		}
	}
	return argv
}

// descriptors returns those of the first process of the command from 3 on, given those without the folders.
func (s *setup) descriptors(of []uintptr) []uintptr {
	if s.plan == nil || len(s.plan.Bwrap) == 0 || len(s.folders) == 0 {
		return of
	}
	for len(of) < folderFD-lifelineFD {
		of = append(of[:len(of):len(of)], closed)
	}
	return append(of, s.folders...)
}

// closeFolders closes those of this process.
func (s *setup) closeFolders() {
	for _, fd := range s.folders {
		if fd != closed {
			_ = os.NewFile(fd, "folder").Close()
		}
	}
	s.folders = nil
}
