package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// TestSkills: the nearest skill of a name counts, a folder that leads out of the repository is
// none, and files outside of a skill's folder cannot be read.
func TestSkills(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	h := newHost(t, Config{})
	named, outside := t.TempDir(), t.TempDir()
	skill := func(dir, name, description, body string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "---\nname: " + name + "\ndescription: " + description + "\nallowed-tools: Bash\n---\n" + body
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(h.dir, "sub", ".git"), 0o755); err != nil { // the repository's root
		t.Fatal(err)
	}
	work := filepath.Join(h.dir, "sub", "deep")
	skill(filepath.Join(work, ".claude/skills"), "pdf", "Near.", "Read the PDF.")
	skill(filepath.Join(h.dir, "sub", ".agents/skills"), "pdf", "Far.", "Not this one.")
	skill(filepath.Join(h.dir, "sub", ".agents/skills"), "mail", "Writes mails.", "Be short.")
	skill(filepath.Join(h.dir, ".agents/skills"), "above", "Above the repository.", "No.")
	skill(filepath.Join(os.Getenv("HOME"), ".agents/skills"), "own", "The user's.", "Yes.")
	skill(named, "named", "Named.", "Yes.")
	skill(outside, "secret", "Outside.", "No.")
	h.write("sub/.agents/skills/broken/SKILL.md", "no front matter")
	h.write("sub/deep/.claude/skills/pdf/scripts/run.sh", "echo run")
	for link, to := range map[string]string{
		filepath.Join(h.dir, "sub/.agents/skills/stolen"):         filepath.Join(outside, "secret"),
		filepath.Join(work, ".claude/skills/pdf/passwd"):          "/etc/passwd",
		filepath.Join(h.dir, "sub/.agents/skills/not-a-skill.md"): "SKILL.md",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: work, SkillFolders: []string{named}, UserSkills: true})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range r.GetEnvironment().GetSkills() {
		found = append(found, s.GetName()+": "+s.GetDescription()+s.GetProblem())
	}
	if got := strings.Join(found, "\n"); got != "pdf: Near.\nbroken: its SKILL.md has no front matter: begin it with --- and name and description\n"+
		"mail: Writes mails.\nown: The user's.\nnamed: Named." {
		t.Errorf("skills:\n%s", got)
	}
	for _, c := range []struct {
		arguments map[string]any
		want      string
		failed    bool
	}{
		{map[string]any{"name": "pdf"}, "Read the PDF.\n\nFiles of this skill, in " + filepath.Join(work, ".claude/skills/pdf") + ":\nscripts/run.sh", false},
		{map[string]any{"name": "pdf", "path": "scripts/run.sh"}, "echo run", false},
		{map[string]any{"name": "pdf", "path": "passwd"}, "must be a file in the folder of the skill", true},
		{map[string]any{"name": "pdf", "path": "../../../../.agents/skills/mail/SKILL.md"}, "must be a file in the folder of the skill", true},
		{map[string]any{"name": "pdf", "path": "/etc/passwd"}, "must be a file in the folder of the skill", true},
		{map[string]any{"name": "secret"}, "There is no skill \"secret\". There are: pdf, mail, own, named.", true},
		{map[string]any{"name": "broken"}, "cannot be used", true},
		{map[string]any{"name": "named"}, "Yes.", false},
	} {
		req := h.request(tree.SkillTool, "", c.arguments)
		req.Workspace, req.SkillFolders, req.UserSkills = work, []string{named}, true
		if r := h.execute(req); r.GetIsError() != c.failed || !strings.Contains(r.GetResult(), c.want) {
			t.Errorf("%v: %v", c.arguments, r)
		}
	}
	// The holder of a token has none of the user who runs the tool host.
	r, err = h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: work})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.GetEnvironment().GetSkills() {
		if s.GetName() == "own" {
			t.Error("a run that was started with a token is shown the skills of the host's user")
		}
	}
	req := h.request(tree.SkillTool, "", map[string]any{"name": "own"})
	req.Workspace = work
	if r := h.execute(req); !r.GetIsError() {
		t.Errorf("a run that was started with a token reads a skill of the host's user: %v", r)
	}
}
