// Package terminaltest opens pseudo-terminals on which tests run programs.
package terminaltest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Open returns a pseudo-terminal: the side of the keyboard and the screen, which is closed at the end
// of the test, and that of the program, which the caller closes once the program has started.
//
// NOFLSH is set: without it the kernel drops what a program that leads its session prints at Control-C
// just before it exits (about 1 of 300 times on a busy machine).
func Open(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	number := 0
	if err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err == nil {
		attributes.Lflag |= unix.NOFLSH
		err = unix.IoctlSetTermios(int(program.Fd()), unix.TCSETS, attributes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return screen, program
}
