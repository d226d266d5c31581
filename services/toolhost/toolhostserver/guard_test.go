package toolhostserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// TestFileToolsWriteGuardedPlacesOnlyIfAllowed: by the path that was allowed, not by links,
// and without being put back.
func TestFileToolsWriteGuardedPlacesOnlyIfAllowed(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	runGit(t, h.dir, "config", "include.path", "../team")
	runGit(t, h.dir, "config", "core.hooksPath", "tools/hooks")
	h.write(".envrc", "")
	for link, target := range map[string]string{"link": ".git", "env": ".envrc", "dir/up": "../.git/hooks"} {
		if err := os.Symlink(target, filepath.Join(h.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	h.write("almost/HEAD", "")
	h.write("almost/refs/x", "")
	for _, c := range []struct {
		path, refused, allowed string // a part of the result; empty if it is written
	}{
		{"team", "what git runs programs by", ""},
		{"tools/hooks/pre-commit", "what git runs programs by", ""},
		{".git/config", "ask the user", ""},
		{filepath.Join(h.dir, ".git/config"), "ask the user", ""},
		{".git/hooks/pre-commit", "ask the user", ""},
		{".Git/config", "ask the user", ""},
		{".envrc", "ask the user", ""},
		{"sub/.vscode/tasks.json", "ask the user", ""},
		{"CLAUDE.md", "ask the user", ""},
		{"a/skills/SKILL.md", "ask the user", ""},
		{"contract.yaml", "ask the user", ""},
		{"link/config", "leads to .git/config", "leads to .git/config"},
		{"dir/up/pre-commit", "leads to .git/hooks/pre-commit", "leads to .git/hooks/pre-commit"},
		{"env", "leads to .envrc", "leads to .envrc"},
		{"dir/../.git/config", "ask the user", ""},
		{"almost/config", "", ""},
		{"almost/objects/x", "what git runs programs by", ""},
		{"Makefile", "", ""},
		{"src/hooks/use.ts", "", ""},
	} {
		for _, allowed := range []bool{false, true} {
			want := c.refused
			if allowed {
				want = c.allowed
			}
			content := fmt.Sprintf("[core]\n\tfsmonitor = ./evil\n# %s %t\n", c.path, allowed)
			req := h.request(tools.WriteFile, "", map[string]any{"path": c.path, "content": content})
			req.Guarded, req.Approved = allowed, allowed
			resp := h.execute(req)
			path := c.path
			if !filepath.IsAbs(path) {
				path = filepath.Join(h.dir, path)
			}
			data, _ := os.ReadFile(path)
			written := string(data) == content
			if resp.GetIsError() != (want != "") || !strings.Contains(resp.GetResult(), want) || written != (want == "") {
				t.Errorf("%s, allowed %t: written %t: %s", c.path, allowed, written, resp.GetResult())
			}
			if strings.Contains(resp.GetResult(), "Put back") {
				t.Errorf("%s, allowed %t: %s", c.path, allowed, resp.GetResult())
			}
		}
	}
}

// TestWhatIsTakenAwayIsKept, for its owner alone.
func TestWhatIsTakenAwayIsKept(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	before := h.read(".git/config")
	resp := h.confined(sandbox.Off, nil, `printf '[core]\n\tfsmonitor = ./evil\n[alias]\n\tx = y\n' >> .git/config; echo evil > .git/hooks/pre-push`)
	expect(t, resp, done, false, "[exit code 0]", "core.fsmonitor in .git/config, alias.x in .git/config, the hook .git/hooks/pre-push", "ask a person")
	if h.read(".git/config") != before {
		t.Errorf("the configuration is %q", h.read(".git/config"))
	}
	if _, err := os.Lstat(filepath.Join(h.dir, ".git/hooks/pre-push")); err == nil {
		t.Error("the hook is still there")
	}
	places, _ := filepath.Glob(filepath.Join(h.config.Dir, "kept/*"))
	kept := ""
	for _, place := range places { // several if the command took so long that it was watched
		_ = filepath.WalkDir(place, func(path string, _ fs.DirEntry, _ error) error {
			info, err := os.Lstat(path)
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
			data, _ := os.ReadFile(path)
			kept += string(data)
			return nil
		})
	}
	for _, part := range []string{"fsmonitor = ./evil", "x = y", "evil\n", ".git/hooks/pre-push"} {
		if !strings.Contains(kept, part) {
			t.Errorf("%q is not kept: %s", part, kept)
		}
	}
	left, _ := filepath.Glob(filepath.Join(h.config.Dir, "guard/*"))
	for _, file := range left { // for the next call in this workspace
		if data, err := os.ReadFile(file); err != nil || data[0] == '{' {
			t.Errorf("the snapshot %s is that of a call that runs: %v", file, err)
		}
	}
}

// TestChecksAreGuarded as calls are: contract checks and hooks of the harness.
func TestChecksAreGuarded(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	h.write("Makefile", "test:\n\tgit config core.fsmonitor ./evil\n\t@echo tested\n")
	resp, err := h.CheckCommand(t.Context(), &harnessv1.CheckCommandRequest{
		Namespace: "n", RunId: "r", Key: "k", FirstSequence: 7, Workspace: h.dir, Command: "make test",
	})
	if err != nil || resp.GetExitCode() != 0 || !strings.Contains(resp.GetErrorOutput(), "core.fsmonitor in .git/config") {
		t.Errorf("got %v, %v", resp, err)
	}
	if strings.Contains(h.read(".git/config"), "evil") {
		t.Error("the check has configured git")
	}
}

// TestCallsAtTheSameTimeShareWhatWasBefore: a call that begins while another has changed the
// configuration does not bring that change back.
func TestCallsAtTheSameTimeShareWhatWasBefore(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	before := h.read(".git/config")
	awaitFirst, awaitSecond := gate(t, h.dir), gate(t, filepath.Join(h.dir, "dir"))
	for _, name := range []string{"end", "dir/end"} {
		if err := syscall.Mkfifo(filepath.Join(h.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(line string) <-chan outcome {
		return h.startCall(t.Context(), h.request(tools.RunCommand, "", map[string]any{"command": line}))
	}
	first := command("git config core.fsmonitor ./evil; git init -q n; git -C n config core.fsmonitor ./evil; echo > gate; cat end")
	awaitFirst()
	second := command("echo > dir/gate; cat dir/end")
	awaitSecond()
	h.write("end", "") // opens the pipe
	expect(t, (<-first).resp, done, false, "core.fsmonitor in .git/config")
	h.write("dir/end", "")
	expect(t, (<-second).resp, done, false, "[exit code 0]")
	if h.read(".git/config") != before || strings.Contains(h.read("n/.git/config"), "evil") {
		t.Errorf("%s%s", h.read(".git/config"), h.read("n/.git/config"))
	}
}

// TestDataIsOutOfReachOfTools, wherever its folder is, by every path.
func TestDataIsOutOfReachOfTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "w/state/data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Dir: filepath.Join(data, "tools"), Data: data})
	h.dir = filepath.Join(dir, "w")
	h.write("state/data/gateway.key", "the-secret\n")
	h.write("state/other.txt", "not the-secret\n")
	for link, target := range map[string]string{"key": "state/data/gateway.key", "in": "state/data", "abs": data, "tools": "in/tools"} {
		if err := os.Symlink(target, filepath.Join(h.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(state string) {
		t.Helper()
		for _, path := range []string{
			state + "/data/gateway.key", "key", "in/gateway.key", "abs/gateway.key", state + "/../" + state + "/data/gateway.key",
			filepath.Join(h.dir, state, "data/gateway.key"),
		} {
			for tool, arguments := range map[string]map[string]any{
				tools.ReadFile:    {"path": path},
				tools.EditFile:    {"path": path, "old": "the-secret", "new": "x"},
				tools.WriteFile:   {"path": path, "content": "x"},
				tools.SearchFiles: {"path": path, "pattern": "."},
			} {
				resp := h.call(tool, arguments)
				if !resp.GetIsError() || strings.Contains(resp.GetResult(), "the-secret") {
					t.Errorf("%s %s: %s", tool, path, resp.GetResult())
				}
			}
		}
		for _, path := range []string{state + "/data", "in", "tools"} {
			for tool, arguments := range map[string]map[string]any{
				tools.ListDirectory: {"path": path},
				tools.SearchFiles:   {"path": path, "pattern": "."},
				tools.WriteFile:     {"path": path + "/new/x", "content": "x"},
			} {
				if resp := h.call(tool, arguments); !resp.GetIsError() {
					t.Errorf("%s %s: %s", tool, path, resp.GetResult())
				}
			}
		}
		for tool, arguments := range map[string]map[string]any{
			tools.SearchFiles:   {"pattern": "the-secret"},
			tools.FindFiles:     {"pattern": "**/*.*"},
			tools.ListDirectory: {"path": state},
		} {
			resp := h.call(tool, arguments)
			if resp.GetIsError() || strings.Contains(resp.GetResult(), "gateway") || strings.Contains(resp.GetResult(), "data/") || !strings.Contains(resp.GetResult(), "other.txt") {
				t.Errorf("%s: %s", tool, resp.GetResult())
			}
		}
		file, err := h.CheckFile(t.Context(), &harnessv1.CheckFileRequest{Workspace: h.dir, Path: state + "/data/gateway.key", TextBytes: 100})
		if err != nil || file.GetExists() {
			t.Errorf("check: %v, %v", file, err)
		}
		described, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir})
		if err != nil || strings.Contains(described.GetEnvironment().GetListing(), "data") {
			t.Errorf("described: %v, %v", described.GetEnvironment().GetListing(), err)
		}
		if h.read(state+"/data/gateway.key") != "the-secret\n" {
			t.Errorf("the key is %q", h.read(state+"/data/gateway.key"))
		}
	}
	check("state")
	if err := os.Rename(filepath.Join(h.dir, "state"), filepath.Join(h.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"key": "moved/data/gateway.key", "in": "moved/data", "abs": filepath.Join(h.dir, "moved/data")} {
		if err := errors.Join(os.Remove(filepath.Join(h.dir, link)), os.Symlink(target, filepath.Join(h.dir, link))); err != nil {
			t.Fatal(err)
		}
	}
	check("moved")
	if err := os.Rename(filepath.Join(h.dir, "moved"), filepath.Join(h.dir, "state")); err != nil {
		t.Fatal(err)
	}
}

// TestBackgroundCommandsAreGuardedUntilTheirEnd: calls that end before do not take over what
// they have changed.
func TestBackgroundCommandsAreGuardedUntilTheirEnd(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	before := h.read(".git/config")
	if err := syscall.Mkfifo(filepath.Join(h.dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitGate := gate(t, h.dir)
	c := h.background("c", "git config core.fsmonitor ./evil; echo > gate; cat go; git config core.pager ./evil; echo ended")
	awaitGate()
	h.command("true")
	if h.read(".git/config") != before {
		t.Errorf("after a call: %s", h.read(".git/config"))
	}
	h.write("go", "")
	for state := h.backgroundStates(c)[0]; state.GetRunning(); state = h.backgroundStates(c)[0] {
		h.output(c.GetId(), 1<<20, 1) // waits for the end
	}
	expect(t, h.output(c.GetId(), 0, 30), done, false, "core.pager in .git/config")
	if h.read(".git/config") != before {
		t.Errorf("at the end: %s", h.read(".git/config"))
	}
	if states := h.backgroundStates(c); len(states) != 1 || !strings.Contains(states[0].GetTail(), "core.pager in .git/config") {
		t.Errorf("got %v", states)
	}
}
