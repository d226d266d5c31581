package worktree

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the contents of the files below a folder, without those of git.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// open returns the worktrees in a folder, as a host that starts does.
func open(dir string) *Worktrees {
	trees := New(Config{
		Dir: filepath.Join(dir, "worktrees"), Data: dir, Git: git.New(git.Config{Dir: dir, Data: dir, Mark: func() string { return "MARK=none" }}),
		Busy: func(string) bool { return false }, Logger: slog.New(slog.DiscardHandler),
	})
	trees.Sweep()
	return trees
}

// TestAnInterruptedMergeIsUndone: a host that dies while a merge writes leaves nothing of it to the next one, and
// all of it once the merge is recorded. What has changed since stays.
func TestAnInterruptedMergeIsUndone(t *testing.T) {
	t.Parallel()
	for wrote := range 4 {
		for _, recorded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d writes, recorded %v", wrote, recorded), func(t *testing.T) {
				t.Parallel()
				interruptMerge(t, wrote, recorded)
			})
		}
	}
}

func interruptMerge(t *testing.T, wrote int, recorded bool) {
	data, workspace := t.TempDir(), t.TempDir()
	trees := open(data)
	if out, err := exec.Command("git", "-C", workspace, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	put(t, workspace, "changed", "old")
	put(t, workspace, "deep/deleted", "old")
	dir, err := trees.Make(t.Context(), &harnessv1.MakeWorktreeRequest{
		Namespace: "n", RunId: "child", ParentRunId: "r", ParentFirstSequence: 7, RootRunId: "r", Workspace: workspace,
	})
	if err != nil {
		t.Fatal(err)
	}
	before, folder := filesOf(t, workspace), filepath.Dir(dir)
	stage := filepath.Join(folder, worktreeMerge)
	file := func(text string) toolhost.TreeFile {
		return toolhost.TreeFile{Mode: toolhost.Regular, Digest: digestOf(text), Size: int64(len(text))}
	}
	j := &mergeJournal{ID: "0123", Workspace: workspace, Changes: []*mergeChange{
		{Path: []byte("changed"), Old: file("old"), New: file("new"), Staged: "new-0", Saved: "old-0"},
		{Path: []byte("deep/deleted"), Old: file("old"), Saved: "old-0"},
		{Path: []byte("added/deep"), New: file("new"), Staged: "new-0"},
	}}
	put(t, stage, "new-0", "new")
	put(t, stage, "old-0", "old")
	if err := j.store(stage); err != nil {
		t.Fatal(err)
	}
	files, err := openTree(t.Context(), workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range j.Changes[:wrote] {
		if err := j.put(files, stage, string(c.Path), c.Staged, c.Old, c.New, false); err != nil {
			t.Fatal(err)
		}
	}
	files.close()
	if recorded {
		record, _ := trees.read(folder)
		record.Merge = j.ID
		if err := trees.store(folder, record); err != nil {
			t.Fatal(err)
		}
		before = filesOf(t, workspace)
	}
	put(t, folder, worktreeNew+"half/files/x", "x")
	put(t, trees.config.Dir, "nobody/files/x", "x")
	next := open(data)
	if after := filesOf(t, workspace); !maps.Equal(after, before) {
		t.Errorf("%v, expected %v", after, before)
	}
	if disk.Exists(stage) || disk.Exists(filepath.Join(folder, worktreeNew+"half")) || disk.Exists(filepath.Join(next.config.Dir, "nobody")) || !disk.Exists(dir) {
		t.Error("leftovers are there, or a worktree is not")
	}
	if !recorded && disk.Exists(filepath.Join(workspace, "added")) {
		t.Error("an empty folder is left")
	}
}
