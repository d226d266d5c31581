package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mode is how a test uses the program.
type mode int

const (
	// background: without flags, through the background process of a fresh home.
	background mode = iota
	// directory: the mesh is in the process of each verb, which gets --data.
	directory
	// server: the verbs get --server, or the test starts harness serve itself.
	server
)

// modes are the tests that do not use the background process, about a tenth for each other mode. A
// test that is not listed cannot use --data.
var modes = map[string]mode{
	"TestACommandCannotReadTheKeysOfItsHost": directory, // of the process that has them
	"TestDataDirectoryHasOneHolder":          directory,
	"TestATakenOverTurnAsksOnWhereItWas":     directory, // the background process parks the runs of a dead one
	"TestOldRunsDoNotStartUnasked":           directory, // the background process continues them
	"TestParkedRunsDoNotStartUnasked":        directory,
	"TestResumeOfATreeInThisProcess":         directory,
	"TestTheHolderOfTheDirectoryIsNamed":     directory, // by a verb with --data

	"TestBackgroundCommandNextToItsTests": server,
	"TestEveryRoleIsAService":             server, // harness serve itself
	"TestSystemNoCommandUsesItsHarness":   server,
	"TestApprovalsOverHTTP":               server,
	"TestDoorsBetweenTenants":             server,
	"TestServedMesh":                      server,
	"TestSessionContinues":                server,
	"TestSilentAgent":                     server,
}

// modeOf returns the mode of a test, which its subtests share.
func modeOf(t *testing.T) mode {
	name, _, _ := strings.Cut(t.Name(), "/")
	return modes[name]
}

// home is where the verbs of a test find each other's runs, in the mode of the test.
type home struct {
	*household
	mode  mode
	flags []string // of each verb
	serve *process // mode server, once a verb was started
}

// newHome returns a fresh home.
func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{household: &household{t: t, home: t.TempDir()}, mode: modeOf(t)}
	h.data = filepath.Join(h.home, "share", "harness")
	switch h.mode {
	case background:
		t.Cleanup(h.end)
	case directory:
		h.data = filepath.Join(h.home, "data")
		h.flags = []string{"--data", h.data}
	}
	return h
}

// in returns an environment in the home.
func (h *home) in(env []string) []string {
	return append(slices.Clone(env), h.env("HARNESS_LINGER=30s")[1:]...) // without its PATH
}

// start starts a verb.
func (h *home) start(env []string, args ...string) *process {
	h.t.Helper()
	env = h.in(env)
	if h.mode == server && h.serve == nil {
		h.serve = start(h.t, env, "serve", "--listen", "127.0.0.1:0", "--scripts", "/")
		h.serve.printed("ready role=gateway addr=")
		h.serve.mu.Lock()
		_, address, _ := strings.Cut(h.serve.stderr.String(), "ready role=gateway addr=")
		h.serve.mu.Unlock()
		address, _, _ = strings.Cut(address, "\n")
		h.flags = []string{"--server", address, "--token-file", filepath.Join(h.data, "gateway.key")}
	}
	return start(h.t, env, append(slices.Clone(args), h.flags...)...)
}

// finish runs a verb to its end.
func (h *home) finish(args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	return h.start(environment(), args...).wait()
}

// crash kills a verb that follows a run, and the process that works on the run.
func (h *home) crash(p *process) {
	h.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	p.wait()
	if h.mode == background {
		h.kill()
	}
}

// carryOn continues a run whose last call has a response, and returns its result: the background process and
// a server continue it by themselves.
func (h *home) carryOn(env []string, run string) (code int, stdout, stderr string) {
	h.t.Helper()
	if h.mode == directory {
		return h.start(env, "resume", run, "--output", "json").wait()
	}
	code, stdout, stderr = h.start(env, "watch", run, "--output", "jsonl").wait()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	return code, lines[len(lines)-1], stderr
}

// endTime is how long the background process of a test may work after SIGTERM.
const endTime = 2 * time.Second

// end ends the background process, and kills it if it still works for the test.
func (h *home) end() {
	if h.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(h.data, "daemon.log"))
		h.t.Logf("log of the background process:\n%s", tail(string(log)))
	}
	pid := h.pid()
	if pid == 0 {
		return
	}
	tick, limit := time.NewTicker(10*time.Millisecond), time.After(endTime)
	defer tick.Stop()
	for signal := syscall.SIGTERM; syscall.Kill(pid, signal) == nil; { // the signal again has no effect
		select {
		case <-tick.C:
		case <-limit:
			signal = syscall.SIGKILL
		}
		if !isHarness(pid) {
			return
		}
	}
}

// isHarness reports whether a process that is no zombie is the program.
func isHarness(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(line), "daemon")
}
