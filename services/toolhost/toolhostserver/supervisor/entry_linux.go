package supervisor

import (
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors of a command's first process from 5 on: the program of the host, and the socket
// over which it sends the listener.
const (
	entryFD = 5
	sendFD  = 6
)

// An entry is the program of the host started again by bubblewrap, through its descriptor: no
// file of the host has to be in reach. It has entryPath as argv[0], entryName as argv[1], the
// address as argv[2], and the command after it.
const (
	entryPath = "/proc/self/fd/5"
	entryName = "harness-command-entry"
)

// backlog is how many connections wait for the proxy.
const backlog = 128

// init makes the listener of a command's proxy if the process was started for it, and becomes
// the command.
func init() {
	if len(os.Args) < 4 || os.Args[0] != entryPath || os.Args[1] != entryName {
		return
	}
	err := enter(os.Args[2], os.Args[3:])
	_, _ = fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// enter listens at an address of the command's network, sends the listener to the host, and
// becomes the command. The command inherits neither the listener nor the way to the host.
func enter(address string, argv []string) error {
	for _, fd := range []int{entryFD, sendFD} {
		unix.CloseOnExec(fd)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return fmt.Errorf("bind %s: %w", address, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	if err := unix.Sendmsg(sendFD, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}
