package node

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSocketsOfKilledProcessesAreRemoved, and no other: those of processes that accept, those that may not accept yet, and
// other files.
func TestSocketsOfKilledProcessesAreRemoved(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "harness-test-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	now := time.Now()
	listen := func(name string, age time.Duration) *net.UnixListener {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	listen("alive.sock", 2*staleAfter)
	for name, age := range map[string]time.Duration{"killed.sock": 2 * staleAfter, "starts.sock": staleAfter / 2, "other": 2 * staleAfter} {
		if err := listen(name, age).Close(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, now.Add(-2*staleAfter), now.Add(-2*staleAfter)); err != nil {
		t.Fatal(err)
	}
	removeStaleSockets(dir, now)
	for name, kept := range map[string]bool{"alive.sock": true, "killed.sock": false, "starts.sock": true, "other": true, "file.sock": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != kept {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStartRemovesTheSocketsOfKilledProcesses from the directory that it uses.
func TestAStartRemovesTheSocketsOfKilledProcesses(t *testing.T) {
	runtime, err := os.MkdirTemp("/tmp", "harness-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	killed := filepath.Join(runtime, "harness", "killed.sock")
	if err := os.Mkdir(filepath.Dir(killed), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: killed, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(killed, old, old); err != nil {
		t.Fatal(err)
	}
	startGateway(t, Config{Confined: func() bool { return true }})
	if _, err := os.Lstat(killed); !os.IsNotExist(err) {
		t.Errorf("the socket of a killed process: %v", err)
	}
}
