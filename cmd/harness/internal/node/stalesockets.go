package node

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// staleAfter is the age from which a socket that refuses connections is one of a process that was
	// killed: a younger one may be of a process that does not accept yet.
	staleAfter = time.Minute
	// maxStale and staleTime bound how many sockets a start tries, and for how long: a connection to a process
	// that hangs waits.
	maxStale  = 200
	staleTime = time.Second
)

// removeStaleSockets removes the sockets of processes that were killed from the directory of local
// sockets. What fails is left to the next start.
func removeStaleSockets(dir string, now time.Time) {
	sockets, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil {
		return
	}
	dialer := net.Dialer{Deadline: time.Now().Add(staleTime)}
	for _, path := range sockets[:min(len(sockets), maxStale)] {
		before, err := os.Lstat(path)
		if err != nil || before.Mode().Type() != os.ModeSocket || now.Sub(before.ModTime()) < staleAfter {
			continue
		}
		conn, err := dialer.Dial("unix", path)
		if err == nil {
			_ = conn.Close()
			continue
		}
		if after, again := os.Lstat(path); again == nil && os.SameFile(before, after) && errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
}
