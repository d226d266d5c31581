package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// levels returns the levels that work on this machine, off excluded.
func (h *host) levels() []harnessv1.SandboxLevel {
	h.t.Helper()
	described, err := h.DescribeHost(context.Background(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	support := described.GetSandbox()
	h.t.Logf("sandbox: %s, Landlock %d, %s", sandbox.Name(support.GetLevel()), support.GetLandlockAbi(), support.GetReason())
	if support.GetLevel() < sandbox.Kernel {
		h.t.Fatal("this machine cannot confine commands, which the test needs")
	}
	var levels []harnessv1.SandboxLevel
	for level := sandbox.Kernel; level <= support.GetLevel(); level++ {
		levels = append(levels, level)
	}
	return levels
}

// confined runs a command at a level.
func (h *host) confined(level harnessv1.SandboxLevel, cfg *harnessv1.SandboxConfig, line string) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	req := h.request(tools.RunCommand, "", map[string]any{"command": line})
	req.Confinement = &harnessv1.Confinement{Level: level, Config: cfg}
	return h.execute(req)
}

// TestCommandsReachOnlyTheirOwn at each level that this machine has.
func TestCommandsReachOnlyTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("the-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOME_SETTING", "the-secret")
	t.Setenv("SOME_KEY", "the-key")
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".netrc"), []byte("the-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Withheld: []string{"SOME_KEY"}})
	for _, level := range h.levels() {
		t.Run(sandbox.Name(level), func(t *testing.T) {
			for name, line := range map[string]string{
				"a file outside":   "cat " + outside + "/secret",
				"a link to it":     "ln -s " + outside + "/secret link-" + sandbox.Name(level) + "; cat link-" + sandbox.Name(level),
				"through /proc":    "cat /proc/self/root" + outside + "/secret",
				"the user's home":  "cat " + home + "/.netrc",
				"the environment":  "env",
				"the ledger":       "cat " + h.config.Dir + "/*",
				"the shadow file":  "cat /etc/shadow && echo the-secret",
				"writing outside":  "echo x > " + outside + "/secret && echo the-secret",
				"removing outside": "rm " + outside + "/secret && echo the-secret",
				"the parent":       "cat /proc/$PPID/environ",
			} {
				if resp := h.confined(level, nil, line); strings.Contains(resp.GetResult(), "the-secret") || resp.GetSandboxLevel() != level {
					t.Errorf("%s: at %s: %s", name, sandbox.Name(resp.GetSandboxLevel()), resp.GetResult())
				}
			}
			expect(t, h.confined(level, nil, "echo $HOME > home && touch $HOME/kept $TMPDIR/kept && cat home"), done, false, "[exit code 0]")
			expect(t, h.confined(level, nil, "ls $HOME/kept $TMPDIR/kept"), done, false, "[exit code 0]") // a later call of the run
			opened := &harnessv1.SandboxConfig{Read: []string{outside}, Env: []string{"SOME_SETTING", "SOME_KEY"}}
			expect(t, h.confined(level, opened, "cat "+outside+"/secret; echo; echo $SOME_SETTING$SOME_KEY"), done, false, "the-secret\nthe-secret\n[exit code 0]")
			if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "the-secret" {
				t.Errorf("the file outside is %q, %v", data, err)
			}
		})
	}
}

// TestNothingRunsLessConfinedThanRecorded: a call that is recorded at a level that the host
// does not reach has a result, and does nothing.
func TestNothingRunsLessConfinedThanRecorded(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	resp := h.confined(sandbox.Full+1, nil, "touch started")
	if resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED || !resp.GetIsError() || !strings.Contains(resp.GetResult(), "was not run") {
		t.Errorf("got %v", resp)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "started")); err == nil {
		t.Error("the command was started")
	}
}

// TestNothingRunsBelowTheLeastOfItsRun: a host whose operator demands nothing, and what a run has that
// was started with a token, recorded at off: a call, one in the background, a check, and a server of tools.
func TestNothingRunsBelowTheLeastOfItsRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	least := &harnessv1.SandboxConfig{Least: sandbox.Kernel}
	off := &harnessv1.Confinement{Level: sandbox.Off, Config: least}
	for name, arguments := range map[string]map[string]any{"a call": {"command": "touch started"}, "in the background": {"command": "touch started", "background": true}} {
		req := h.request(tools.RunCommand, "", arguments)
		req.Confinement = off
		if resp := h.execute(req); resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED || !strings.Contains(resp.GetResult(), "started with a token, lets nothing run below kernel") {
			t.Errorf("%s: got %v", name, resp)
		}
	}
	check := checkRequest(h.dir, "k", "touch started")
	check.Confinement = off
	if resp := h.check(check); !strings.Contains(resp.GetError(), "lets nothing run below kernel") {
		t.Errorf("a check: got %v", resp)
	}
	check = checkRequest(h.dir, "auto", "touch started")
	check.Confinement = &harnessv1.Confinement{Config: &harnessv1.SandboxConfig{Least: sandbox.Kernel, Level: sandbox.Off}}
	if resp := h.check(check); !strings.Contains(resp.GetError(), "off is below kernel") {
		t.Errorf("a check of a run that wants off: got %v", resp)
	}
	servers, err := h.DescribeServers(t.Context(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Workspace: h.dir, Servers: []*harnessv1.McpServer{h.startNotes()}, Local: true, Wait: durationpb.New(20 * time.Second),
		Sandbox: &harnessv1.SandboxConfig{Least: sandbox.Kernel, Level: sandbox.Off},
	})
	if err != nil || !strings.Contains(fmt.Sprint(servers.GetServers()), "off is below kernel") {
		t.Errorf("a server: got %v, %v", servers, err)
	}
	described, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir, Sandbox: &harnessv1.SandboxConfig{Least: sandbox.Full + 1}})
	if err != nil || described.GetProblem().GetField() != "sandbox.level" || !strings.Contains(described.GetProblem().GetMessage(), "started with a token") {
		t.Errorf("a workspace: got %v, %v", described, err)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "started")); err == nil {
		t.Error("a command was started")
	}
	// The stricter one holds: a run with a least of kernel, on a host with full.
	strict := newHost(t, Config{SandboxLeast: sandbox.Full})
	req := strict.request(tools.RunCommand, "", map[string]any{"command": "touch started"})
	req.Confinement = &harnessv1.Confinement{Level: sandbox.Kernel, Config: least}
	if resp := strict.execute(req); resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED || !strings.Contains(resp.GetResult(), "the operator of the tool host lets nothing run below full") {
		t.Errorf("got %v", resp)
	}
}

// TestFoldersThatNoSandboxOpens are refused when a run starts, by field.
func TestFoldersThatNoSandboxOpens(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	t.Setenv("HOME", filepath.Join(home, "me"))
	if err := os.Mkdir(filepath.Join(home, "me"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{})
	h.levels()
	for path, want := range map[string]string{
		folder: "", link: "is a link", filepath.Join(folder, "missing"): "does not exist", home: "the home of the user", h.config.Dir: "data of the harness",
	} {
		resp, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir, Sandbox: &harnessv1.SandboxConfig{Read: []string{path}}})
		if err != nil {
			t.Fatal(err)
		}
		problem := resp.GetProblem()
		if (problem == nil) != (want == "") || !strings.Contains(problem.GetMessage(), want) || want != "" && problem.GetField() != "sandbox.read[0]" {
			t.Errorf("%s: %v, want %q", path, problem, want)
		}
	}
}

// TestACommandThatExceedsALimitIsKilled, and the model reads which.
func TestACommandThatExceedsALimitIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	h := newHost(t, Config{})
	for name, c := range map[string]struct {
		limits *harnessv1.SandboxLimits
		line   string
		want   string
	}{
		"memory":    {&harnessv1.SandboxLimits{MemoryBytes: 64 << 20}, "head -c 1000000000 /dev/zero | tail; sleep 60", "more than 67108864 bytes of memory, which is a limit of the sandbox"},
		"processes": {&harnessv1.SandboxLimits{Processes: 20}, "for i in $(seq 40); do sleep 60 & done; wait", "more than 20 processes and threads, which is a limit of the sandbox"},
		"temporary": {&harnessv1.SandboxLimits{TemporaryBytes: 1 << 20}, "head -c 2000000 /dev/zero > $TMPDIR/much; sleep 60", "temporary folder had more than 1048576 bytes, which is a limit of the sandbox"},
	} {
		for _, level := range h.levels() {
			t.Run(name+" at "+sandbox.Name(level), func(t *testing.T) { // one after the other: they share the folder of their run
				resp := h.confined(level, &harnessv1.SandboxConfig{Limits: c.limits}, c.line)
				if !resp.GetIsError() || !strings.Contains(resp.GetResult(), c.want) || resp.GetSandboxLevel() != level || resp.GetExitCode() != 137 {
					t.Errorf("%s at %s: %v", name, sandbox.Name(level), resp)
				}
				// What does not exceed it is not hindered.
				expect(t, h.confined(level, &harnessv1.SandboxConfig{Limits: c.limits}, "rm -f $TMPDIR/much; echo well"), done, false, "well\n[exit code 0]")
			})
		}
	}
}

// TestNoRunChangesTheUsersCaches, whatever a run writes; at the level full the run sees
// them with its own changes.
func TestNoRunChangesTheUsersCaches(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	cache, cargo := t.TempDir(), t.TempDir()
	t.Setenv("GOCACHE", cache)
	t.Setenv("CARGO_HOME", cargo)
	kept, secret := filepath.Join(cargo, "registry", "kept"), filepath.Join(cargo, "credentials.toml")
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	entry := filepath.Join(cache, "entry")
	for _, path := range []string{entry, kept, secret} {
		if err := os.WriteFile(path, []byte("the user's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(t, Config{})
	for _, level := range h.levels() {
		resp := h.confined(level, nil, "echo poison > "+entry+"; rm "+kept+"; echo poison > $GOCACHE/entry; echo poison > $CARGO_HOME/registry/kept; cat $CARGO_HOME/credentials.toml")
		if resp.GetSandboxLevel() != level || strings.Contains(resp.GetResult(), "the user's") {
			t.Errorf("got %v", resp)
		}
		for _, path := range []string{entry, kept, secret} {
			if text, err := os.ReadFile(path); err != nil || string(text) != "the user's" {
				t.Errorf("at %s: %s is %q, %v", sandbox.Name(level), path, text, err)
			}
		}
	}
	if m, _ := h.commands.Find(t.Context()); m.Overlay {
		expect(t, h.confined(sandbox.Full, nil, "cat $GOCACHE/entry $CARGO_HOME/registry/kept && ls $GOCACHE"), done, false, "poison\npoison\nentry\n[exit code 0]")
		fresh := h.request(tools.RunCommand, "", map[string]any{"command": "cat $GOCACHE/entry $CARGO_HOME/registry/kept"})
		fresh.RunId, fresh.Confinement = "another", &harnessv1.Confinement{Level: sandbox.Full}
		expect(t, h.execute(fresh), done, false, "the user'sthe user's\n[exit code 0]")
	} else {
		t.Log("overlays do not work on this machine: caches are read-only in the sandbox")
	}
}

// TestTheModelReadsWhatTheSandboxRefused by name, at each level.
func TestTheModelReadsWhatTheSandboxRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	outside, err := os.MkdirTemp("/var/tmp", "outside-") // a command has its own /tmp at the level full
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("the-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, strict := newHost(t, Config{}), newHost(t, Config{SandboxLeast: sandbox.Kernel})
	for _, level := range h.levels() {
		resp := h.confined(level, nil, "cat "+secret)
		if !strings.Contains(resp.GetResult(), "The sandbox does not let commands reach "+secret) || !strings.Contains(resp.GetResult(), "unconfined") {
			t.Errorf("at %s: %s", sandbox.Name(level), resp.GetResult())
		}
		if resp := strict.confined(level, nil, "cat "+secret); strings.Contains(resp.GetResult(), "unconfined") {
			t.Errorf("at %s, where nothing runs outside: %s", sandbox.Name(level), resp.GetResult())
		}
	}
	if resp := h.confined(sandbox.Off, nil, "cat /not/there"); strings.Contains(resp.GetResult(), "sandbox") {
		t.Errorf("without a sandbox: %s", resp.GetResult())
	}
}

// TestABubblewrapThatWasReplacedIsTriedAgain, and one that confines nothing is none, whatever
// it reports. Calls that are recorded at the level full do not run then.
func TestABubblewrapThatWasReplacedIsTriedAgain(t *testing.T) {
	genuine, err := exec.LookPath("bwrap")
	if err != nil {
		t.Log("bubblewrap is not on this machine: the program that is replaced is none either")
		genuine = "/nonexistent/bwrap"
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	install := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, "new"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(bin, "new"), filepath.Join(bin, "bwrap")); err != nil {
			t.Fatal(err)
		}
	}
	install("exec " + genuine + ` "$@"`)
	h := newHost(t, Config{})
	before := h.levels()
	// It starts the command without any confinement, and reports what bubblewrap would.
	install(`while [ "$1" != "--" ]; do shift; done; shift; "$@"; code=$?; echo "{\"exit-code\": $code}" >&4; exit $code`)
	after := h.levels()
	if slices.Contains(after, sandbox.Full) {
		t.Errorf("what confines nothing counts as a sandbox: %v", after)
	}
	if slices.Contains(before, sandbox.Full) {
		if resp := h.confined(sandbox.Full, nil, "touch started"); resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED {
			t.Errorf("got %v", resp)
		}
	}
	if _, err := os.Stat(filepath.Join(h.dir, "started")); err == nil {
		t.Error("the command ran")
	}
}

// TestNothingRunsBelowTheLeastLevelOfTheOperator, whatever a request demands.
func TestNothingRunsBelowTheLeastLevelOfTheOperator(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{SandboxLeast: sandbox.Kernel})
	if resp := h.confined(sandbox.Off, nil, "touch started"); resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED {
		t.Errorf("got %v", resp)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "started")); err == nil {
		t.Error("the command ran")
	}
}

// TestALinkAtAReadableFolderOpensNothing: a run that can write around a folder that it
// reads could otherwise choose what it reads next.
func TestALinkAtAReadableFolderOpensNothing(t *testing.T) {
	t.Parallel()
	outside, around := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("the-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(around, "named")
	h := newHost(t, Config{})
	for _, level := range h.levels() {
		if err := os.Mkdir(named, 0o700); err != nil {
			t.Fatal(err)
		}
		cfg := &harnessv1.SandboxConfig{Read: []string{named}, Write: []string{around}}
		expect(t, h.confined(level, cfg, "mv "+named+" "+around+"/moved && ln -s "+outside+" "+named), done, false, "[exit code 0]")
		resp := h.confined(level, cfg, "cat "+named+"/secret")
		if strings.Contains(resp.GetResult(), "the-secret") || resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED {
			t.Errorf("at %s: %v", sandbox.Name(level), resp)
		}
		for _, left := range []string{named, filepath.Join(around, "moved")} {
			if err := os.Remove(left); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKeysOfTheHarnessAreOutOfReach, also in a folder that the run may read and write. At the
// level kernel nothing in a folder can be hidden, so the command does not run.
func TestKeysOfTheHarnessAreOutOfReach(t *testing.T) {
	t.Parallel()
	around := t.TempDir()
	key := filepath.Join(around, "gateway.key")
	if err := os.WriteFile(key, []byte("the-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Secrets: []string{key}})
	for _, level := range h.levels() {
		for name, cfg := range map[string]*harnessv1.SandboxConfig{"read": {Read: []string{around}}, "write": {Write: []string{around}}} {
			resp := h.confined(level, cfg, "cat "+key+"; rm -f "+key+"; echo x > "+key+"; ls "+around)
			if strings.Contains(resp.GetResult(), "the-secret") || level < sandbox.Full && resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED ||
				level == sandbox.Full && !strings.Contains(resp.GetResult(), "gateway.key\n") {
				t.Errorf("%s at %s: %v", name, sandbox.Name(level), resp)
			}
			if text, err := os.ReadFile(key); err != nil || string(text) != "the-secret" {
				t.Errorf("%s at %s: the key is %q, %v", name, sandbox.Name(level), text, err)
			}
		}
	}
}

// TestHiddenFilesAndFoldersAreEmpty at the level full, and what does not exist hides nothing.
func TestHiddenFilesAndFoldersAreEmpty(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	if err := errors.Join(os.WriteFile(filepath.Join(h.dir, ".env"), []byte("the-secret"), 0o600), os.Mkdir(filepath.Join(h.dir, "private"), 0o700),
		os.WriteFile(filepath.Join(h.dir, "private", "x"), []byte("the-secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cfg := &harnessv1.SandboxConfig{Hide: []string{".env", "private", "missing"}}
	if !slices.Contains(h.levels(), sandbox.Full) {
		t.Log("this machine has no level full, which hides")
		return
	}
	resp := h.confined(sandbox.Full, cfg, "cat .env private/x; ls private; echo end")
	if strings.Contains(resp.GetResult(), "the-secret") || !strings.Contains(resp.GetResult(), "end\n[exit code 0]") {
		t.Errorf("got %v", resp)
	}
}

// TestWhatIsHiddenCannotBeMoved: a command that renames a folder above a hidden file, or above the folder of the
// tool host, would leave it uncovered for the next one.
func TestWhatIsHiddenCannotBeMoved(t *testing.T) {
	t.Parallel()
	around := t.TempDir()
	own := filepath.Join(around, ".local", "share", "harness")
	h := newHost(t, Config{Dir: filepath.Join(own, "tools"), Secrets: []string{filepath.Join(around, ".config", "harness")}})
	h.dir = around
	for _, path := range []string{filepath.Join(own, "tools", "key"), filepath.Join(around, ".config", "harness", "key"), filepath.Join(around, "a", "b", "key"), filepath.Join(around, "c", "key")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("the-secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("c", filepath.Join(around, "link")); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(h.levels(), sandbox.Full) {
		t.Log("this machine has no level full, which hides")
		return
	}
	cfg := &harnessv1.SandboxConfig{Hide: []string{"a/b/key", "a/b", "link/key"}}
	resp := h.confined(sandbox.Full, cfg, "mv .local l1; mv .local/share .local/l2; mv .config l3; mv a l4; mv a/b a/l5; mkdir -p a/b .config/harness .local/share/harness/tools; echo end")
	expect(t, resp, done, false, "end\n[exit code 0]")
	resp = h.confined(sandbox.Full, cfg, "find . -name key | xargs cat; echo x >a/new && mv a/new n && echo end")
	if strings.Contains(resp.GetResult(), "the-secret") || !strings.HasSuffix(resp.GetResult(), "\nend\n[exit code 0]") {
		t.Errorf("got %v", resp)
	}
	for _, path := range []string{"l1", ".local/l2", "l3", "l4", "a/l5"} {
		if _, err := os.Lstat(filepath.Join(around, path)); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}
