// Package processtest runs a test binary again, as a server that a test can kill and start again
// at the same address. The binary prints the address first.
package processtest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Process is a server in a process.
type Process struct {
	// Address is HOST:PORT.
	Address string
	t       testing.TB
	env     func(address string) []string
	cmd     *exec.Cmd
}

// Start starts this test binary with further variables, which make it serve at the address that
// env gets. It is killed at the end of the test.
func Start(t testing.TB, env func(address string) []string) *Process {
	t.Helper()
	p := &Process{Address: "127.0.0.1:0", t: t, env: env}
	p.start()
	t.Cleanup(p.Kill)
	return p
}

func (p *Process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), p.env(p.Address)...)
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
		p.t.Fatalf("the process does not serve: %v", err)
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

// Restart starts the server again, at the same address.
func (p *Process) Restart() {
	p.t.Helper()
	p.Kill()
	p.start()
}
