//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// changesModesHere and makesFilesHere are the calls that only this architecture has.
var (
	changesModesHere = map[string]int{"chmod": unix.SYS_CHMOD}
	makesFilesHere   = map[string]int{"creat": unix.SYS_CREAT, "open": unix.SYS_OPEN, "mknod": unix.SYS_MKNOD}
)
