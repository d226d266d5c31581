package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif, response struct seccomp_notif_resp (seccomp_unotify(2)).
type (
	notification struct {
		id     uint64
		pid    uint32
		flags  uint32
		number int32
		arch   uint32
		ip     uint64
		args   [6]uint64
	}
	response struct {
		id    uint64
		value int64
		error int32
		flags uint32
	}
)

// listen installs the filter whose calls a listener decides, for this thread and what it starts.
// It reports false if the kernel has no such filters or this process is already under one: then
// the other filter refuses the calls.
func listen() bool {
	filter, err := groupFilter()
	if err != nil {
		return false
	}
	fd, err := installFilter(filter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return false
	}
	go decide(fd)
	return true
}

// decide answers the calls of a command that set setGroup, until the process ends. It has the
// rights of the command, in a separate thread.
func decide(listener int) {
	runtime.LockOSThread()
	if err := dropCapabilities(false); err != nil {
		_ = unix.Close(listener) // the calls fail
		return
	}
	for {
		var n notification
		switch errno := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno { //nolint:gosec // seccomp_unotify(2)
		case 0:
		case unix.EINTR, unix.ENOENT: // a process was killed meanwhile
			continue
		default:
			return
		}
		r := response{id: n.id, error: -int32(n.setGroup(listener))}           //nolint:gosec // below 4,096
		_ = ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) //nolint:gosec // seccomp_unotify(2)
	}
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno
}

// setGroup changes the mode of a folder instead of the process that called. It returns EPERM for
// anything else. The process can change its memory meanwhile: the file that was opened here counts.
func (n *notification) setGroup(listener int) unix.Errno {
	at, path, flags := n.named()
	folder, errno := n.open(listener, at, path, flags)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(folder) }()
	if err := unix.Chmod(opened(folder), uint32(n.mode())); err != nil {
		return errnoOf(err)
	}
	return 0
}

// mode returns the mode in the call.
func (n *notification) mode() uint16 {
	for _, c := range changesModes {
		if int64(c.number) == int64(n.number) {
			return uint16(n.args[c.mode]) //nolint:gosec // as the kernel does
		}
	}
	return 0
}

// named returns the file in the call: a descriptor, the address of a path, 0 for none, and flags.
func (n *notification) named() (at int32, path uint64, flags uint32) {
	switch n.number {
	case unix.SYS_FCHMOD:
		return int32(n.args[0]), 0, unix.AT_EMPTY_PATH //nolint:gosec // as the kernel does
	case unix.SYS_FCHMODAT:
		return int32(n.args[0]), n.args[1], 0 //nolint:gosec // as the kernel does
	case unix.SYS_FCHMODAT2:
		return int32(n.args[0]), n.args[1], uint32(n.args[3]) //nolint:gosec // as the kernel does
	default: // chmod
		return unix.AT_FDCWD, n.args[0], 0
	}
}

// open opens the folder that a call names, as the process that asks sees it.
func (n *notification) open(listener int, at int32, address uint64, flags uint32) (int, unix.Errno) {
	process := fmt.Sprintf("/proc/%d", n.pid)
	path, errno := n.path(process, address)
	if errno != 0 {
		return 0, errno
	}
	root, err := unix.Open(process+"/root", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, unix.EPERM
	}
	defer func() { _ = unix.Close(root) }()
	from := process + "/cwd"
	if own, found := strings.CutPrefix(path, "/proc/self/fd/"); found && flags&unix.AT_SYMLINK_NOFOLLOW == 0 {
		fd, err := strconv.ParseInt(own, 10, 32) // as C libraries name what they have opened
		if err != nil {
			return 0, unix.EPERM
		}
		at, path, flags = int32(fd), "", unix.AT_EMPTY_PATH
	}
	if at != unix.AT_FDCWD {
		from = fmt.Sprintf("%s/fd/%d", process, at)
	}
	start := root
	if !filepath.IsAbs(path) {
		if start, err = unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return 0, unix.EBADF
		}
		defer func() { _ = unix.Close(start) }()
	}
	if ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) != 0 { //nolint:gosec // seccomp_unotify(2)
		return 0, unix.EPERM // it has ended, and its number may be another's
	}
	if path == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return 0, unix.ENOENT
		}
		fd, err := unix.Open(opened(start), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return fd, refused(err)
	}
	return openFolder(root, start, path, flags)
}

// openFolder opens a folder by a path from start, which no link leads out of root.
func openFolder(root, start int, path string, flags uint32) (int, unix.Errno) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	if start != root {
		fd, err := openAgain(start, path, &how)
		if !errors.Is(err, unix.EXDEV) {
			return fd, refused(err)
		}
		folder, err := os.Readlink(opened(start)) // a way up, or a link from the root
		if err != nil {
			return 0, unix.EPERM
		}
		path = folder + "/" + path
	}
	how.Resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	fd, err := openAgain(root, path, &how)
	return fd, refused(err)
}

// attempts bounds how often a path is opened.
const attempts = 1_000

// openAgain opens a path again for as long as the kernel cannot exclude that a rename or a mount
// anywhere on the machine has moved a part of it: openat2(2) fails with EAGAIN then.
func openAgain(at int, path string, how *unix.OpenHow) (fd int, err error) {
	for range attempts {
		if fd, err = unix.Openat2(at, path, how); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// path reads the path at an address of a process; 0: none.
func (n *notification) path(process string, address uint64) (string, unix.Errno) {
	if address == 0 {
		return "", 0
	}
	memory, err := os.Open(process + "/mem")
	if err != nil {
		return "", unix.EPERM
	}
	defer func() { _ = memory.Close() }()
	text := make([]byte, unix.PathMax)
	read, _ := memory.ReadAt(text, int64(address)) //nolint:gosec // an address of a process
	path, _, found := bytes.Cut(text[:read], []byte{0})
	switch {
	case found:
		return string(path), 0
	case read == len(text):
		return "", unix.ENAMETOOLONG
	default:
		return "", unix.EFAULT
	}
}

// opened returns the path of a descriptor of this thread.
func opened(fd int) string { return fmt.Sprintf("/proc/thread-self/fd/%d", fd) }

// refused returns the number of an error of opening a folder: EPERM for another file.
func refused(err error) unix.Errno {
	switch errno := errnoOf(err); errno {
	case unix.ENOTDIR, unix.ELOOP, unix.ENOSYS, unix.EXDEV:
		return unix.EPERM
	default:
		return errno
	}
}

func errnoOf(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok || err == nil { //nolint:errorlint // of package unix
		return errno
	}
	return unix.EPERM
}
