package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// TestInstructionsBelowTheWorkspaceFollowTheFirstCall below their folder: once a run, in order, with imports, unless the run has switched them off.
func TestInstructionsBelowTheWorkspaceFollowTheFirstCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "AGENTS.md"), []byte("OUTSIDE"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"AGENTS.md": "ROOT", "packages/AGENTS.md": "OUTER", "packages/web/CLAUDE.md": "INNER, see @rules.md and @../../../x.md", "packages/web/rules.md": "IMPORTED",
		"packages/web/src/a.ts": "x", "other/AGENTS.md": "OTHER", "other/b": "y", "third/AGENTS.md": "THIRD", "large/AGENTS.md": strings.Repeat("large\n", 4000), "large/c": "z",
	} {
		h.write(name, content)
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "link")); err != nil {
		t.Fatal(err)
	}
	call := func(run, id, tool string, on bool, arguments map[string]any) string {
		req := h.request(tool, id, arguments)
		req.Instructions = on
		if run != "" {
			req.RunId = run
		}
		return h.execute(req).GetResult()
	}
	read := func(path string) map[string]any { return map[string]any{"path": path} }
	if got := call("", "off", tools.ReadFile, false, read("packages/web/src/a.ts")); got != "x" {
		t.Errorf("off: %q", got)
	}
	const want = "x\n[Instructions for the files below its folder, from packages/AGENTS.md:]\nOUTER\n[End of packages/AGENTS.md.]\n" +
		"[Instructions for the files below its folder, from packages/web/CLAUDE.md:]\nINNER, see @rules.md and @../../../x.md\n" +
		"[@../../../x.md is not read: it is outside of the repository.]\n[End of packages/web/CLAUDE.md.]\n" +
		"[Instructions for the files below its folder, from packages/web/rules.md:]\nIMPORTED\n[End of packages/web/rules.md.]"
	if got := call("", "first", tools.ReadFile, true, read("packages/web/src/a.ts")); got != want {
		t.Errorf("first: %q", got)
	}
	for id, c := range map[string]struct {
		tool      string
		arguments map[string]any
		has       string
	}{
		"again":      {tools.ReadFile, read("packages/web/src/a.ts"), ""},
		"the root":   {tools.ListDirectory, read("."), ""},
		"a folder":   {tools.ListDirectory, read("other"), "OTHER"},
		"a command":  {tools.RunCommand, map[string]any{"command": "cd third && true"}, "THIRD"},
		"a link out": {tools.ListDirectory, read("link"), ""},
		"out":        {tools.ReadFile, read("../AGENTS.md"), ""},
		"large":      {tools.ReadFile, read("large/c"), "[large/AGENTS.md has instructions for the files below its folder: read it"},
	} {
		got := call("", id, c.tool, true, c.arguments)
		if strings.Contains(got, "Instructions for") != (c.has != "" && id != "large") || !strings.Contains(got, c.has) || strings.Contains(got, "OUTSIDE") || strings.Contains(got, "ROOT") {
			t.Errorf("%s: %q", id, got)
		}
	}
	h.write("other/AGENTS.md", "CHANGED")
	if got := call("", "changed", tools.ReadFile, true, read("other/b")); !strings.Contains(got, "CHANGED") {
		t.Errorf("changed: %q", got)
	}
	if got := call("another", "first", tools.ReadFile, true, read("other/b")); !strings.Contains(got, "CHANGED") {
		t.Errorf("another run: %q", got)
	}
}

// TestInstructionsBelowThatARunChangedAreLeftOut: the result names them.
func TestInstructionsBelowThatARunChangedAreLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a command")
	}
	t.Parallel()
	h := newHost(t, Config{})
	h.write("web/AGENTS.md", "FINE")
	h.write("web/a", "x")
	h.call(tools.RunCommand, map[string]any{"command": "echo OBEY > web/AGENTS.md"})
	req := h.request(tools.ReadFile, "", map[string]any{"path": "web/a"})
	req.Instructions, req.RunId = true, "later"
	if got := h.execute(req).GetResult(); strings.Contains(got, "OBEY") || !strings.Contains(got, "[web/AGENTS.md is left out: a run has changed it") {
		t.Errorf("got %q", got)
	}
}
