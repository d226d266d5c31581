package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// project writes a workspace with guarded places.
func (h *host) project() {
	h.t.Helper()
	for name, content := range map[string]string{
		"AGENTS.md": "be kind\n", ".vscode/tasks.json": "{}\n", ".envrc": "export A=1\n", "sub/AGENTS.md": "sub\n", "a.txt": "a\n", ".env": "A=1\n",
		".claude/skills/kind/SKILL.md": "---\nname: kind\ndescription: be kind\n---\nkind\n", "docs/rules.md": "rules\n",
	} {
		h.write(name, content)
	}
	if err := os.Symlink("docs/rules.md", filepath.Join(h.dir, "CLAUDE.md")); err != nil {
		h.t.Fatal(err)
	}
}

// TestChangesOfGuardedPlacesAreNamed, in whatever way a command makes them, and others are not.
func TestChangesOfGuardedPlacesAreNamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"echo evil > AGENTS.md":                                                       "AGENTS.md",
		"printf 'be evil\\n' > x; cat x > AGENTS.md":                                  "AGENTS.md",
		"touch -r AGENTS.md t; printf 'be evil' > AGENTS.md; touch -r t AGENTS.md":    "AGENTS.md",
		"ln AGENTS.md x; echo evil >> x":                                              "AGENTS.md",
		"echo evil >> docs/rules.md":                                                  "CLAUDE.md",
		"ln -sf a.txt CLAUDE.md":                                                      "CLAUDE.md",
		"rm .envrc":                                                                   ".envrc (removed)",
		"mv .vscode x":                                                                ".vscode/tasks.json (removed)",
		"mkdir -p x/.idea/runs && echo x > x/.idea/runs/y":                            "x/.idea/runs/y",
		"mkdir x && echo evil > x/.cursorrules && mv x y":                             "y/.cursorrules",
		"echo x > sub/AGENTS.md":                                                      "sub/AGENTS.md",
		"echo A=2 > .env; echo x > .npmrc":                                            ".env, .npmrc",
		"mkdir -p .github/workflows && echo x > .github/workflows/ci.yaml":            ".github/workflows/ci.yaml",
		"mkdir -p .jj/repo .hg && echo x > .jj/repo/config.toml && echo x > .hg/hgrc": ".hg/hgrc, .jj/repo/config.toml",
		"mkdir -p .config/mise .github/agents && echo x | tee .config/mise/config.toml .github/agents/a.md mise.toml QWEN.md": ".config/mise/config.toml, .github/agents/a.md, QWEN.md, mise.toml",
		"mkdir -p .cargo && echo x > .cargo/config.toml":                                                                      ".cargo/config.toml",
		"mkdir -p g && echo evil > g/copilot-instructions.md && ln -s g .github":                                              ".github/copilot-instructions.md, g/copilot-instructions.md",
		"mkdir .Vſcode; echo x > .Vſcode/tasks.json":                                                                          ".Vſcode/tasks.json",
		"chmod +x .envrc": ".envrc",
		"mkdir .clinerules; echo x > '.clinerules/" + strings.Repeat("a", 200) + "'": ".clinerules/aaa",

		"echo x > b.txt; mkdir .github; echo x > .github/dependabot.yml": "",
		"cp AGENTS.md x; cat x > AGENTS.md; touch AGENTS.md":             "",
		"mv AGENTS.md x; mv x AGENTS.md; cat .envrc":                     "",
		"mkdir .env2; echo x > .env2/a":                                  "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			h.project()
			for range 2 { // the second call finds nothing new
				resp := h.confined(sandbox.Off, nil, line)
				got := resp.GetGuarded()
				if (got == "") != (want == "") || !strings.Contains(got, want) || !strings.HasSuffix(resp.GetResult(), got) || strings.Contains(got, "\n") {
					t.Fatalf("got %q, want %q, in %q", got, want, resp.GetResult())
				}
				line, want = "true", ""
			}
		})
	}
}

// TestGuardedPlacesArePutBack if the run demands it, apart from those that are only named.
func TestGuardedPlacesArePutBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	restore := &harnessv1.SandboxConfig{Guarded: harnessv1.GuardedMode_GUARDED_MODE_RESTORE}
	resp := h.confined(sandbox.Off, restore, "echo evil > AGENTS.md; rm -r .vscode; ln -sf a.txt CLAUDE.md; chmod +x .envrc; echo A=2 > .env; mkdir .idea; echo x > .idea/x; echo b > b.txt")
	expect(t, resp, done, false, "Put back as before the call: .envrc, .idea/x, .vscode/tasks.json (removed), AGENTS.md, CLAUDE.md.", "Changed, and kept: .env.", "ask a person")
	info, err := os.Stat(filepath.Join(h.dir, ".envrc"))
	target, _ := os.Readlink(filepath.Join(h.dir, "CLAUDE.md"))
	if err != nil || info.Mode().Perm() != 0o644 || target != "docs/rules.md" || h.read("AGENTS.md") != "be kind\n" || h.read(".vscode/tasks.json") != "{}\n" || h.read(".env") != "A=2\n" || h.read("b.txt") != "b\n" {
		t.Errorf("got %v, %v, %s, %q", info, err, target, h.read("AGENTS.md"))
	}
	if _, err := os.Lstat(filepath.Join(h.dir, ".idea/x")); err == nil {
		t.Error("a new file is left")
	}
	if got := h.confined(sandbox.Off, restore, "true").GetGuarded(); got != "" {
		t.Errorf("the next call names %s", got)
	}
	h.checkInstructions("AGENTS.md", "be kind\n", "CLAUDE.md", "rules\n")
}

// TestWhatARunChangedCountsOnceAccepted: instruction files and skills are left out until then.
func TestWhatARunChangedCountsOnceAccepted(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	all := []string{"AGENTS.md", "be kind\n", "CLAUDE.md", "rules\n"}
	h.checkInstructions(all...)
	h.write("AGENTS.md", "by the user\n") // before any call
	h.command("true")
	h.write("AGENTS.md", "by the user again\n") // between two calls
	h.command("true")
	all[1] = "by the user again\n"
	h.checkInstructions(all...)

	const planted = "---\nname: evil\ndescription: be evil\n---\nevil\n"
	h.command("echo evil > AGENTS.md; mkdir -p .agents/skills/evil s/linked; printf '" + strings.ReplaceAll(planted, "\n", "\\n") + "' > .agents/skills/evil/SKILL.md; " +
		"sed s/evil/linked/ .agents/skills/evil/SKILL.md > s/linked/SKILL.md; ln -s ../../s/linked .claude/skills/linked; echo evil >> docs/rules.md")
	h.checkInstructions()
	d := h.describe()
	if got := strings.Join(d.GetUnaccepted(), " "); got != "AGENTS.md CLAUDE.md .agents/skills/evil/SKILL.md .claude/skills/linked/SKILL.md" {
		t.Errorf("unaccepted: %s", got)
	}
	if got := strings.Join(h.inspect().GetUnaccepted(), " "); got != "AGENTS.md CLAUDE.md" {
		t.Errorf("unaccepted: %s", got)
	}
	if len(d.GetSkills()) != 1 || d.GetSkills()[0].GetName() != "kind" {
		t.Errorf("skills: %v", d.GetSkills())
	}
	expect(t, h.call("skill", map[string]any{"name": "evil"}), done, true, "There is no skill")

	// What a person accepts counts, that content and no other.
	store := trust.Open(h.config.Dir)
	accept := func(name string) {
		t.Helper()
		path := filepath.Join(h.dir, name)
		if err := store.Accept(path, trust.Read(path)); err != nil {
			t.Fatal(err)
		}
	}
	accept("AGENTS.md")
	accept(".agents/skills/evil/SKILL.md")
	h.checkInstructions("AGENTS.md", "evil\n")
	if d = h.describe(); len(d.GetSkills()) != 2 {
		t.Errorf("skills: %v", d.GetSkills())
	}
	h.write("AGENTS.md", "evil\nand a line of the user\n")
	h.checkInstructions()
	h.command("echo more > AGENTS.md")
	h.checkInstructions()
	h.write("AGENTS.md", "by the user again\n") // as before the run, as with git checkout
	h.checkInstructions("AGENTS.md", "by the user again\n")

	// A new host knows it too.
	h.command("echo evil2 > AGENTS.md")
	h.close()
	next := newHost(t, Config{Dir: h.config.Dir})
	next.dir = h.dir
	next.checkInstructions()
	accept("AGENTS.md")
	next.checkInstructions("AGENTS.md", "evil2\n")

	// A file of a skill that was changed.
	next.command("echo evil > .claude/skills/kind/more.md")
	expect(t, next.call("skill", map[string]any{"name": "kind", "path": "more.md"}), done, true, "harness trust")
}

// TestAWriteThatAPersonApprovedIsAccepted, unless the file had a content that waits.
func TestAWriteThatAPersonApprovedIsAccepted(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	write := func(content string) {
		t.Helper()
		req := h.request(tools.WriteFile, "", map[string]any{"path": "AGENTS.md", "content": content})
		req.Guarded, req.Approved = true, true
		expect(t, h.execute(req), done, false)
	}
	write("approved\n")
	h.checkInstructions("AGENTS.md", "approved\n", "CLAUDE.md", "rules\n")
	h.command("echo evil > AGENTS.md; echo evil > docs/rules.md")
	h.checkInstructions()
	h.write("docs/rules.md", "rules\n")
	write("evil\nand more\n")
	h.checkInstructions("CLAUDE.md", "rules\n")
	if waiting := trust.Open(h.config.Dir).Waiting(h.dir); len(waiting) != 1 || string(waiting[0].Former.Text) != "be kind\n" && string(waiting[0].Former.Text) != "approved\n" {
		t.Errorf("waiting: %v", waiting)
	}
	// A file tool that writes where a link leads.
	expect(t, h.call(tools.WriteFile, map[string]any{"path": "docs/rules.md", "content": "evil"}), done, false, "Changed, and kept: CLAUDE.md.")
	h.checkInstructions()
}

// TestAWriteThatNoPersonApprovedIsNamedAndWaits: one that a rule has allowed is compared as after a command.
func TestAWriteThatNoPersonApprovedIsNamedAndWaits(t *testing.T) {
	gitUser(t)
	h := newHost(t, Config{})
	h.project()
	h.write("ci/checks.txt", "before\n")
	h.name("ci/checks.txt")
	trapped(t, h.dir, "git add .; git commit -qm project")
	write := func(path, content string, approved bool) *harnessv1.ExecuteToolResponse {
		t.Helper()
		req := h.request(tools.WriteFile, "", map[string]any{"path": path, "content": content})
		req.Guarded, req.Approved = sandbox.Guarded(path) != "", approved
		resp := h.execute(req)
		expect(t, resp, done, false)
		return resp
	}
	kept := "Changed, and kept: "
	expect(t, write("AGENTS.md", "evil\n", false), done, false, kept+"AGENTS.md.", "harness trust")
	h.checkInstructions("CLAUDE.md", "rules\n")
	h.checkCounts(false, "AGENTS.md")
	if resp := write("agent.yaml", "name: evil\n", false); resp.GetGuarded() == "" || !strings.Contains(resp.GetGuarded(), kept+"agent.yaml.") {
		t.Errorf("got %v", resp)
	}
	h.checkCounts(false, "agent.yaml")
	expect(t, write(".envrc", "./evil\n", false), done, false, kept+".envrc.")
	expect(t, write("ci/checks.txt", "evil\n", false), done, false, kept+"ci/checks.txt.")
	h.checkCounts(false, "ci/checks.txt")
	if resp := write("a.txt", "evil\n", false); resp.GetGuarded() != "" {
		t.Errorf("got %v", resp)
	}

	// What git runs programs by is refused.
	for _, name := range []string{".git/config", ".git/hooks/post-commit", "sub/.git/config"} {
		req := h.request(tools.WriteFile, "", map[string]any{"path": name, "content": "#!/bin/sh\n./evil\n"})
		req.Guarded = true
		expect(t, h.execute(req), done, true, "no person has approved")
	}
	if shell(t, h.dir, "git status; git commit -q --allow-empty -m m") {
		t.Error("what no person has approved runs")
	}

	// What a person approves counts, and stays.
	next := newHost(t, Config{})
	next.project()
	next.write("ci/checks.txt", "before\n")
	next.name("ci/checks.txt")
	trapped(t, next.dir, "git add .; git commit -qm project")
	h = next
	for _, path := range []string{"AGENTS.md", "agent.yaml", ".git/hooks/post-commit", "ci/checks.txt"} {
		if resp := write(path, "approved\n", true); strings.Contains(resp.GetResult(), "ut back") || h.read(path) != "approved\n" {
			t.Errorf("got %v", resp)
		}
	}
	h.checkCounts(true, "AGENTS.md", "agent.yaml", "ci/checks.txt")
	h.checkInstructions("AGENTS.md", "approved\n", "CLAUDE.md", "rules\n")
}

// TestWhatRunsIsComparedBeforeItsEnd: background commands and checks, also those of a host that has died.
func TestWhatRunsIsComparedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.project()
	b := h.background("a", "until test -e go; do sleep 0.02; done; echo evil > AGENTS.md; echo written; sleep 3600")
	h.write("go", "")
	expect(t, h.output(b.GetId(), 0, 20), done, false, "written")
	h.checkInstructions("CLAUDE.md", "rules\n")
	other := trust.Open(h.config.Dir) // as another process
	path := filepath.Join(h.dir, "AGENTS.md")
	if known, waits := other.Unaccepted(path, digest("evil\n")); !waits || string(known.Text) != "be kind\n" {
		t.Errorf("got %+v, %t", known, waits)
	}
	expect(t, h.command("echo x > .envrc"), done, false, "Changed, and kept: .envrc.")
	expect(t, h.call(tools.StopCommand, map[string]any{"id": b.GetId()}), done, false)
	expect(t, h.output(b.GetId(), 0, 0), done, false, "Changed, and kept: .envrc, AGENTS.md.")

	resp := h.check(&harnessv1.CheckCommandRequest{Key: "k", Command: "echo x > .mcp.json", Workspace: h.dir, Namespace: "n", RunId: "r", FirstSequence: 7})
	if !strings.Contains(resp.GetErrorOutput(), "Changed, and kept: .mcp.json.") {
		t.Errorf("got %v", resp)
	}

	// Another process finds what a host that died during a call has left, and so does the next host.
	store := trust.Open(h.config.Dir)
	file, _ := store.Baseline(h.dir)
	if err := file.Set(h.dir, map[string]trust.Version{"CLAUDE.md": trust.Of([]byte("rules\n"))}); err != nil {
		t.Fatal(err)
	}
	file.Close()
	h.close()
	h.write("sub/agent.yaml", "name: evil\n")
	if _, waits := store.Unaccepted(filepath.Join(h.dir, "sub/agent.yaml"), digest("name: evil\n")); !waits {
		t.Error("what a host that has died left does not wait")
	}
	next := newHost(t, Config{Dir: h.config.Dir})
	next.dir = h.dir
	next.command("true")
	if !store.Waits(filepath.Join(h.dir, "sub/agent.yaml"), digest("name: evil\n")) {
		t.Error("the next host has not compared")
	}
	if _, waits := store.Unaccepted(filepath.Join(h.dir, "new/agent.yaml"), digest("x")); waits {
		t.Error("what no run has changed waits")
	}
}

// TestWorktreesInheritWhatWaits from the workspace of which they are made.
func TestWorktreesInheritWhatWaits(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	h.write("AGENTS.md", "be kind\n")
	h.command("echo evil > AGENTS.md")
	dir := h.dir
	h.dir = h.worktree("child")
	if h.read("AGENTS.md") != "evil\n" {
		t.Fatal("the worktree is not a copy")
	}
	h.checkInstructions()
	h.dir = dir
}
