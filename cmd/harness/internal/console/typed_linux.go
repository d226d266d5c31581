package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what was typed at a terminal and not read yet: it was for another program.
func dropTyped(in any) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // no terminal has no input to drop
	}
}
