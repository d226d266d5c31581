package toolhostserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// gitOutput runs git in a folder, as the user of a machine without settings does.
func gitOutput(t testing.TB, dir string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, arguments...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", arguments, err, out)
	}
	return string(out)
}

// newRepository returns a host whose workspace is a repository with a commit of some files.
func newRepository(t testing.TB, files map[string]string) *host {
	t.Helper()
	h := newHost(t, Config{})
	gitOutput(t, h.dir, "init", "-q")
	for name, text := range files {
		h.write(name, text)
	}
	gitOutput(t, h.dir, "add", "-A")
	gitOutput(t, h.dir, "commit", "-q", "--allow-empty", "-m", "first")
	return h
}

// worktreeRequest asks for the worktree of a child of run r.
func (h *host) worktreeRequest(child string) *harnessv1.MakeWorktreeRequest {
	return &harnessv1.MakeWorktreeRequest{Namespace: "n", RunId: child, ParentRunId: "r", ParentFirstSequence: 7, RootRunId: "r", Workspace: h.dir}
}

func (h *host) worktree(child string) string {
	h.t.Helper()
	r, err := h.MakeWorktree(context.Background(), h.worktreeRequest(child))
	if err != nil || r.GetProblem() != "" {
		h.t.Fatalf("no worktree: %q, %v", r.GetProblem(), err)
	}
	return r.GetWorkspace()
}

func (h *host) end(child string) (kept bool) {
	h.t.Helper()
	r, err := h.EndWorktree(context.Background(), &harnessv1.EndWorktreeRequest{Namespace: "n", RunId: child})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.GetKept()
}

func (h *host) merge(child string) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	return h.call(tree.MergeTool, map[string]any{"run": child})
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the files of a folder without .git: content, or the target of a link.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git" && path != dir:
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		name, _ := filepath.Rel(dir, path)
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		info, _ := e.Info()
		files[name] = fmt.Sprintf("%v %s", info.Mode().Perm()&0o100 != 0, data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func sameFiles(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s:\n got %s\nwant %s", what, a, b)
	}
}

// strange are names of files that git permits.
var strange = []string{"with space", "new\nline", "quote\"back\\slash", "tab\t", "no\xff\xfeutf8", "-option", "ünï/cödé", ":(glob)*", "a/.gitx"}

// TestWorktreeHasTheFilesAsTheyAre: changed, untracked, strange, binary and executable files and links, not
// ignored ones; the parent's index, HEAD and references stay, and a repeated request changes nothing.
func TestWorktreeHasTheFilesAsTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{"tracked": "1\n", "deleted": "x", "changed": "old", ".gitignore": "*.o\n/private/\n", "forced.o": ""})
	gitOutput(t, h.dir, "add", "-f", "forced.o")
	gitOutput(t, h.dir, "commit", "-q", "-m", "forced")
	h.write("changed", "new\r\nlines\r\n")
	h.write("sub/untracked", "\x00\x01binary\xff")
	for _, name := range strange {
		h.write(name, name)
	}
	h.write("run.sh", "$Id$")
	if err := errors.Join(os.Remove(filepath.Join(h.dir, "deleted")), os.Chmod(filepath.Join(h.dir, "run.sh"), 0o755),
		os.Symlink("/etc/passwd", filepath.Join(h.dir, "out")), os.Symlink("nowhere", filepath.Join(h.dir, "dangling"))); err != nil {
		t.Fatal(err)
	}
	h.write("staged", "s")
	gitOutput(t, h.dir, "add", "staged")
	h.write(".gitattributes", "* text=auto eol=lf ident working-tree-encoding=UTF-16\n")
	want := filesOf(t, h.dir)
	h.write("a.o", "object")
	h.write("private/key", "secret")
	state := func() string {
		data, _ := os.ReadFile(filepath.Join(h.dir, ".git", "index"))
		return string(data) + gitOutput(t, h.dir, "for-each-ref") + gitOutput(t, h.dir, "rev-parse", "HEAD") + gitOutput(t, h.dir, "count-objects", "-v") + fmt.Sprint(filesOf(t, h.dir))
	}
	before := state()
	dir := h.worktree("child")
	sameFiles(t, "files of the worktree", filesOf(t, dir), want)
	if state() != before {
		t.Error("the repository of the parent has changed")
	}
	put(t, dir, "mine", "kept")
	if again := h.worktree("child"); again != dir || filesOf(t, dir)["mine"] == "" {
		t.Errorf("a repeated request made %s again", again)
	}
	if out := gitOutput(t, dir, "status", "--porcelain"); out != "?? mine\n" {
		t.Errorf("git status in the worktree: %q", out)
	}
	if out := gitOutput(t, dir, "log", "--format=%s"); out != "Files of the parent as they are\nforced\nfirst\n" {
		t.Errorf("git log in the worktree: %q", out)
	}
	info, err := os.Stat(filepath.Dir(dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the worktree: %v, %v", info, err)
	}
}

// TestWorktreeOfATokenWithRoots: a sub-agent's worktree is described for a token, in whose folders it is not;
// a link within these that leads to a worktree is refused.
func TestWorktreeOfATokenWithRoots(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{"a": "1\n"})
	dir := h.worktree("child")
	roots := []string{h.dir}
	described, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: dir, Roots: roots})
	if folder := described.GetEnvironment().GetFolder(); err != nil || folder.GetPath() != dir || !slices.Equal(folder.GetRoots(), roots) {
		t.Errorf("got %v, %v", folder, err)
	}
	link := filepath.Join(h.dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{link, filepath.Dir(dir)} {
		if d, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: other, Roots: roots}); err == nil {
			t.Errorf("%s is described: %v", other, d.GetEnvironment().GetFolder())
		}
	}
}

// TestNoWorktree: a workspace that can have none is a problem in a line, and nothing is left.
func TestNoWorktree(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, h *host)
		want    string
	}{
		"no repository": {func(*testing.T, *host) {}, "in no git repository"},
		"bare": {func(t *testing.T, h *host) {
			gitOutput(t, h.dir, "init", "-q", "--bare", ".")
		}, "bare"},
		"core.bare": {func(t *testing.T, h *host) {
			gitOutput(t, h.dir, "init", "-q")
			gitOutput(t, h.dir, "config", "core.bare", "true")
		}, "bare"},
		"merge": {func(t *testing.T, h *host) {
			conflict(t, h)
			_ = exec.Command("git", "-C", h.dir, "-c", "user.name=u", "-c", "user.email=u", "merge", "other").Run()
		}, "a git merge is not finished"},
		"rebase": {func(t *testing.T, h *host) {
			conflict(t, h)
			cmd := exec.Command("git", "-C", h.dir, "-c", "user.name=u", "-c", "user.email=u", "rebase", "other")
			_ = cmd.Run()
		}, "a git rebase is not finished"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Config{})
			c.prepare(t, h)
			r, err := h.MakeWorktree(context.Background(), h.worktreeRequest("child"))
			if err != nil || r.GetWorkspace() != "" || !strings.Contains(r.GetProblem(), c.want) {
				t.Errorf("got %v, %v, want a problem with %q", protojson.Format(r), err, c.want)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Join(h.config.Dir, "worktrees"), "*", "new-*"))
			if len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// conflict makes two branches that conflict.
func conflict(t *testing.T, h *host) {
	t.Helper()
	gitOutput(t, h.dir, "init", "-q")
	for i, branch := range []string{"main", "other", "main"} {
		switch i {
		case 1:
			gitOutput(t, h.dir, "checkout", "-q", "-b", branch)
		case 2:
			gitOutput(t, h.dir, "checkout", "-q", branch)
		}
		h.write("a", fmt.Sprint(i))
		gitOutput(t, h.dir, "add", "a")
		gitOutput(t, h.dir, "commit", "-q", "-m", fmt.Sprint(i))
	}
}

// TestLifeOfAWorktree: an unchanged one is removed at the end and made again for the next call, from the files of the parent
// as they are then; one with changes, commits or other branches stays, and goes with the run.
func TestLifeOfAWorktree(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	h := newRepository(t, map[string]string{"a": "1", ".gitignore": "*.o\n"})
	dir := h.worktree("child")
	put(t, dir, "build.o", "ignored")
	if h.end("child") || disk.Exists(dir) {
		t.Error("an unchanged worktree is kept")
	}
	h.write("a", "2")
	req := h.request("read_file", "", map[string]any{"path": "a"})
	req.RunId, req.Workspace = "child", dir
	expect(t, h.execute(req), done, false, "2")
	put(t, dir, "b", "work")
	if !h.end("child") {
		t.Error("a worktree with a new file was removed")
	}
	for name, change := range map[string]func(dir string){
		"commit": func(dir string) { gitOutput(t, dir, "commit", "-q", "--allow-empty", "-m", "x") },
		"branch": func(dir string) {
			gitOutput(t, dir, "checkout", "-q", "-b", "b")
			put(t, dir, "x", "y")
			gitOutput(t, dir, "add", "x")
			gitOutput(t, dir, "commit", "-q", "-m", "x")
			gitOutput(t, dir, "checkout", "-q", "refs/harness/base")
		},
		"no .git":  func(dir string) { _ = os.RemoveAll(filepath.Join(dir, ".git")) },
		"deletion": func(dir string) { _ = os.Remove(filepath.Join(dir, "a")) },
	} {
		dir := h.worktree("c-" + name)
		change(dir)
		if !h.end("c-"+name) || !disk.Exists(dir) {
			t.Errorf("%s: the worktree was removed", name)
		}
	}
	for _, child := range []string{"child", "c-commit", "c-no .git", "nobody"} {
		if _, err := h.EndWorktree(t.Context(), &harnessv1.EndWorktreeRequest{Namespace: "n", RunId: child, Deleted: true}); err != nil {
			t.Error(err)
		}
	}
	left, _ := os.ReadDir(filepath.Join(h.config.Dir, "worktrees"))
	if len(left) != 2 {
		t.Errorf("%d folders are left, want those of two runs", len(left))
	}
}
