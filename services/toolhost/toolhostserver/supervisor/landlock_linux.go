package supervisor

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files, by the version of Landlock that knows them (landlock(7)).
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// The rights to make devices and to ioctl(2) them are given for no folder.
	firstRights = readRights | writeRights | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// allRights are those of what a command may read and write.
	allRights    = readRights | writeRights | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// fileRights are those that a rule for a file can have.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// LandlockABI returns the version of Landlock that the kernel has, 0 for none.
func LandlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// handled returns the rights to files that a version of Landlock can deny.
func handled(abi int) uint64 {
	rights := uint64(firstRights)
	for _, later := range []struct {
		abi    int
		rights uint64
	}{
		{ABIRename, unix.LANDLOCK_ACCESS_FS_REFER}, {ABITruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{ABIDevices, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {ABIUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	} {
		if abi >= later.abi {
			rights |= later.rights
		}
	}
	return rights
}

// landlock confines this thread as the version of the plan can. With bubblewrap the file
// systems are not restricted: it could not mount them.
func (s *setup) landlock() error {
	p := s.plan
	abi := p.ABI
	if now := LandlockABI(); now < abi {
		return fmt.Errorf("landlock: the kernel has version %d, the host has found %d", now, abi)
	}
	if abi == 0 && len(p.Bwrap) == 0 {
		return errors.New("landlock: the plan has no version of it")
	}
	if abi == 0 || without("landlock") {
		return nil
	}
	attr := unix.LandlockRulesetAttr{}
	if len(p.Bwrap) == 0 {
		attr.Handled_access_fs = remaining("fs", handled(abi))
	}
	if abi >= ABITCP && !p.Internet && len(p.Bwrap) == 0 {
		attr.Handled_access_net = remaining("net", unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP)
	}
	if abi >= ABIScopes {
		attr.Scoped = remaining("scope", unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL)
	}
	if attr == (unix.LandlockRulesetAttr{}) {
		return nil
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // as landlock(7) wants it
	if errno != 0 {
		return fmt.Errorf("landlock: make a ruleset: %w", errno)
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	if len(p.Bwrap) == 0 {
		if err := s.allowFolders(ruleset, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	for _, rule := range []struct {
		paths  []string
		rights uint64
	}{
		{p.Read, readRights},
		{p.Write, allRights},
		{p.Device, deviceRights},
	} {
		for _, path := range rule.paths {
			if err := allow(ruleset, path, rule.rights&attr.Handled_access_fs); err != nil {
				return fmt.Errorf("landlock: allow %s: %w", path, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: restrict: %w", errno)
	}
	return nil
}

// allowFolders adds a rule for each of the folders of the plan.
func (s *setup) allowFolders(ruleset uintptr, handled uint64) error {
	for i, fd := range s.folders {
		rights := uint64(readRights)
		if s.plan.Folders[i].Write {
			rights = allRights
		}
		if fd == closed {
			continue
		}
		if err := allowOpen(ruleset, int(fd), rights&handled); err != nil {
			return fmt.Errorf("landlock: allow %s: %w", s.plan.Folders[i].Path, err)
		}
	}
	return nil
}

// allow adds a rule for a file or a folder and everything in it. It does nothing if there
// is none.
func allow(ruleset uintptr, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return allowOpen(ruleset, fd, rights)
}

// allowOpen is allow for an open file.
func allowOpen(ruleset uintptr, fd int, rights uint64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}                                                          //nolint:gosec // a descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // landlock(7)
	if errno != 0 {
		return errno
	}
	return nil
}
