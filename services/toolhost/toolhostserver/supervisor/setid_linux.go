package supervisor

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Bits of a mode by which a program runs with the rights of the user, or of the group, of its
// file. A folder has setGroup so that its entries get its group.
const (
	setUser  = unix.S_ISUID
	setGroup = unix.S_ISGID
)

// makes are the flags with which open(2) reads its mode. O_TMPFILE contains O_DIRECTORY.
const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// modeCall is a system call with a mode. flags is its argument with the flags of open(2), 0 for none.
type modeCall struct {
	number      uint32
	mode, flags int
}

// makesFiles are the calls that make files with a mode. None makes a folder. mkdir(2) ignores the
// bits.
var makesFiles = append([]modeCall{{unix.SYS_OPENAT, 3, 2}, {unix.SYS_MKNODAT, 2, 0}}, makesFilesHere...)

// changesModes are the calls that change a mode, also of folders.
var changesModes = append([]modeCall{{unix.SYS_FCHMOD, 1, 0}, {unix.SYS_FCHMODAT, 2, 0}, {unix.SYS_FCHMODAT2, 2, 0}}, changesModesHere...)

// setID refuses to make a program that runs with the rights of its file's user or group: any
// other user of the machine could run it. openat2 has its mode in memory; libraries use openat
// then. groups is false if a listener decides about setGroup of calls that can mean a folder.
func (b *builder) setID(groups bool) {
	b.deny(unix.SYS_OPENAT2, unix.ENOSYS)
	for _, c := range makesFiles {
		b.mode(c, setUser|setGroup, unix.EPERM)
	}
	bits := uint32(setUser)
	if groups {
		bits |= setGroup
	}
	for _, c := range changesModes {
		b.mode(c, bits, unix.EPERM)
	}
}

// mode returns errno from a system call whose mode has one of the bits.
func (b *builder) mode(c modeCall, bits uint32, errno unix.Errno) {
	if withoutMode(c.number) {
		return
	}
	body := []bpf.Instruction{argument(c.mode), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: bits, SkipTrue: 1}, returns(errno), bpf.LoadAbsolute{Off: offsetNumber, Size: 4}}
	if c.flags > 0 {
		unless := bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: makes, SkipTrue: uint8(len(body) - 1)} //nolint:gosec // a few instructions
		body = append([]bpf.Instruction{argument(c.flags), unless}, body...)
	}
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.number, SkipTrue: uint8(len(body))}) //nolint:gosec // a few instructions
	b.add(body...)
}

// argument loads the low half of an argument.
func argument(n int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*n), Size: 4} //nolint:gosec // small
}

// groupFilter returns the filter that hands the calls to a listener that set setGroup on what
// can be a folder.
func groupFilter() ([]bpf.RawInstruction, error) {
	b := &builder{}
	b.add(bpf.LoadAbsolute{Off: offsetArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1}, returns(0))
	b.add(bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	for _, c := range changesModes {
		if withoutGroup(c.number) {
			continue
		}
		b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.number, SkipTrue: 4},
			argument(c.mode), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: setGroup, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}, returns(0))
	}
	b.add(returns(0))
	return bpf.Assemble(b.program)
}
