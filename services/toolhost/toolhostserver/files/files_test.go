package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// newFiles returns Files with a folder of data, and a workspace.
func newFiles(t *testing.T) (f *Files, dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := New(t.TempDir(), toolhost.Limits{}.WithDefaults(), Records{
		Waits: func(string, string) bool { return false }, Named: func(string) bool { return false }, ReadAs: func(string, []byte) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, dir
}

// write writes files: pairs of a name in a folder and a text.
func write(t *testing.T, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(pairs[i+1]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDescribeHasInstructionsAndSkillsUpToTheRoot of the repository, the nearest first.
func TestDescribeHasInstructionsAndSkillsUpToTheRoot(t *testing.T) {
	t.Parallel()
	f, root := newFiles(t)
	write(t, root, ".git/HEAD", "ref: refs/heads/main\n", ".git/objects/x", "", ".git/refs/x", "", "AGENTS.md", "outer", "sub/AGENTS.md", "inner",
		".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys it.\n---\nRun it.\n", ".agents/skills/deploy/steps.txt", "one")
	dir := filepath.Join(root, "sub")
	e, err := f.Describe(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, i := range e.GetInstructionFiles() {
		paths = append(paths, i.GetPath())
	}
	if got := strings.Join(paths, " "); got != "AGENTS.md ../AGENTS.md" {
		t.Errorf("got %q", got)
	}
	if s := e.GetSkills(); len(s) != 1 || s[0].GetName() != "deploy" || s[0].GetProblem() != "" {
		t.Errorf("got %v", s)
	}
	if text, done := f.Skill(dir, SkillFolders{}, "deploy", ""); !done || !strings.Contains(text, "Run it.") || !strings.HasSuffix(text, "\nsteps.txt") {
		t.Errorf("got %q, %v", text, done)
	}
	for path, want := range map[string]string{"steps.txt": "one", "../../../AGENTS.md": "must be a file in the folder of the skill: steps.txt."} {
		if text, done := f.Skill(dir, SkillFolders{}, "deploy", path); !strings.HasSuffix(text, want) || done != (want == "one") {
			t.Errorf("%s: got %q, %v", path, text, done)
		}
	}
	if text, done := f.Skill(dir, SkillFolders{}, "none", ""); done || text != `There is no skill "none". There are: deploy.` {
		t.Errorf("got %q, %v", text, done)
	}
}

// TestAWorkspaceThatCannotBeUsedIsACallersMistake.
func TestAWorkspaceThatCannotBeUsedIsACallersMistake(t *testing.T) {
	t.Parallel()
	f, dir := newFiles(t)
	for _, path := range []string{"", "relative", dir + "/none", "/a\x00b"} {
		_, err := f.Describe(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: path})
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != codes.InvalidArgument || e.Reason != harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// TestCheckCutsNoCharacterInTwo, and a file outside does not exist.
func TestCheckCutsNoCharacterInTwo(t *testing.T) {
	t.Parallel()
	f, dir := newFiles(t)
	write(t, dir, "a.txt", "aä\xffb")
	for bytes, want := range map[uint32]string{2: "a", 3: "aä", 100: "aä\uFFFDb"} {
		resp, err := f.Check(context.Background(), &harnessv1.CheckFileRequest{Workspace: dir, Path: "a.txt", TextBytes: bytes})
		if err != nil || !resp.GetExists() || resp.GetText() != want || resp.GetTruncated() != (bytes < 5) {
			t.Errorf("%d: got %v, %v", bytes, resp, err)
		}
	}
	resp, err := f.Check(context.Background(), &harnessv1.CheckFileRequest{Workspace: dir, Path: "../x"})
	if err != nil || resp.GetExists() || !strings.Contains(resp.GetWhy(), "is outside the workspace") {
		t.Errorf("got %v, %v", resp, err)
	}
}

// TestGuardedFilesAreWrittenByTheirOwnPathAlone, once a person or a rule has allowed it.
func TestGuardedFilesAreWrittenByTheirOwnPathAlone(t *testing.T) {
	t.Parallel()
	f, dir := newFiles(t)
	write(t, dir, "bare/HEAD", "", "bare/objects/x", "", "bare/refs/x", "")
	for _, c := range []struct {
		path, name string
		allowed    bool
		want       string
	}{
		{"a.txt", "a.txt", false, ""},
		{".git/hooks/pre-commit", ".git/hooks/pre-commit", false, "ask the user to change it"},
		{".git/hooks/pre-commit", ".git/hooks/pre-commit", true, ""},
		{"link", ".git/hooks/pre-commit", true, "leads to .git/hooks/pre-commit"},
		{"bare/config", "bare/config", false, "is what git runs programs by"},
	} {
		w, err := f.OpenForCall(dir, nil, Right{Guarded: c.allowed, Approved: c.allowed})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Refuse(c.path, c.name)
		w.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// TestRulesAboveHoldInTheWorkspace: those of the folders around it and of the repository.
func TestRulesAboveHoldInTheWorkspace(t *testing.T) {
	t.Parallel()
	f, root := newFiles(t)
	write(t, root, ".git/HEAD", "ref: refs/heads/main\n", ".git/objects/x", "", ".git/refs/x", "", ".gitignore", "*.log\n", ".git/info/exclude", "*.tmp\n", "sub/a.log", "")
	var below []string
	for _, r := range f.rulesAbove(filepath.Join(root, "sub")) {
		below = append(below, r.Below)
	}
	if strings.Join(below, " ") != "sub/ sub/" {
		t.Errorf("got %q", below)
	}
	if rules := f.rulesAbove(root); rules != nil {
		t.Errorf("the root has %v", rules)
	}
}

// TestAnImportThatWaitsIsNoInstruction: it is left out and named, and one that counts is compared from then on.
func TestAnImportThatWaitsIsNoInstruction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var asked []string
	f, err := New(t.TempDir(), toolhost.Limits{}.WithDefaults(), Records{
		Waits: func(string, string) bool { return false }, Named: func(string) bool { return false },
		ReadAs: func(path string, _ []byte) bool {
			asked = append(asked, filepath.Base(path))
			return filepath.Base(path) == "changed.md"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	write(t, dir, "AGENTS.md", "@changed.md\n@link.md\n@fine.md\n", "changed.md", "obey", "fine.md", "fine")
	if err := os.Symlink("changed.md", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	e, err := f.Describe(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.GetInstructionFiles(); len(got) != 2 || got[1].GetPath() != "fine.md" || strings.Join(e.GetUnaccepted(), " ") != "changed.md" {
		t.Errorf("got %v, unaccepted %v", got, e.GetUnaccepted())
	}
	if strings.Join(asked, " ") != "changed.md fine.md" {
		t.Errorf("asked about %v", asked)
	}
}
