package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops the unread input of a terminal, which was typed for another program.
func dropTyped(in any) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // no terminal has no input to drop
	}
}
