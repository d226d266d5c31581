package frontdoor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Sizes and offsets of linux/inet_diag.h and linux/netlink.h, which the kernel keeps.
const (
	diagByFamily  = 20 // SOCK_DIAG_BY_FAMILY
	diagRequest   = unix.SizeofNlMsghdr + 8 + diagID
	diagID        = 48
	diagState     = unix.SizeofNlMsghdr + 1
	diagUID       = unix.SizeofNlMsghdr + 4 + diagID + 12
	diagInode     = diagUID + 4
	tcpEstablish  = 1
	anyCookie     = 0xff
	addressBytes  = 16
	diagTimeoutUS = 200_000
)

// errNoOwner: the kernel has no open socket of a process at the other end.
var errNoOwner = errors.New("the socket has no process")

// ownerOf returns the user whose process has the socket local, which is connected to remote on
// this machine. Both are of the same family. The socket of a process that has closed it has no
// user: the kernel reports 0, which is not root's.
func ownerOf(local, remote netip.AddrPort) (uid uint32, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, fmt.Errorf("socket of NETLINK_INET_DIAG: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: diagTimeoutUS}); err != nil {
		return 0, err
	}
	if err := unix.Sendto(fd, ownerRequest(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	switch {
	case err != nil:
		return 0, err
	case n < diagInode+4 || binary.NativeEndian.Uint16(answer[4:]) != diagByFamily: // an error
		return 0, errNoOwner
	case answer[diagState] != tcpEstablish || binary.NativeEndian.Uint32(answer[diagInode:]) == 0:
		return 0, errNoOwner
	}
	return binary.NativeEndian.Uint32(answer[diagUID:]), nil
}

// ownerRequest returns the request for one socket.
func ownerRequest(local, remote netip.AddrPort) []byte {
	r := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(r, diagRequest)
	binary.NativeEndian.PutUint16(r[4:], diagByFamily)
	binary.NativeEndian.PutUint16(r[6:], unix.NLM_F_REQUEST)
	body := r[unix.SizeofNlMsghdr:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	if local.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(body[4:], 1<<tcpEstablish)
	id := body[8:]
	binary.BigEndian.PutUint16(id, local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:], local.Addr().AsSlice())
	copy(id[4+addressBytes:], remote.Addr().AsSlice())
	for i := diagID - 8; i < diagID; i++ {
		id[i] = anyCookie
	}
	return r
}

// Room returns how many connections this process can have next to its other files: three quarters
// of its descriptors; 0 if that is not known.
func Room() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32) / 4 * 3)
}
