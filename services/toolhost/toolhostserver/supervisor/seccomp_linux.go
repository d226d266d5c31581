package supervisor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // 8 bytes each, little endian: the low half first
)

// openTreeAttr is open_tree_attr (Linux 6.15), which has the same number everywhere.
const openTreeAttr = 467

// newNamespaces are the flags of clone(2) and unshare(2) that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// denied are system calls that no command needs and that lead out of a confinement, or to
// parts of the kernel with a long history of holes.
var denied = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, openTreeAttr, unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_FANOTIFY_INIT, unix.SYS_VHANGUP, unix.SYS_PIDFD_GETFD, unix.SYS_NFSSERVCTL, unix.SYS_KCMP,
}

// builder writes a filter from its end: each rule jumps over what follows it.
type builder struct{ program []bpf.Instruction }

func (b *builder) add(i ...bpf.Instruction) { b.program = append(b.program, i...) }

// deny returns errno from a system call.
func (b *builder) deny(number uint32, errno unix.Errno) {
	if withoutCall(number) {
		return
	}
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, returns(errno))
}

// check looks at an argument of a system call: for a match with one of values it returns
// errno if match is true, for no match if it is false.
func (b *builder) check(number uint32, arg int, match bool, errno unix.Errno, values ...uint32) {
	if withoutCall(number) {
		return
	}
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*arg), Size: 4}} //nolint:gosec // small
	for i, v := range values {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)}) //nolint:gosec // a few values
	}
	// No match continues here, a match jumps to the second.
	first, second := returns(0), returns(errno)
	if !match {
		first, second = second, first
	}
	body = append(body, first, second)
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(body))}) //nolint:gosec // a few instructions
	b.add(body...)
}

// flags returns errno from a system call of which an argument has one of the bits.
func (b *builder) flags(number uint32, arg int, bits uint32, errno unix.Errno) {
	if withoutCall(number) {
		return
	}
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 4},
		bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*arg), Size: 4}, //nolint:gosec // small
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1}, returns(0), returns(errno))
}

// netlink allows of the netlink family only the protocol for addresses and routes, 0. The
// others lead to many parts of the kernel.
func (b *builder) netlink() {
	if withoutCall(unix.SYS_SOCKET) || without("netlink") {
		return
	}
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 6},
		bpf.LoadAbsolute{Off: offsetArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 3},
		bpf.LoadAbsolute{Off: offsetArgs + 8*2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1}, returns(unix.EACCES),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
}

// pairs refuses pairs of unix sockets that can send to any other socket: datagram
// sockets, which raw ones are, too. Those of streams stay connected with each other.
func (b *builder) pairs() {
	if withoutCall(unix.SYS_SOCKETPAIR) {
		return
	}
	const kinds = 0xf // the rest of the argument are flags
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKETPAIR, SkipTrue: 6},
		bpf.LoadAbsolute{Off: offsetArgs + 8, Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kinds},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		returns(unix.EACCES), returns(0))
}

// truncation refuses to truncate files by path, and by opening them without writing, which
// a Landlock that is too old does not see. setID refuses openat2.
func (b *builder) truncation() {
	b.deny(unix.SYS_TRUNCATE, unix.EACCES)
	b.truncatesBy(unix.SYS_OPENAT, 2)
	b.truncationHere()
}

// truncatesBy refuses a system call with the flags of open(2) that truncates but does not
// write: the access modes 0 and 3 (open(2)).
func (b *builder) truncatesBy(number uint32, flags int) {
	if withoutCall(number) {
		return
	}
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 6},
		bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*flags), Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_TRUNC | unix.O_ACCMODE}, //nolint:gosec // small
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_TRUNC, SkipTrue: 2}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_TRUNC | unix.O_ACCMODE, SkipTrue: 1},
		returns(0), returns(unix.EACCES))
}

// returns ends the filter: with errno, or with the call for 0.
func returns(errno unix.Errno) bpf.Instruction {
	if errno == 0 {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	}
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)} //nolint:gosec // below 4,096
}

// filter returns the filter of system calls of a plan. groups is true if it decides about
// set-group-ID of what can be a folder.
func (p *Plan) filter(groups bool) ([]bpf.RawInstruction, error) {
	b := &builder{}
	// Another table of system calls, such as the 32-bit one, would bypass the filter.
	if !without("32-bit table") {
		b.add(bpf.LoadAbsolute{Off: offsetArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1}, returns(unix.EPERM))
	}
	b.add(bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	if x32Bit != 0 && !without("x32 table") {
		b.add(bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32Bit, SkipTrue: 1}, returns(unix.EPERM))
	}
	b.setID(groups)
	b.deny(unix.SYS_CLONE3, unix.ENOSYS) // its flags are in memory, which a filter cannot read; libraries use clone then
	for _, number := range append(denied[:len(denied):len(denied)], deniedHere...) {
		b.deny(number, unix.EPERM)
	}
	b.flags(unix.SYS_CLONE, 0, newNamespaces, unix.EPERM)
	b.flags(unix.SYS_UNSHARE, 0, newNamespaces, unix.EPERM)
	b.check(unix.SYS_IOCTL, 1, true, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX)
	b.check(unix.SYS_PRLIMIT64, 0, false, unix.EPERM, 0) // only its own limits: those of the host are a way to kill it
	b.netlink()
	b.check(unix.SYS_SOCKET, 0, false, unix.EACCES, p.families()...)
	if !p.Unix {
		b.pairs()
	}
	if p.ABI < ABITruncate && len(p.Bwrap) == 0 {
		b.truncation()
	}
	b.add(returns(0))
	return bpf.Assemble(b.program)
}

// families returns the families of sockets that a command can make.
func (p *Plan) families() []uint32 {
	families := []uint32{unix.AF_NETLINK} // to read addresses and routes
	if p.Internet || len(p.Bwrap) > 0 {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	if p.Unix {
		families = append(families, unix.AF_UNIX)
	}
	return families
}

// install installs a filter for this thread and what it starts.
func install(filter []bpf.RawInstruction) error {
	_, err := installFilter(filter, 0)
	return err
}

// installFilter installs a filter with flags, and returns the result of the kernel.
func installFilter(filter []bpf.RawInstruction, flags uintptr) (int, error) {
	first := (*unix.SockFilter)(unsafe.Pointer(&filter[0]))                                                                //nolint:gosec // the same layout
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: first}                                                     //nolint:gosec // far below 65,536
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program))) //nolint:gosec // seccomp(2)
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// filterFile returns a file with a filter for bubblewrap.
func filterFile(filter []bpf.RawInstruction) (int, error) {
	var data bytes.Buffer
	for _, i := range filter {
		_ = binary.Write(&data, binary.NativeEndian, i)
	}
	fd, err := unix.MemfdCreate("seccomp", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	if _, err := unix.Write(fd, data.Bytes()); err != nil {
		return 0, err
	}
	_, err = unix.Seek(fd, 0, 0)
	return fd, err
}
