package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// TestWritersInWorktrees: eight runs write at the same time over a repository with uncommitted files and hostile
// configuration. Each sees its own files, merges are whole or not at all, and nothing of the repository ran.
func TestWritersInWorktrees(t *testing.T) {
	if testing.Short() {
		t.Skip("makes eight worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{"shared": "all\n", "a": "1"})
	ran := hostile(t, h)
	h.write("uncommitted", "u")
	var group sync.WaitGroup
	dirs := make([]string, 8)
	for i := range dirs {
		group.Go(func() {
			child := fmt.Sprint("child", i)
			r, err := h.MakeWorktree(context.Background(), h.worktreeRequest(child))
			if err != nil || r.GetProblem() != "" {
				t.Errorf("%q, %v", r.GetProblem(), err)
				return
			}
			dirs[i] = r.GetWorkspace()
			for _, name := range []string{fmt.Sprint("own", i), "shared"} {
				req := h.request("write_file", "", map[string]any{"path": name, "content": fmt.Sprintf("%d\n", i)})
				req.RunId, req.Workspace = child, dirs[i]
				if resp, err := h.ExecuteTool(context.Background(), req); err != nil || resp.GetIsError() {
					t.Errorf("%v, %v", resp, err)
				}
			}
			req := h.request("run_command", "", map[string]any{"command": "git add -A && git -c user.name=u -c user.email=u commit -q -m own && ls && cat uncommitted shared"})
			req.RunId, req.Workspace = child, dirs[i]
			resp, err := h.ExecuteTool(context.Background(), req)
			if err != nil || !strings.Contains(resp.GetResult(), fmt.Sprint("own", i)) || strings.Count(resp.GetResult(), "own") != 1 || !strings.Contains(resp.GetResult(), fmt.Sprintf("u%d\n", i)) {
				t.Errorf("child %d sees %v, %v", i, resp, err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	merged := 0
	for i := range dirs {
		child := fmt.Sprint("child", i)
		h.end(child)
		before := filesOf(t, h.dir)
		resp := h.merge(child)
		after := filesOf(t, h.dir)
		own, shared := after[fmt.Sprint("own", i)] != "", after["shared"] == fmt.Sprintf("false %d\n", i)
		switch {
		case !resp.GetIsError() && own && shared:
			merged++
		case resp.GetIsError() && strings.Contains(resp.GetResult(), ": shared."):
			sameFiles(t, child, after, before)
		default:
			t.Errorf("%s: %q, own %v, shared %v", child, resp.GetResult(), own, shared)
		}
	}
	if merged != 1 {
		t.Errorf("%d merges of 8 that conflict succeeded, want 1", merged)
	}
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("the repository ran programs: %s", data)
	}
}

// hostile gives a repository everything by which git would run a program. It returns the file that one writes.
func hostile(t *testing.T, h *host) string {
	t.Helper()
	ran := filepath.Join(t.TempDir(), "ran")
	program := func(what string) string { return fmt.Sprintf("sh -c 'echo %s >> %s; cat'", what, ran) }
	config := fmt.Sprintf(`
[core]
	fsmonitor = %[1]s
	sshCommand = %[2]s
	hooksPath = hooks
	pager = %[2]s
	editor = %[2]s
	gitProxy = %[2]s
[filter "evil"]
	clean = %[2]s
	smudge = %[2]s
	process = %[2]s
	required = true
[diff "evil"]
	command = %[2]s
	textconv = %[2]s
[diff]
	external = %[2]s
[merge "evil"]
	driver = %[2]s
[credential]
	helper = !%[2]s
[gpg]
	program = %[2]s
[commit]
	gpgSign = true
[submodule]
	recurse = true
[alias]
	ls-files = !%[2]s
	fast-import = !%[2]s
[include]
	path = ../included
[extensions]
	partialClone = origin
[remote "origin"]
	url = ext::%[2]s
	promisor = true
[uploadpack]
	packObjectsHook = %[2]s
`, filepath.Join(h.dir, "monitor"), program("config"))
	f, err := os.OpenFile(filepath.Join(h.dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(config)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	h.write("included", "[core]\n\tfsmonitor = "+program("included")+"\n")
	h.write("monitor", "#!/bin/sh\necho monitor >> "+ran+"\n")
	h.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
	hooks := []string{"pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction", "post-merge", "prepare-commit-msg", "pre-auto-gc", "fsmonitor-watchman"}
	for _, hook := range hooks {
		h.write("hooks/"+hook, "#!/bin/sh\necho "+hook+" >> "+ran+"\n")
		put(t, filepath.Join(h.dir, ".git"), "hooks/"+hook, "#!/bin/sh\necho "+hook+" >> "+ran+"\n")
		for _, at := range []string{"hooks/", ".git/hooks/"} {
			if err := os.Chmod(filepath.Join(h.dir, at+hook), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(filepath.Join(h.dir, "monitor"), 0o755); err != nil {
		t.Fatal(err)
	}
	return ran
}

// TestManyFilesInAWorktree: files are copied, compared and merged in a time that a person waits for.
func TestManyFilesInAWorktree(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 3,000 files")
	}
	t.Parallel()
	copyMany(t, 1_000)
}

func TestSystemManyFilesInAWorktree(t *testing.T) { copyMany(t, 10_000) }

func copyMany(t *testing.T, files int) {
	h := newHost(t, Config{})
	gitOutput(t, h.dir, "init", "-q")
	for i := range files {
		h.write(fmt.Sprintf("d%d/f%d", i%100, i), strings.Repeat(fmt.Sprintf("line %d\n", i), 50))
	}
	gitOutput(t, h.dir, "add", "-A")
	gitOutput(t, h.dir, "commit", "-q", "-m", "many")
	begin := time.Now()
	dir := h.worktree("child")
	made := time.Since(begin)
	put(t, dir, "d1/f1", "changed")
	begin = time.Now()
	h.end("child")
	expect(t, h.merge("child"), done, false, "1 files changed")
	t.Logf("made in %v, compared and merged in %v", made, time.Since(begin))
	if made > time.Minute {
		t.Errorf("made in %v", made)
	}
}

// TestAWorktreeIsConfined: its commands reach git's objects of the parent, and nothing else of it or of the host, and write
// nothing of either.
func TestAWorktreeIsConfined(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{"a": "1"})
	if h.Sandbox(t.Context()).GetLevel() == harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF {
		t.Log("nothing confines commands here")
		return
	}
	h.write("private", "secret of the parent")
	gitOutput(t, h.dir, "config", "user.password", "secret in the configuration")
	dir := h.worktree("child")
	put(t, h.worktree("other"), "b", "secret of another")
	objects := filepath.Join(h.dir, ".git", "objects")
	line := strings.Join([]string{
		"cat " + filepath.Join(h.dir, "private"), "cat " + filepath.Join(h.dir, ".git", "config"), "touch " + filepath.Join(objects, "planted"),
		"touch " + filepath.Join(h.dir, ".git", "hooks", "planted"), "cat " + filepath.Join(h.worktree("other"), "b"),
		"cat " + filepath.Join(filepath.Dir(dir), "facts"), "touch ../planted", "echo x >> own", "git log --format=%s",
		"git add own", "git -c user.name=u -c user.email=u commit -qm mine", "git log --format=%s", "true",
	}, "; ")
	req := h.request("run_command", "", map[string]any{"command": line})
	req.RunId, req.Workspace = "child", dir
	resp := h.execute(req)
	expect(t, resp, done, false, "mine\nFiles of the parent as they are\nfirst\n")
	if strings.Contains(resp.GetResult(), "secret") {
		t.Errorf("a command read what it must not: %s", resp.GetResult())
	}
	for _, path := range []string{filepath.Join(objects, "planted"), filepath.Join(h.dir, ".git", "hooks", "planted"), filepath.Join(filepath.Dir(dir), "planted")} {
		if disk.Exists(path) {
			t.Errorf("a command made %s", path)
		}
	}
}

// TestWorktreeOfAFolder: a workspace below the root of its repository has a worktree of that folder, to which the rules of
// the folders above hold at the merge. Submodules and nested repositories are left out.
func TestWorktreeOfAFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{".gitignore": "*.o\n", "above": "x", "sub/a": "1"})
	other := t.TempDir()
	gitOutput(t, other, "init", "-q")
	gitOutput(t, other, "commit", "-q", "--allow-empty", "-m", "x")
	gitOutput(t, h.dir, "submodule", "--quiet", "add", other, "sub/module")
	h.write("sub/module/inside", "m")
	h.write("sub/nested/file", "n")
	gitOutput(t, filepath.Join(h.dir, "sub", "nested"), "init", "-q")
	root := h.dir
	h.dir = filepath.Join(root, "sub")
	dir := h.worktree("child")
	sameFiles(t, "files of the worktree", filesOf(t, dir), map[string]string{"a": "false 1"})
	put(t, dir, "b", "new")
	put(t, dir, "b.o", "built")
	h.end("child")
	expect(t, h.merge("child"), done, false, "0 files changed, 1 added, 0 deleted")
	if h.read("b") != "new" || disk.Exists(filepath.Join(h.dir, "b.o")) {
		t.Error("the merge is not what the rules of the repository have")
	}
	put(t, h.worktree("second"), "module/inside", "planted")
	h.end("second")
	expect(t, h.merge("second"), done, true, "module (a submodule")
	gitOutput(t, h.worktree("third"), "init", "-q", "cloned")
	put(t, h.worktree("third"), "cloned/file", "work")
	if !h.end("third") {
		t.Error("a repository in a worktree was removed")
	}
	expect(t, h.merge("third"), done, true, "cloned (a submodule or a repository")
}
