package toolhostserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// plantFsmonitor has git of the user run a program.
func (h *host) plantFsmonitor() {
	h.t.Helper()
	h.write(".git/config", h.read(".git/config")+"[core]\n\tfsmonitor = ./evil\n")
}

// TestWhatServersChangeBetweenCallsIsNamed with the next result of the run, of whatever tool, once, and put
// back as what a command changes is.
func TestWhatServersChangeBetweenCallsIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	h.project()
	server := h.startNotes()
	die := h.serverCall(server, "die", "{}")
	readFile := func() *harnessv1.ExecuteToolResponse { return h.call(tools.ReadFile, map[string]any{"path": "a.txt"}) }

	h.write("AGENTS.md", "evil\n")
	h.plantFsmonitor()
	resp := readFile()
	expect(t, resp, done, false, "Changed, and kept: AGENTS.md.")
	for end := time.Now().Add(10 * time.Second); !strings.Contains(resp.GetResult(), "core.fsmonitor in .git/config"); resp = readFile() {
		if time.Now().After(end) {
			t.Fatal("the configuration of git is not put back")
		}
	}
	if config := h.read(".git/config"); strings.Contains(config, "evil") {
		t.Errorf("the configuration is %q", config)
	}
	h.checkInstructions("CLAUDE.md", "rules\n")
	if resp = readFile(); resp.GetGuarded() != "" || strings.Contains(resp.GetResult(), "Put back") {
		t.Errorf("named again: %s", resp.GetResult())
	}

	h.write(".envrc", "evil\n")
	h.plantFsmonitor()
	expect(t, h.command("echo x > .mcp.json"), done, false, "Changed, and kept: .mcp.json.", "Changed, and kept: .envrc.", "core.fsmonitor in .git/config")
	if config := h.read(".git/config"); strings.Contains(config, "evil") {
		t.Errorf("the configuration is %q", config)
	}
	if resp = h.command("true"); resp.GetGuarded() != "" || strings.Contains(resp.GetResult(), "Put back") {
		t.Errorf("named again: %s", resp.GetResult())
	}

	h.write(".vscode/tasks.json", "evil\n")
	resp = h.execute(die)
	text := resp.GetResult() + readFile().GetResult()
	if strings.Count(text, "Changed, and kept: .vscode/tasks.json.") != 1 {
		t.Errorf("got %q", text)
	}
}

// TestWhatServersChangeIsPutBack if the run demands it.
func TestWhatServersChangeIsPutBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	if _, err := h.DescribeServers(context.Background(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Workspace: h.dir, Servers: []*harnessv1.McpServer{h.startNotes()}, Local: true, Wait: durationpb.New(20 * time.Second),
		Sandbox: &harnessv1.SandboxConfig{Guarded: harnessv1.GuardedMode_GUARDED_MODE_RESTORE},
	}); err != nil {
		t.Fatal(err)
	}
	h.write("AGENTS.md", "evil\n")
	expect(t, h.command("true"), done, false, "Put back as before the call: AGENTS.md.")
	if got := h.read("AGENTS.md"); got != "be kind\n" {
		t.Errorf("got %q", got)
	}
	if resp := h.command("true"); resp.GetGuarded() != "" {
		t.Errorf("named again: %s", resp.GetGuarded())
	}
}

// TestOtherFoldersInWhichACommandMayWriteAreCompared as the workspace is: one next to it, and one above it.
func TestOtherFoldersInWhichACommandMayWriteAreCompared(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	above, err := filepath.EvalSymlinks(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h.dir = next
	h.repository()
	h.dir = above
	h.repository()
	h.dir = filepath.Join(above, "mid", "work")
	h.write("a.txt", "a\n")
	for _, level := range append(h.levels(), sandbox.Off) {
		cfg := &harnessv1.SandboxConfig{Write: []string{next, above, above}}
		resp := h.confined(level, cfg, fmt.Sprintf("echo evil > ../AGENTS.md; echo evil > ../../CLAUDE.md; echo evil > .envrc; mkdir -p %[1]s/sub; echo evil > %[1]s/sub/.mcp.json; "+
			"for at in %[1]s %[2]s; do printf '[core]\\n\\tfsmonitor = ./evil\\n' >> $at/.git/config; cp /bin/true $at/.git/hooks/pre-push; done", next, above))
		expect(t, resp, done, false, "Changed, and kept: .envrc, "+next+"/sub/.mcp.json, "+above+"/CLAUDE.md, "+above+"/mid/AGENTS.md.", "core.fsmonitor in "+next+"/.git/config", "the hook "+above+"/.git/hooks/pre-push")
		if strings.Count(resp.GetResult(), "core.fsmonitor in "+above) != 1 {
			t.Errorf("not named once: %s", resp.GetResult())
		}
		for _, at := range []string{next, above} {
			config, err := os.ReadFile(filepath.Join(at, ".git/config"))
			if _, hookErr := os.Lstat(filepath.Join(at, ".git/hooks/pre-push")); err != nil || strings.Contains(string(config), "evil") || hookErr == nil {
				t.Errorf("%s is not put back: %s", at, config)
			}
		}
		h.checkInstructions()

		cfg.Guarded = harnessv1.GuardedMode_GUARDED_MODE_RESTORE
		resp = h.confined(level, cfg, "echo more > ../AGENTS.md; rm -f "+next+"/sub/.mcp.json")
		expect(t, resp, done, false, "Put back as before the call: "+next+"/sub/.mcp.json (removed), "+above+"/mid/AGENTS.md.")
		for _, file := range []string{above + "/mid/AGENTS.md", above + "/CLAUDE.md", h.dir + "/.envrc", next + "/sub/.mcp.json"} {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestInstructionsThatLeadToAnotherWorkspaceAreCompared: a link out of the workspace leads to a file whose name is no place.
// What a run changes there waits, for the first time by the time of the change, later by the content.
func TestInstructionsThatLeadToAnotherWorkspaceAreCompared(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	repository, err := filepath.EvalSymlinks(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	h.dir = repository
	h.repository()
	work, shared := filepath.Join(repository, "work"), filepath.Join(repository, "shared")
	h.write("shared/guide.md", "be kind\n")
	h.write("shared/early.md", "be early\n")
	h.write("work/a.txt", "a\n")
	for link, to := range map[string]string{"AGENTS.md": "../shared/guide.md", "CLAUDE.md": "../shared/early.md"} {
		if err := os.Symlink(to, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	h.later()
	h.dir = shared
	h.command("echo evil > early.md") // never read before
	h.dir = work
	store := trust.Open(h.config.Dir)
	var waiting []string
	for _, r := range store.Waiting(work) {
		waiting = append(waiting, filepath.Base(r.Path))
	}
	if strings.Join(waiting, " ") != "CLAUDE.md" {
		t.Errorf("waiting: %v", waiting)
	}
	h.checkInstructions("AGENTS.md", "be kind\n")

	cfg := &harnessv1.SandboxConfig{Write: []string{shared}}
	h.confined(sandbox.Kernel, cfg, "echo evil > ../shared/guide.md")
	h.checkInstructions()
	h.write("../shared/guide.md", "be kind\n")
	h.checkInstructions("AGENTS.md", "be kind\n")
	for _, path := range []string{filepath.Join(work, "CLAUDE.md"), filepath.Join(shared, "early.md")} { // as harness trust does
		if err := store.Accept(path, trust.Read(path)); err != nil {
			t.Fatal(err)
		}
	}
	h.checkInstructions("AGENTS.md", "be kind\n", "CLAUDE.md", "evil\n")
	h.later()
	h.dir = shared
	h.command("echo worse > early.md")
	h.dir = work
	h.checkInstructions("AGENTS.md", "be kind\n")
}

// TestMorePlacesThanAreComparedDoNotCount: those that are not known, and not older, wait for a person, also after the
// others are gone.
func TestMorePlacesThanAreComparedDoNotCount(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("AGENTS.md", "be kind\n")
	h.write("deep/er/old/AGENTS.md", "be kind\n")
	h.command("true")
	resp := h.command("mkdir a; cd a; for i in $(seq 6000); do echo > $i.agent.yaml; done")
	expect(t, resp, done, false, "There are, or may be, more than 5000 files", "1.agent.yaml")
	h.command("mkdir -p deep/er/new; echo evil > deep/er/new/AGENTS.md; echo evil > deep/er/old/AGENTS.md; echo evil > AGENTS.md")
	within := func(name, want string) {
		t.Helper()
		in := &host{Server: h.Server, t: t, dir: filepath.Join(h.dir, name)}
		if want == "" {
			in.checkInstructions()
			return
		}
		in.checkInstructions("AGENTS.md", want)
	}
	within(".", "")
	within("deep/er/new", "")
	within("deep/er/old", "")
	path := filepath.Join(h.dir, "deep/er/new/AGENTS.md")
	store := trust.Open(h.config.Dir)
	if known, waits := store.Unaccepted(path, digest("evil\n")); !waits || known.Exists() {
		t.Errorf("got %v, %t", known, waits)
	}
	if waiting := store.Waiting(filepath.Dir(path)); len(waiting) != 1 || waiting[0].Path != path {
		t.Errorf("waiting: %v", waiting)
	}

	// Another host, and one for which the others are gone.
	h.close()
	if err := os.RemoveAll(filepath.Join(h.dir, "a")); err != nil {
		t.Fatal(err)
	}
	next := newHost(t, Config{Dir: h.config.Dir})
	next.dir, h = h.dir, next
	within("deep/er/new", "")
	expect(t, h.command("true"), done, false)
	if resp := h.command("true"); resp.GetGuarded() != "" {
		t.Errorf("got %s", resp.GetGuarded())
	}
	within("deep/er/new", "")
	if err := store.Accept(path, trust.Read(path)); err != nil {
		t.Fatal(err)
	}
	within("deep/er/new", "evil\n")
}

// TestOlderFilesCountAlthoughTheyAreNotCompared.
func TestOlderFilesCountAlthoughTheyAreNotCompared(t *testing.T) {
	t.Parallel()
	dir, name := t.TempDir(), "deep/AGENTS.md"
	h := &host{t: t, dir: dir}
	h.write(name, "be kind\n")
	p := &trust.Partial{Workspace: dir, Since: time.Now().Add(time.Hour), Known: []string{}}
	if p.Waits(name) || p.Waits("a.txt") {
		t.Error("an older file waits")
	}
	if p.Since = time.Now().Add(-time.Hour); !p.Waits(name) {
		t.Error("a newer file counts")
	}
	if p.Known = []string{name}; p.Waits(name) {
		t.Error("a known file waits")
	}
	if guard.MaxPlaces > 5_500 {
		t.Error("TestMorePlacesThanAreComparedDoNotCount has too few places")
	}
}
