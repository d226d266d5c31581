//go:build linux

package wayout

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// setxattrat is setxattrat (Linux 6.13), which has the same number everywhere.
const setxattrat = 463

// setID leave a program in the workspace that another user of the machine runs with the rights of
// the command's user or group.
var setID = append(append(append(append(bits("for its user", unix.S_ISUID), bits("for its group", unix.S_ISGID)...), bitsHere("for its user", unix.S_ISUID)...), bitsHere("for its group", unix.S_ISGID)...), capable...)

// bits returns the ways to set a bit of the mode of a file.
func bits(who string, bit uint32) []Way {
	mode := 0o755 | bit
	return []Way{
		modeOf("fchmod", who, bit, onFile(func(fd int, _ string) error { return reachesProcess(unix.SYS_FCHMOD, uintptr(fd), uintptr(mode)) })),
		modeOf("fchmodat", who, bit, onFile(func(_ int, path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_FCHMODAT, cwd, p, uintptr(mode)) })
		})),
		modeOf("fchmodat of a descriptor by its path", who, bit, onFile(func(fd int, _ string) error {
			return withPath(fmt.Sprintf("/proc/self/fd/%d", fd), func(p uintptr) error { return reachesProcess(unix.SYS_FCHMODAT, cwd, p, uintptr(mode)) })
		})),
		modeOf("fchmodat2", who, bit, onFile(func(fd int, _ string) error {
			return withPath("", func(p uintptr) error {
				return reachesProcess(unix.SYS_FCHMODAT2, uintptr(fd), p, uintptr(mode), unix.AT_EMPTY_PATH)
			})
		})),
		modeOf("mknodat", who, bit, func(path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_MKNODAT, cwd, p, uintptr(unix.S_IFREG|mode), 0) })
		}),
		modeOf("openat", who, bit, func(path string) error {
			return withPath(path, func(p uintptr) error {
				return reachesProcess(unix.SYS_OPENAT, cwd, p, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, uintptr(mode))
			})
		}),
		modeOf("openat, a file without a name", who, bit, func(path string) error {
			fd, err := unix.Openat(unix.AT_FDCWD, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, mode)
			if err != nil {
				return err
			}
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		}),
		modeOf("openat2", who, bit, func(path string) error {
			_, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: uint64(mode)})
			return err
		}),
	}
}

// cwd is AT_FDCWD as an argument of a system call.
const cwd = ^uintptr(99)

// modeOf returns a way to make the file of a path with a bit by a system call.
func modeOf(call, who string, bit uint32, try func(path string) error) Way {
	path := func(t *Target) string { return t.inside("program") }
	return Way{
		Name: "make a program run " + who + " (" + call + ")",
		Try: func(t *Target) error {
			unix.Umask(0)
			return try(path(t))
		},
		Seen: func(t *Target) bool {
			var stat unix.Stat_t
			return unix.Lstat(path(t), &stat) == nil && stat.Mode&bit != 0
		},
	}
}

// onFile returns a function that makes a file and changes it.
func onFile(change func(fd int, path string) error) func(string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o755)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return change(int(f.Fd()), path)
	}
}

// withPath calls a function with the address of a path.
func withPath(path string, call func(uintptr) error) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return call(address(p))
}

// capable give a file capabilities by an attribute.
var capable = []Way{
	attribute("setxattr", func(path, name, value uintptr, size uintptr, _ int) error {
		return reachesProcess(unix.SYS_SETXATTR, path, name, value, size, 0)
	}),
	attribute("lsetxattr", func(path, name, value uintptr, size uintptr, _ int) error {
		return reachesProcess(unix.SYS_LSETXATTR, path, name, value, size, 0)
	}),
	attribute("fsetxattr", func(_, name, value uintptr, size uintptr, fd int) error {
		return reachesProcess(unix.SYS_FSETXATTR, uintptr(fd), name, value, size, 0)
	}),
	attribute("setxattrat", func(path, name, value uintptr, size uintptr, _ int) error {
		args := [2]uint64{uint64(value), uint64(size)}
		return reachesProcess(setxattrat, cwd, path, 0, name, address(&args), 16)
	}),
}

// capabilityAttribute is CAP_SETUID, permitted and effective (struct vfs_cap_data, version 2).
var capabilityAttribute = [20]byte{0: 1, 3: 2, 4: 1 << unix.CAP_SETUID}

func attribute(call string, set func(path, name, value, size uintptr, fd int) error) Way {
	const name = "security.capability"
	return Way{
		Name: "give a program capabilities (" + call + ")",
		Try: func(t *Target) error {
			return onFile(func(fd int, path string) error {
				return withPath(path, func(p uintptr) error {
					return withPath(name, func(n uintptr) error {
						return set(p, n, address(&capabilityAttribute), uintptr(len(capabilityAttribute)), fd)
					})
				})
			})(t.inside("program"))
		},
		Seen: func(t *Target) bool {
			_, err := unix.Getxattr(t.inside("program"), name, nil)
			return err == nil
		},
	}
}
