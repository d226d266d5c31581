//go:build linux

package wayout

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nowhere is the path of nothing, for calls that must not have an effect.
var nowhere = []byte("/nonexistent\x00")

// empty is memory for calls that read or write a structure.
var empty [512]byte

// none is no descriptor.
const none = ^uintptr(0)

// call returns a way that is a system call.
func call(name string, number uintptr, args ...uintptr) Way {
	return Way{Name: name, Try: func(*Target) error { return reaches(number, args...) }}
}

// calls of the system that lead out, or to much code that no command needs.
var calls = []Way{
	{Name: "io_uring", Try: func(*Target) error { return reaches(unix.SYS_IO_URING_SETUP, 1, address(&empty)) }},
	call("io_uring_enter", unix.SYS_IO_URING_ENTER, none),
	call("io_uring_register", unix.SYS_IO_URING_REGISTER, none),
	{Name: "bpf", Try: func(*Target) error { return reaches(unix.SYS_BPF, 0, address(&empty), 16) }},
	call("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(3), 0), // the id of the user's keyring
	{Name: "add_key", Try: func(*Target) error {
		return reaches(unix.SYS_ADD_KEY, address(&empty[0]), address(&empty[0]), 0, 0, ^uintptr(2))
	}},
	{Name: "request_key", Try: func(*Target) error {
		return reaches(unix.SYS_REQUEST_KEY, address(&empty[0]), address(&empty[0]), 0, 0)
	}},
	{Name: "perf_event_open", Try: func(*Target) error { return reaches(unix.SYS_PERF_EVENT_OPEN, address(&empty), 0, none, none, 0) }},
	call("userfaultfd", unix.SYS_USERFAULTFD, 1), // of user mode only, which needs no right
	{Name: "mount", Try: func(t *Target) error { return mount(t) }},
	{Name: "mount in a new user namespace", Try: func(*Target) error { return clones(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
	{Name: "umount2", Try: func(*Target) error { return reaches(unix.SYS_UMOUNT2, address(&nowhere[0]), 0) }},
	{Name: "fsopen", Try: func(*Target) error { return reaches(unix.SYS_FSOPEN, address(&nowhere[0]), 0) }},
	call("fsconfig", unix.SYS_FSCONFIG, none, 99),
	call("fsmount", unix.SYS_FSMOUNT, none),
	{Name: "fspick", Try: func(*Target) error { return reaches(unix.SYS_FSPICK, none, address(&nowhere[0]), 0) }},
	{Name: "open_tree", Try: func(*Target) error { return reaches(unix.SYS_OPEN_TREE, none, address(&nowhere[0]), 0) }},
	{Name: "open_tree_attr", Try: func(*Target) error { return reaches(467, none, address(&nowhere[0]), 0, 0, 0) }},
	{Name: "move_mount", Try: func(*Target) error {
		return reaches(unix.SYS_MOVE_MOUNT, none, address(&nowhere[0]), none, address(&nowhere[0]), 0)
	}},
	{Name: "mount_setattr", Try: func(*Target) error {
		return reaches(unix.SYS_MOUNT_SETATTR, none, address(&nowhere[0]), 0, address(&empty), 32)
	}},
	{Name: "pivot_root", Try: func(*Target) error { return reaches(unix.SYS_PIVOT_ROOT, address(&nowhere[0]), address(&nowhere[0])) }},
	{Name: "chroot", Try: func(*Target) error { return unix.Chroot(".") }},
	call("kexec_load", unix.SYS_KEXEC_LOAD, 0, 99, 0, 0),
	call("init_module", unix.SYS_INIT_MODULE, 0, 0, 0),
	call("finit_module", unix.SYS_FINIT_MODULE, none, 0, 0),
	{Name: "delete_module", Try: func(*Target) error { return reaches(unix.SYS_DELETE_MODULE, address(&nowhere[0]), unix.O_NONBLOCK) }},
	call("reboot", unix.SYS_REBOOT, 0, 0, 0),
	{Name: "swapon", Try: func(*Target) error { return reaches(unix.SYS_SWAPON, address(&nowhere[0]), 0) }},
	{Name: "swapoff", Try: func(*Target) error { return reaches(unix.SYS_SWAPOFF, address(&nowhere[0])) }},
	{Name: "acct", Try: func(*Target) error { return reaches(unix.SYS_ACCT, address(&nowhere[0])) }},
	{Name: "quotactl", Try: func(*Target) error { return reaches(unix.SYS_QUOTACTL, 0x80000100, address(&nowhere[0]), 0, 0) }},
	call("quotactl_fd", unix.SYS_QUOTACTL_FD, none, 0x80000100, 0, 0),
	call("settimeofday", unix.SYS_SETTIMEOFDAY, 0, 0),
	call("clock_settime", unix.SYS_CLOCK_SETTIME, 0, 0),
	{Name: "sethostname", Try: func(*Target) error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	}},
	call("setdomainname", unix.SYS_SETDOMAINNAME, 0, 1<<20),
	{Name: "read the log of the kernel (syslog)", Try: func(*Target) error { return reaches(unix.SYS_SYSLOG, 3, address(&empty), 512) }},
	call("fanotify_init", unix.SYS_FANOTIFY_INIT, 0, 0),
	{Name: "type into a terminal (TIOCSTI)", Try: func(*Target) error { return terminal(unix.TIOCSTI) }},
	{Name: "command the console (TIOCLINUX)", Try: func(*Target) error { return terminal(unix.TIOCLINUX) }},
	{Name: "run a program with more rights (setuid)", Try: func(*Target) error {
		if value, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || value != 0 {
			return unix.EPERM
		}
		return nil
	}},
	{Name: "use rights of root", Try: func(*Target) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var now [2]unix.CapUserData
		if err := unix.Capget(&header, &now[0]); err != nil {
			return err
		}
		if now[0].Permitted&^(1<<unix.CAP_DAC_OVERRIDE) == 0 && now[1].Permitted == 0 {
			return unix.EPERM
		}
		return nil
	}},
}

// mount mounts a file system of memory on a folder of the workspace.
func mount(t *Target) error {
	folder := t.inside("mounted")
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
		return err
	}
	return unix.Unmount(folder, unix.MNT_DETACH)
}

// terminal makes a request of a terminal of standard input, which is none: the kernel refuses
// it with another error if it gets the request.
func terminal(request uintptr) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return reaches(unix.SYS_IOCTL, uintptr(null), request, address(&empty))
}
