//go:build !linux

package node

import (
	"errors"
	"net"
)

// socketAdmission returns nil: on other systems nothing adopts the orphans of a command,
// so descent shows nothing.
func socketAdmission() func(pid int) error { return nil }

func peerPID(*net.UnixConn) (int, error) {
	return 0, errors.New("the peer of the local socket is not known on this system")
}

// sameUser relies on the mode of the socket, 0600 in a directory of 0700.
func sameUser(*net.UnixConn) error { return nil }
