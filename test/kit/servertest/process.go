package servertest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// serveHTTP serves streamable HTTP at an address, which it prints.
func serveHTTP(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: Handler(os.Getenv), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

// Process is a server over streamable HTTP in a process.
type Process struct {
	// Address is HOST:PORT.
	Address string
	t       testing.TB
	env     []string
	cmd     *exec.Cmd
}

// Start starts this test binary as a server over streamable HTTP with further variables. It is
// killed at the end of the test.
func Start(t testing.TB, env ...string) *Process {
	t.Helper()
	p := &Process{Address: "127.0.0.1:0", t: t, env: env}
	p.start()
	t.Cleanup(p.Kill)
	return p
}

// URL returns the address of the server.
func (p *Process) URL() string { return "http://" + p.Address }

func (p *Process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), p.env...), Enabled+"=1", Listen+"="+p.Address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the server does not serve: %v", err)
	}
	p.Address, p.cmd = strings.TrimSpace(line), cmd
}

// Kill kills the server.
func (p *Process) Kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// Restart starts it again, at the same address.
func (p *Process) Restart() {
	p.t.Helper()
	p.Kill()
	p.start()
}
