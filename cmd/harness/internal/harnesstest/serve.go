package harnesstest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Server is a process of `harness serve`.
type Server struct {
	Cmd       *exec.Cmd
	Errs      *Text
	Config    string            // its configuration folder
	Addresses map[string]string // by role
}

var readyLine = regexp.MustCompile(`(?m)^ready role=(\S+) addr=(\S+)$`)

// StartServe starts `harness serve` and waits until its roles are ready.
func StartServe(t *testing.T, roles []string, args ...string) *Server {
	t.Helper()
	s := &Server{Errs: NewText(), Config: t.TempDir(), Addresses: map[string]string{}}
	s.Cmd = Program(t, append([]string{"serve", "--data", t.TempDir(), "--roles", strings.Join(roles, ",")}, args...)...)
	s.Cmd.Env = append(s.Cmd.Env, "XDG_CONFIG_HOME="+s.Config)
	s.Cmd.Stderr = s.Errs
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Cmd.Process.Kill(); _ = s.Cmd.Wait() })
	s.Errs.Expect(t, "ready role=", len(roles))
	for _, m := range readyLine.FindAllStringSubmatch(s.Errs.String(), -1) {
		s.Addresses[m[1]] = m[2]
	}
	return s
}
