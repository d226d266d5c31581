package supervisor

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// x32Bit marks the numbers of the x32 table.
	x32Bit = 0x4000_0000
)

// deniedHere are the denied calls that only this architecture has.
var deniedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_CREATE_MODULE,
	unix.SYS_USELIB, unix.SYS_VSERVER, unix.SYS_LOOKUP_DCOOKIE,
}

// makesFilesHere and changesModesHere are the calls with a mode that only this architecture has.
var (
	makesFilesHere   = []modeCall{{unix.SYS_OPEN, 2, 1}, {unix.SYS_CREAT, 1, 0}, {unix.SYS_MKNOD, 1, 0}}
	changesModesHere = []modeCall{{unix.SYS_CHMOD, 1, 0}}
)

// truncationHere refuses what truncation refuses for calls that only this architecture has.
func (b *builder) truncationHere() { b.truncatesBy(unix.SYS_OPEN, 1) }
