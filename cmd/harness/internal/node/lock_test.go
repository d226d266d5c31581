package node

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"
)

// leave writes what a process that uses a data directory has in it: its lock, and a socket
// whose connections the kernel accepts.
func leave(t *testing.T, dir string) (*flock.Flock, net.Listener) {
	t.Helper()
	lock := flock.New(filepath.Join(dir, lockFile))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), lock.Unlock() })
	if err := writeHolder(dir, l.Addr().String(), "", "dev", false); err != nil {
		t.Fatal(err)
	}
	return lock, l
}

// TestAttachPassesADeadHolder: a child of a killed process has its lock and its socket
// until it becomes its command. A client that connects by then must not get the dead
// socket, but the directory.
func TestAttachPassesADeadHolder(t *testing.T) {
	dir := t.TempDir()
	lock, l := leave(t, dir)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() {
		c, err := l.Accept() // the client has connected
		if err == nil {
			_ = errors.Join(lock.Unlock(), l.Close(), c.Close())
		}
	}()
	conn, held, err := Attach(t.Context(), dir)
	if err != nil || held || conn != nil {
		t.Fatalf("a directory whose process is dead: connection %v, held %v, error %v", conn, held, err)
	}
}

// TestAttachFindsTheHolder: the process that serves the socket is the one to use.
func TestAttachFindsTheHolder(t *testing.T) {
	dir := t.TempDir()
	_, l := leave(t, dir)
	s := grpc.NewServer()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, held, err := Attach(t.Context(), dir)
	if err != nil || !held {
		t.Fatalf("held %v, error %v", held, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	s.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestAttachNamesAProcessThatDoesNotRespond: its socket accepts and nothing answers.
func TestAttachNamesAProcessThatDoesNotRespond(t *testing.T) {
	dir := t.TempDir()
	leave(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, held, err := Attach(ctx, dir)
	if !held || err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("held %v, error %v", held, err)
	}
}
