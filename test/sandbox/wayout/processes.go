//go:build linux

package wayout

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// address returns the address of a value as an argument of a system call.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// processes of the same user outside.
var processes = []Way{
	{Name: "signal a process", Try: func(t *Target) error { return unix.Kill(t.Victim, 0) }},
	{Name: "signal a thread", Try: func(t *Target) error { return unix.Tgkill(t.Victim, t.Victim, 0) }},
	{Name: "signal a process group", Try: func(t *Target) error { return unix.Kill(-t.Victim, 0) }},
	{Name: "queue a signal", Try: func(t *Target) error {
		info := [16]uint64{} // a siginfo whose code is SI_QUEUE
		info[1] = uint64(uint32(0xffffffff))
		return reachesProcess(unix.SYS_RT_SIGQUEUEINFO, uintptr(t.Victim), 0, address(&info))
	}},
	{Name: "signal by pidfd", Try: func(t *Target) error {
		fd, err := unix.PidfdOpen(t.Victim, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	}},
	{Name: "signal the host", Try: func(t *Target) error { return unix.Kill(t.Host, 0) }},
	{Name: "signal the supervisor", Try: func(*Target) error {
		pid, err := supervisor()
		if err != nil {
			return err
		}
		return unix.Kill(pid, 0)
	}},
	{
		Name: "have the kernel signal a process (SIGIO)", Try: signalByInput,
		Seen: func(t *Target) bool { return t.Signals&(1<<(unix.SIGIO-1)) != 0 },
	},
	{Name: "trace a process", Try: func(t *Target) error {
		const seize = 0x4206
		return reachesProcess(unix.SYS_PTRACE, seize, uintptr(t.Victim), 0, 0)
	}},
	{Name: "trace the supervisor", Try: func(*Target) error {
		pid, err := supervisor()
		if err != nil {
			return err
		}
		const seize = 0x4206
		return reachesProcess(unix.SYS_PTRACE, seize, uintptr(pid), 0, 0)
	}},
	{Name: "read memory (process_vm_readv)", Try: func(t *Target) error { return vm(unix.SYS_PROCESS_VM_READV, t) }},
	{Name: "write memory (process_vm_writev)", Try: func(t *Target) error { return vm(unix.SYS_PROCESS_VM_WRITEV, t) }},
	{Name: "take a descriptor (pidfd_getfd)", Try: func(t *Target) error {
		fd, err := unix.PidfdOpen(t.Victim, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 3, 0)
		return err
	}},
	{Name: "compare processes (kcmp)", Try: func(t *Target) error {
		return reachesProcess(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(t.Victim), 1, 0, 0)
	}},
	{Name: "set the limits of a process (prlimit)", Try: func(t *Target) error {
		var now unix.Rlimit
		if err := unix.Prlimit(t.Victim, unix.RLIMIT_NOFILE, nil, &now); err != nil {
			return err
		}
		return unix.Prlimit(t.Victim, unix.RLIMIT_NOFILE, &now, nil)
	}},
	{Name: "set the priority of a process", Try: func(t *Target) error { return unix.Setpriority(unix.PRIO_PROCESS, t.Victim, 0) }},
	{Name: "set the processors of a process", Try: func(t *Target) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(t.Victim, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(t.Victim, &set)
	}},
	{Name: "set the input priority of a process", Try: func(t *Target) error {
		const best, process = 2 << 13, 1
		return reachesProcess(unix.SYS_IOPRIO_SET, process, uintptr(t.Victim), best|4)
	}},
	{Name: "outlive the command", Try: linger, Seen: func(t *Target) bool { return killLingering(t) }},
}

// reachesProcess makes a system call that names a process, and returns its error.
func reachesProcess(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// vm reads or writes memory of the victim at an address that it does not have: the kernel
// checks the right to do so first.
func vm(number uintptr, t *Target) error {
	var b [8]byte
	local := unix.Iovec{Base: &b[0], Len: 8}
	remote := [2]uint64{1 << 12, 8}
	err := reachesProcess(number, uintptr(t.Victim), address(&local), 1, address(&remote), 1, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// signalByInput makes the victim the owner of a pipe, whose input signals it.
func signalByInput(t *Target) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETOWN, t.Victim); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
		return err
	}
	if _, err := unix.Write(pipe[1], []byte("x")); err != nil {
		return err
	}
	return nil
}

// linger starts a process in a separate session, whose parent ends.
func linger(t *Target) error {
	cmd := exec.Command("/proc/self/exe", "fork", t.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Run()
}

// killLingering reports whether a process of linger lives, and kills it.
func killLingering(t *Target) bool {
	entries, _ := os.ReadDir("/proc")
	found := false
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(text), "linger\x00"+t.Mark) {
			var pid int
			if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
				found = true
			}
		}
	}
	return found
}

// clones starts this program with flags of clone(2).
func clones(flags uintptr) error {
	cmd := exec.Command("/proc/self/exe", "nothing")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

// namespaces are other views of the machine, in which a process can have more rights.
var namespaces = []Way{
	{Name: "new user namespace (unshare)", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
	{Name: "new user namespace (clone)", Try: func(*Target) error { return clones(unix.CLONE_NEWUSER) }},
	{Name: "new user namespace (clone3)", Try: func(*Target) error { return clone3(unix.CLONE_NEWUSER) }},
	{Name: "new mount namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWNS) }},
	{Name: "new process namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWPID) }},
	{Name: "new network namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWNET) }},
	{Name: "new IPC namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWIPC) }},
	{Name: "new name namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWUTS) }},
	{Name: "new cgroup namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP) }},
	{Name: "new time namespace", Try: func(*Target) error { return reaches(unix.SYS_UNSHARE, unix.CLONE_NEWTIME) }},
	{Name: "enter the namespaces of a process (setns)", Try: func(t *Target) error {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", t.Victim), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			fd = 0 // no descriptor: the call counts
		}
		return reaches(unix.SYS_SETNS, uintptr(fd), 0)
	}},
	{Name: "enter namespaces by pidfd (setns)", Try: func(t *Target) error {
		fd, err := unix.PidfdOpen(t.Victim, 0)
		if err != nil {
			fd = 0
		}
		return reaches(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUSER)
	}},
}

// clone3 forks with flags. The child ends.
func clone3(flags uint64) error {
	args := [11]uint64{0: flags, 4: uint64(unix.SIGCHLD)}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, address(&args), unsafe.Sizeof(args), 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// makeMemory makes System V memory.
func makeMemory(t *Target) error {
	_, err := unix.SysvShmGet(t.Memory, 1<<12, unix.IPC_CREAT|0o600)
	return err
}

// removeMemory removes it.
func removeMemory(t *Target) {
	if id, err := unix.SysvShmGet(t.Memory, 1<<12, 0o600); err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}

// queue opens a POSIX message queue.
func queue(t *Target, flags int) (int, error) {
	name, err := unix.BytePtrFromString(t.Queue)
	if err != nil {
		return 0, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, address(name), uintptr(flags), 0o600, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}
