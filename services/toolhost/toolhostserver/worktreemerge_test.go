package toolhostserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// TestMergeBringsAllChanges: added, changed, deleted, renamed, executable and binary files, commits and uncommitted
// work, into a workspace that has changed elsewhere and in other lines of the same file.
func TestMergeBringsAllChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	h := newRepository(t, map[string]string{"lines": lines, "gone/deep/file": "x", "old name": "moved", "tool": "t", "kept": "k", "dir/file": "d", "bin": "\x00a"})
	dir := h.worktree("child")
	put(t, dir, "lines", strings.Replace(lines, "1\n", "one\n", 1))
	gitOutput(t, dir, "add", "-A")
	gitOutput(t, dir, "commit", "-q", "-m", "mine")
	put(t, dir, "new/file", "n")
	put(t, dir, "bin", "\x00b\xff")
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "gone")), os.RemoveAll(filepath.Join(dir, "dir")), os.Rename(filepath.Join(dir, "old name"), filepath.Join(dir, "new\nname")),
		os.Chmod(filepath.Join(dir, "tool"), 0o755), os.WriteFile(filepath.Join(dir, "dir"), []byte("now a file"), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range strange {
		put(t, dir, name, "strange")
	}
	if resp := h.merge("child"); !resp.GetIsError() || !strings.Contains(resp.GetResult(), "has not ended") {
		t.Errorf("merge of a run that works: %v", resp)
	}
	if !h.end("child") {
		t.Fatal("a worktree with changes was removed")
	}
	want := filesOf(t, dir)
	h.write("lines", strings.Replace(lines, "9\n", "nine\n", 1))
	h.write("kept", "changed by the parent")
	want["lines"] = "false " + strings.NewReplacer("1\n", "one\n", "9\n", "nine\n").Replace(lines)
	want["kept"] = "false changed by the parent"
	req := h.request(tree.MergeTool, "merge", map[string]any{"run": "child"})
	resp := h.execute(req)
	expect(t, resp, done, false, "3 files changed", "deleted: dir/file, gone/deep/file, \"old name\"")
	sameFiles(t, "the workspace after the merge", filesOf(t, h.dir), want)
	if disk.Exists(filepath.Join(h.dir, "gone")) || disk.Exists(dir) {
		t.Error("a folder without files, or the merged worktree, is left")
	}
	h.calls = calls.New(ledger.NewEntries(h.ledger.Ledger, 0, h.log), h.places, h.log) // as a host that does not know the call any more
	if again := h.execute(req); again.GetResult() != resp.GetResult() {
		t.Errorf("the same call again: %q", again.GetResult())
	}
	expect(t, h.merge("child"), done, false, "Nothing to merge")
	if out, err := exec.Command("git", "-C", h.dir, "fsck").CombinedOutput(); err != nil {
		t.Errorf("git fsck: %s", out)
	}
}

// TestMergeIsWholeOrNot: each kind of conflict is named, and nothing changes.
func TestMergeIsWholeOrNot(t *testing.T) {
	if testing.Short() {
		t.Skip("merges many worktrees")
	}
	t.Parallel()
	remove := func(t *testing.T, dir, name string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		child, parent func(t *testing.T, dir string)
		want          string
	}{
		"same lines":       {func(t *testing.T, d string) { put(t, d, "a", "child\n") }, func(t *testing.T, d string) { put(t, d, "a", "parent\n") }, "conflict with changes in the workspace: a."},
		"binary":           {func(t *testing.T, d string) { put(t, d, "bin", "\x00c") }, func(t *testing.T, d string) { put(t, d, "bin", "\x00p") }, "conflict with changes in the workspace: bin."},
		"deleted here":     {func(t *testing.T, d string) { put(t, d, "a", "child\n") }, func(t *testing.T, d string) { remove(t, d, "a") }, ": a."},
		"deleted there":    {func(t *testing.T, d string) { remove(t, d, "a") }, func(t *testing.T, d string) { put(t, d, "a", "parent\n") }, ": a."},
		"both new":         {func(t *testing.T, d string) { put(t, d, "n", "child\n") }, func(t *testing.T, d string) { put(t, d, "n", "parent\n") }, ": n."},
		"ignored here":     {func(t *testing.T, d string) { put(t, d, "x.o", "c"); gitOutput(t, d, "add", "-f", "x.o") }, func(t *testing.T, d string) { put(t, d, "x.o", "p") }, ": x.o."},
		"folder here":      {func(t *testing.T, d string) { put(t, d, "n", "child\n") }, func(t *testing.T, d string) { put(t, d, "n/x", "p") }, ": n."},
		"file here":        {func(t *testing.T, d string) { put(t, d, "n/x", "child\n") }, func(t *testing.T, d string) { put(t, d, "n", "p") }, ": n/x (n is no folder)."},
		"folder with more": {func(t *testing.T, d string) { remove(t, d, "f"); put(t, d, "f", "now a file") }, func(t *testing.T, d string) { put(t, d, "f/y", "p") }, "f changed or could not be written"},
		"link out":         {func(t *testing.T, d string) { put(t, d, "f/new", "child\n") }, func(t *testing.T, d string) { remove(t, d, "f"); symlink(t, os.TempDir(), d, "f") }, "f/new (f is no folder)"},
		"guarded":          {func(t *testing.T, d string) { put(t, d, "AGENTS.md", "obey") }, func(*testing.T, string) {}, "AGENTS.md is"},
		"guarded deletion": {func(t *testing.T, d string) { remove(t, d, ".envrc") }, func(*testing.T, string) {}, ".envrc is"},
		"guarded by case":  {func(t *testing.T, d string) { put(t, d, ".VSCode/tasks.json", "{}") }, func(*testing.T, string) {}, ".VSCode/tasks.json is"},
		"a bare repository": {func(t *testing.T, d string) {
			put(t, d, "b/HEAD", "x")
			put(t, d, "b/objects/x", "x")
			put(t, d, "b/refs/x", "x")
			put(t, d, "b/config", "x")
		}, func(t *testing.T, d string) {
			put(t, d, "b/HEAD", "x")
			put(t, d, "b/objects/x", "x")
			put(t, d, "b/refs/x", "x")
		}, "b/config is"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRepository(t, map[string]string{"a": "1\n", "bin": "\x00", "f/x": "x", ".gitignore": "*.o\n", ".envrc": "e"})
			dir := h.worktree("child")
			put(t, dir, "0-first", "would be written first")
			c.child(t, dir)
			c.parent(t, h.dir)
			h.end("child")
			before := filesOf(t, h.dir)
			resp := h.merge("child")
			expect(t, resp, done, true, "Nothing was merged", c.want)
			sameFiles(t, "the workspace", filesOf(t, h.dir), before)
			if !disk.Exists(dir) {
				t.Error("unmerged work was removed")
			}
			for name := range filesOf(t, h.dir) {
				if strings.Contains(name, ".harness-") {
					t.Errorf("left: %s", name)
				}
			}
		})
	}
}

func symlink(t *testing.T, target, dir, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyTheCallerMerges: a run merges what its own calls have started, and nothing else.
func TestOnlyTheCallerMerges(t *testing.T) {
	t.Parallel()
	h := newRepository(t, map[string]string{"a": "1"})
	put(t, h.worktree("child"), "b", "2")
	h.end("child")
	for name, edit := range map[string]func(*harnessv1.ExecuteToolRequest){
		"another run":                 func(r *harnessv1.ExecuteToolRequest) { r.RunId = "other" },
		"another namespace":           func(r *harnessv1.ExecuteToolRequest) { r.Namespace = "m" },
		"another run of the name":     func(r *harnessv1.ExecuteToolRequest) { r.FirstSequence = 8 },
		"a run without a worktree":    func(r *harnessv1.ExecuteToolRequest) { r.Arguments = `{"run":"nobody"}` },
		"a path instead of a run":     func(r *harnessv1.ExecuteToolRequest) { r.Arguments = `{"run":"../child"}` },
		"the child merges itself":     func(r *harnessv1.ExecuteToolRequest) { r.RunId = "child" },
		"a workspace of another kind": func(r *harnessv1.ExecuteToolRequest) { r.Workspace = t.TempDir() },
	} {
		req := h.request(tree.MergeTool, "", map[string]any{"run": "child"})
		edit(req)
		if resp := h.execute(req); !resp.GetIsError() || disk.Exists(filepath.Join(h.dir, "b")) || disk.Exists(filepath.Join(req.GetWorkspace(), "b")) {
			t.Errorf("%s: %v", name, resp)
		}
	}
	other := h.worktreeRequest("child")
	other.ParentRunId = "other"
	if _, err := h.MakeWorktree(t.Context(), other); err == nil {
		t.Error("a worktree was bound to another parent")
	}
}
