package supervisor

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0 // no such table
)

// deniedHere are the denied calls that only this architecture has.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE}

// makesFilesHere and changesModesHere are the calls with a mode that only this architecture has.
var makesFilesHere, changesModesHere []modeCall

func (b *builder) truncationHere() {}
