//go:build linux

package wayout

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// views show files and processes at other places.
var views = []Way{
	{Name: "read through /proc/self/root", Try: func(t *Target) error { return read("/proc/self/root" + t.file()) }},
	{Name: "read through the root of a process", Try: func(t *Target) error { return read(fmt.Sprintf("/proc/%d/root%s", t.Victim, t.file())) }},
	{Name: "read through the folder of a process", Try: func(t *Target) error { return read(fmt.Sprintf("/proc/%d/cwd/secret", t.Victim)) }},
	{Name: "read through a descriptor of a process", Try: func(t *Target) error { return read(fmt.Sprintf("/proc/%d/fd/3", t.Victim)) }},
	{Name: "read the environment of a process", Try: func(t *Target) error { return read(fmt.Sprintf("/proc/%d/environ", t.Victim)) }},
	{Name: "read the environment of the host", Try: func(t *Target) error { return read(fmt.Sprintf("/proc/%d/environ", t.Host)) }},
	{Name: "read the environment of the supervisor", Try: func(*Target) error {
		pid, err := supervisor()
		if err != nil {
			return err
		}
		return open(fmt.Sprintf("/proc/%d/environ", pid), unix.O_RDONLY)
	}},
	{Name: "read the memory of a process", Try: func(t *Target) error { return open(fmt.Sprintf("/proc/%d/mem", t.Victim), unix.O_RDONLY) }},
	{Name: "see the command line of a process", Try: func(t *Target) error {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", t.Victim))
		if err == nil && !strings.Contains(string(data), "victim") {
			return errNothing
		}
		return err
	}},
	{Name: "make a process the first that the kernel kills", Try: func(t *Target) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", t.Victim), []byte("1000"), 0)
	}},
	{Name: "reopen a descriptor of a path", Try: func(t *Target) error {
		fd, err := unix.Open(t.file(), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return read(fmt.Sprintf("/proc/self/fd/%d", fd))
	}},
	{Name: "use a descriptor of the host", Try: inherited},
	{Name: "open a file by its handle", Try: func(t *Target) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, t.file(), 0)
		if err != nil { // not shown: try any, the call counts
			handle = unix.NewFileHandle(1, make([]byte, 8))
		}
		dir, err := unix.Open(t.Workspace, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.OpenByHandleAt(dir, handle, unix.O_RDONLY)
		return refusal(err)
	}},
	{Name: "dump core", Try: func(*Target) error {
		return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
	}},
}

// inherited reads through the descriptors that this process did not open.
func inherited(*Target) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if fd < 3 {
			continue
		}
		buffer := make([]byte, len(Secret))
		if n, err := unix.Pread(fd, buffer, 0); err == nil && string(buffer[:n]) == Secret {
			return nil
		}
	}
	return errNothing
}

// supervisor returns the process that supervises the command, if it is seen.
func supervisor() (int, error) {
	for pid := os.Getpid(); pid > 0; {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(string(line), "harness-command-supervisor\x00") {
			return pid, nil
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		text := string(stat)
		if pid, err = strconv.Atoi(strings.Fields(text[strings.LastIndexByte(text, ')')+1:])[1]); err != nil {
			return 0, err
		}
	}
	return 0, errNothing
}

// shared is a file in the memory file system of the machine.
func shared(t *Target) string { return "/dev/shm/" + t.Mark }

// machine is what all users and processes share.
var machine = []Way{
	{
		Name: "read a file in /dev/shm", Try: func(t *Target) error { return read(shared(t)) },
		Prepare: func(t *Target) error { return os.WriteFile(shared(t), []byte(Secret), 0o600) },
		Clean:   func(t *Target) { _ = os.Remove(shared(t)) },
	},
	{Name: "attach System V memory", Prepare: makeMemory, Try: func(t *Target) error {
		id, err := unix.SysvShmGet(t.Memory, 1<<12, 0o600)
		if err != nil {
			return err
		}
		_, err = unix.SysvShmAttach(id, 0, 0)
		return err
	}, Clean: removeMemory},
	{Name: "open a POSIX queue", Prepare: func(t *Target) error {
		fd, err := queue(t, unix.O_CREAT|unix.O_RDWR)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}, Try: func(t *Target) error {
		_, err := queue(t, unix.O_RDWR)
		return err
	}, Clean: func(t *Target) {
		name, _ := unix.BytePtrFromString(t.Queue)
		_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, address(name), 0, 0)
	}},
	setting("change a setting of the kernel (/proc/sys)", "/proc/sys/kernel/core_pattern", unix.O_WRONLY),
	setting("send a key to the kernel (/proc/sysrq-trigger)", "/proc/sysrq-trigger", unix.O_WRONLY),
	setting("change the caching of memory (/proc/mtrr)", "/proc/mtrr", unix.O_WRONLY),
	setting("move interrupts (/proc/irq)", "/proc/irq/default_smp_affinity", unix.O_WRONLY),
	setting("change a setting of the kernel (/sys)", "/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY),
	{Name: "make a control group", Try: func(t *Target) error {
		path, err := group(t)
		if err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		return os.Remove(path)
	}},
	setting("read the log of the kernel (/dev/kmsg)", "/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK),
	{Name: "open a disk", Prepare: func(*Target) error { return openDisk() }, Try: func(*Target) error { return openDisk() }},
	{Name: "make a device in the workspace", Try: func(t *Target) error {
		return unix.Mknod(t.inside("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5)))
	}},
	{Name: "make a block device in the workspace", Try: func(t *Target) error {
		return unix.Mknod(t.inside("device"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0)))
	}},
	{
		Name: "control a device in the workspace (ioctl)",
		Prepare: func(t *Target) error {
			return unix.Mknod(t.inside("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 9)))
		},
		Try: func(t *Target) error {
			fd, err := unix.Open(t.inside("device"), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			const entropy = 0x80045200 // RNDGETENTCNT
			_, err = unix.IoctlGetInt(fd, entropy)
			return err
		},
	},
}

// group returns a path for a control group in the first hierarchy that there is.
func group(t *Target) (string, error) {
	for _, parent := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err == nil {
			return filepath.Join(parent, t.Mark), nil
		}
	}
	return "", errNothing
}

// openDisk opens the device of a disk.
func openDisk() error {
	data, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return err
	}
	err = errNothing
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] != "major" {
			if err = open("/dev/"+fields[3], unix.O_RDONLY); err == nil {
				return nil
			}
		}
	}
	return err
}

// setting returns a way to open a file of the kernel that the host can open.
func setting(name, path string, flags int) Way {
	return Way{Name: name, Try: func(*Target) error { return open(path, flags) }, Prepare: func(*Target) error { return open(path, flags) }}
}
