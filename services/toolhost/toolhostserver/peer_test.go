package toolhostserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A peer is this program under another name, in a workspace.
const (
	peerName    = "peer"
	peerAddress = "127.0.0.1:38080"
)

// peerIn puts a peer into a workspace.
func peerIn(t *testing.T, dir string) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, peerName), program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// peer listens at the address until it is killed, or connects to it.
func peer(what string) {
	if what == "dial" {
		_, err := net.Dial("tcp", peerAddress)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("connected")
		os.Exit(0)
	}
	l, err := net.Listen("tcp", peerAddress)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	for {
		_, _ = l.Accept()
	}
}
