package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// checkCounts checks that the command line reads files unasked, or that they wait.
func (h *host) checkCounts(want bool, names ...string) {
	h.t.Helper()
	store := trust.Open(h.config.Dir) // as another process
	for _, name := range names {
		path := filepath.Join(h.dir, name)
		if _, waits := store.Unaccepted(path, trust.Read(path).Digest); waits == want {
			h.t.Errorf("%s: waits: %t", name, waits)
		}
	}
}

// later returns when the times of files have moved on by more than the clock of files may be late.
func (h *host) later() {
	h.t.Helper()
	probe := filepath.Join(h.t.TempDir(), "probe")
	for begin := time.Now(); ; {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			h.t.Fatal(err)
		}
		if info, err := os.Stat(probe); err != nil || info.ModTime().Sub(begin) > 25*time.Millisecond {
			return
		}
	}
}

// name registers files as the command line does.
func (h *host) name(names ...string) {
	h.t.Helper()
	store := trust.Open(h.config.Dir)
	for _, name := range names {
		path := filepath.Join(h.dir, name)
		if err := store.Name(path, trust.Of([]byte(h.read(name)))); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestFilesThatAPersonHasNamedAreCompared, whatever their names are, from the moment at which they are named.
func TestFilesThatAPersonHasNamedAreCompared(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	for _, name := range []string{"ci/checks.txt", "ci/own.txt", "ci/late.txt", "ci/target.txt", "b.txt"} {
		h.write(name, "before\n")
	}
	if err := os.Symlink("target.txt", filepath.Join(h.dir, "ci/link.txt")); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(outside, []byte("outside\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "ci/outside.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "ci/away.txt")); err != nil {
		t.Fatal(err)
	}
	h.later()
	h.command("true")
	all := []string{"ci/checks.txt", "ci/own.txt", "ci/link.txt", "ci/outside.txt"}
	h.checkCounts(true, all...)
	h.name(all...)
	expect(t, h.command("echo x > b.txt; cat ci/own.txt"), done, false, "before")
	h.write("ci/own.txt", "by the user\n")
	expect(t, h.command("true"), done, false)
	h.checkCounts(true, all...)

	resp := h.command("echo evil > ci/checks.txt; echo evil > ci/target.txt")
	expect(t, resp, done, false, "Changed, and kept: ci/checks.txt, ci/link.txt.", "harness trust")
	h.checkCounts(false, "ci/checks.txt", "ci/link.txt")
	h.checkCounts(true, "ci/own.txt", "ci/outside.txt")
	h.write("ci/checks.txt", "before\n") // as with git checkout
	h.checkCounts(true, "ci/checks.txt")

	restore := &harnessv1.SandboxConfig{Guarded: harnessv1.GuardedMode_GUARDED_MODE_RESTORE}
	expect(t, h.confined(sandbox.Off, restore, "echo evil > ci/own.txt"), done, false, "Put back as before the call: ci/own.txt.")
	if h.read("ci/own.txt") != "by the user\n" {
		t.Error("it is not put back")
	}

	// Named while a command runs: that is no change of it, what it does then is one.
	b := h.background("a", "until test -e go; do sleep 0.02; done; echo evil > ci/late.txt; echo written; sleep 3600")
	h.name("ci/late.txt", "ci/away.txt")
	h.checkCounts(true, "ci/late.txt")
	if got := h.command("true").GetGuarded(); got != "" {
		t.Errorf("got %q", got)
	}
	h.checkCounts(true, "ci/late.txt")
	h.write("go", "")
	expect(t, h.output(b.GetId(), 0, 20), done, false, "written")
	h.checkCounts(false, "ci/late.txt")
	h.checkCounts(false, "go")
	h.checkCounts(true, "ci/checks.txt", "ci/own.txt", "ci/outside.txt")
	expect(t, h.call(tools.StopCommand, map[string]any{"id": b.GetId()}), done, false)
	expect(t, h.output(b.GetId(), 0, 0), done, false, "Changed, and kept: ci/late.txt.")
	h.checkCounts(false, "ci/late.txt")
}

// TestAFileThatIsNamedForTheFirstTime waits if its last change was made while a run was at work there.
func TestAFileThatIsNamedForTheFirstTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	for _, name := range []string{"mine.txt", "moved.txt", "other/mine.txt", "later.txt", "linked/mine.txt"} {
		h.write(name, "mine\n")
	}
	h.later()
	links := t.TempDir()
	if err := os.Symlink(h.dir, filepath.Join(links, "w")); err != nil {
		t.Fatal(err)
	}
	h.command("echo x > planted.txt; mv moved.txt to.txt; ln -s mine.txt link.txt; touch -d 2001-01-01 planted.txt; echo x > later.txt; mv linked x; ln -s other linked; mkdir -p .harness; echo x > .harness/review.yaml")
	h.checkCounts(false, "planted.txt", "to.txt", "link.txt", "linked/mine.txt")
	h.checkCounts(true, "mine.txt", "other/mine.txt")
	if _, waits := trust.Open(h.config.Dir).Unaccepted(filepath.Join(links, "w/planted.txt"), digest("x\n")); !waits {
		t.Error("by a link it does not wait")
	}
	h.later()
	h.write("later.txt", "by the user\n")
	h.write("new.txt", "by the user\n")
	h.checkCounts(true, "later.txt", "new.txt")
	h.checkCounts(false, ".harness/review.yaml") // has a record
}

// TestWhatADeadHostLeftIsComparedBeforeItIsRead: the first request of the next run has no file that a call
// planted during which the host was killed.
func TestWhatADeadHostLeftIsComparedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	h.write("ci/checks.txt", "before\n")
	h.name("ci/checks.txt")
	h.background("a", "sleep 3600")
	running, err := os.ReadDir(filepath.Join(h.config.Dir, "trust/watched")) // as it is when the host is killed
	if err != nil || len(running) != 1 {
		t.Fatal(running, err)
	}
	file := filepath.Join(h.config.Dir, "trust/watched", running[0].Name())
	state, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	if err := os.WriteFile(file, state, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AGENTS.md", "ci/checks.txt", ".agents/skills/evil/SKILL.md"} {
		h.write(name, "---\nname: evil\ndescription: evil\n---\nevil\n")
	}
	next := newHost(t, Config{Dir: h.config.Dir})
	next.dir = h.dir
	d := next.describe()
	if len(d.GetInstructionFiles()) != 1 || len(d.GetSkills()) != 1 || strings.Join(d.GetUnaccepted(), " ") != "AGENTS.md .agents/skills/evil/SKILL.md" {
		t.Errorf("got %v", d)
	}
	next.checkInstructions("CLAUDE.md", "rules\n")
	next.command("true")
	next.checkInstructions("CLAUDE.md", "rules\n")
	next.checkCounts(false, "AGENTS.md", "ci/checks.txt")
	next.write("AGENTS.md", "be kind\n") // as before the call
	next.checkInstructions("AGENTS.md", "be kind\n", "CLAUDE.md", "rules\n")
}

// TestAChangeThatCannotBeStoredWaits, such as on a disk that the command has filled: in this process, in another one, for the
// next host, and once it can be stored.
func TestAChangeThatCannotBeStoredWaits(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	h.command("true")
	path, err := filepath.EvalSymlinks(filepath.Join(h.dir, "AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(h.config.Dir, "trust", "changed", content.Digest([]byte(path))[:32]+".json")
	if err := os.MkdirAll(record+".tmp", 0o700); err != nil { // it cannot be written
		t.Fatal(err)
	}
	expect(t, h.command("echo evil > AGENTS.md; mkdir -p more; echo evil > more/CLAUDE.md"), done, false, "Changed, and kept: AGENTS.md, more/CLAUDE.md.")
	h.command("true")
	h.checkInstructions("CLAUDE.md", "rules\n")
	h.checkCounts(false, "AGENTS.md", "more/CLAUDE.md")
	h.close()

	next := newHost(t, Config{Dir: h.config.Dir})
	next.dir = h.dir
	next.checkCounts(false, "AGENTS.md")
	next.command("true")
	next.checkInstructions("CLAUDE.md", "rules\n")
	if err := os.Remove(record + ".tmp"); err != nil {
		t.Fatal(err)
	}
	next.command("true")
	if waiting := trust.Open(h.config.Dir).Waiting(path); len(waiting) != 1 || string(waiting[0].Former.Text) != "be kind\n" {
		t.Errorf("waiting: %v", waiting)
	}
	if died := trust.Open(h.config.Dir).Died(); len(died) != 0 {
		t.Errorf("something counts as alive in %v", died)
	}
}

// TestFilesOfNamedSkillsWait, whatever their names and folders are.
func TestFilesOfNamedSkillsWait(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("team/kind/SKILL.md", "---\nname: kind\ndescription: be kind\n---\nkind\n")
	for _, name := range []string{"team/kind/read.md", "team/kind/unread.md", "team/kind/mine.md"} {
		h.write(name, "kind\n")
	}
	h.later()
	read := func(file string, counts bool) {
		t.Helper()
		req := h.request("skill", "", map[string]any{"name": "kind", "path": file})
		req.SkillFolders = []string{filepath.Join(h.dir, "team")}
		text := "kind"
		if !counts {
			text = "harness trust"
		}
		expect(t, h.execute(req), done, !counts, text)
	}
	read("read.md", true)
	expect(t, h.command("cd team/kind; echo evil > read.md; echo evil > unread.md; echo evil > new.md"), done, false, "Changed, and kept: team/kind/read.md.")
	for _, file := range []string{"read.md", "unread.md", "new.md"} {
		read(file, false)
	}
	read("mine.md", true)
}
