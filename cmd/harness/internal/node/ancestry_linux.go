package node

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// socketAdmission returns the check of processes at the local socket.
func socketAdmission() func(pid int) error {
	own := newOwnLine(os.Getpid(), readAncestor)
	return func(pid int) error { return own.admit(pid, readAncestor) }
}

// peerPID returns the process that connected, as the kernel noted it.
func peerPID(conn *net.UnixConn) (int, error) {
	cred, err := peerOf(conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// sameUser returns an error if the peer of the local socket is a process of another user;
// root is every user.
func sameUser(conn *net.UnixConn) error {
	cred, err := peerOf(conn)
	if err != nil {
		return err
	}
	if uid := os.Getuid(); int(cred.Uid) != uid && cred.Uid != 0 {
		return fmt.Errorf("the local socket is for user %d, not for user %d", uid, cred.Uid)
	}
	return nil
}

// peerOf returns the credentials of the peer as it connected.
func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("peer of the local socket: %w", failed)
	}
	return cred, nil
}

// readAncestor reads a process of /proc. The line ends at a process of another user that
// /proc hides (hidepid): commands of runs and their supervisors are of this user.
func readAncestor(pid int) (ancestor, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		if errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			return ancestor{}, nil
		}
		return ancestor{}, err
	}
	// PID (NAME) STATE PARENT …; the name may contain any characters.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return ancestor{}, fmt.Errorf("%sstat: unexpected form", dir)
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return ancestor{}, fmt.Errorf("%sstat: %w", dir, err)
	}
	line, _ := os.ReadFile(dir + "cmdline") // empty for a zombie
	program, _, _ := bytes.Cut(line, []byte{0})
	a := ancestor{parent: parent, program: string(program)}
	environ, _ := os.ReadFile(dir + "environ") // only that of the user's processes is readable
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if mark, ok := bytes.CutPrefix(entry, []byte(markPrefix)); ok {
			a.mark = string(mark)
		}
	}
	return a, nil
}
