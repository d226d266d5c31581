package toolhostserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func (h *host) inspect() *harnessv1.InspectWorkspaceResponse {
	h.t.Helper()
	resp, err := h.InspectWorkspace(context.Background(), &harnessv1.InspectWorkspaceRequest{
		Workspace: h.dir, Namespace: "n", RunId: "r", FirstSequence: 7,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

// checkChanges checks the number of changed files.
func (h *host) checkChanges(want uint32) {
	h.t.Helper()
	if got := h.inspect().GetFilesChanged(); got != want {
		h.t.Errorf("%d changed files, want %d", got, want)
	}
}

// git runs git as users do, with the configuration of the repository.
func runGit(t testing.TB, dir string, arguments ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{
		"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always",
	}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// replaceByPipe replaces a file by a named pipe. Opening it blocks.
func replaceByPipe(h *host, name string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) repository() {
	h.t.Helper()
	t := h.t.(*testing.T)
	for _, name := range []string{"a.txt", "b.txt", "dir/c.txt", "dir/deep/d.txt"} {
		h.write(name, "as committed\n")
	}
	h.write(".gitignore", "ignored\n")
	runGit(t, h.dir, "init", "-q")
	runGit(t, h.dir, "add", ".")
	runGit(t, h.dir, "commit", "-q", "-m", "m")
}

func TestChangesAreThoseOfCallsAndOfGit(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	h.checkChanges(0)
	h.call(tools.WriteFile, map[string]any{"path": "a.txt", "content": "changed by a call\n"})
	h.checkChanges(1) // in the ledger and named by git
	h.call(tools.WriteFile, map[string]any{"path": "ignored", "content": "x"})
	h.checkChanges(2) // only in the ledger
	h.command("echo x > dir/new; echo x > 'dir/with a \"name\" and ä'; rm b.txt")
	h.checkChanges(5) // only named by git
	h.call(tools.EditFile, map[string]any{"path": "dir/c.txt", "old": "as", "new": "not as"})
	h.checkChanges(6)
	runGit(t, h.dir, "add", ".")
	h.checkChanges(6)
	runGit(t, h.dir, "commit", "-q", "-m", "m")
	h.checkChanges(3) // a.txt, ignored and dir/c.txt are in the ledger
	if _, err := os.Stat(filepath.Join(h.dir, ".git", "index.lock")); err == nil {
		t.Error("the index is locked")
	}
	if left, _ := filepath.Glob(filepath.Join(h.config.Dir, "git-"+"*")); left != nil {
		t.Errorf("files left behind: %v", left)
	}
}

func TestChangesBelowAFolderOfARepository(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.repository()
	h.write("a.txt", "changed outside\n")
	h.write("dir/c.txt", "changed inside\n")
	h.dir = filepath.Join(h.dir, "dir")
	h.checkChanges(1)
	h.call(tools.WriteFile, map[string]any{"path": "c.txt", "content": "x"})
	h.checkChanges(1)
	h.call(tools.WriteFile, map[string]any{"path": "new", "content": "x"})
	h.checkChanges(2)
}

func TestChangesInAllKindsOfRepositories(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a repository for each case")
	}
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, h *host){
		"no commit yet": func(t *testing.T, h *host) {
			runGit(t, h.dir, "init", "-q")
			h.write("a", "x")
			h.write("b", "x")
			runGit(t, h.dir, "add", "a")
		},
		"SHA-256": func(t *testing.T, h *host) {
			runGit(t, h.dir, "init", "-q", "--object-format=sha256")
			h.write("a", "x")
			runGit(t, h.dir, "add", ".")
			runGit(t, h.dir, "commit", "-q", "-m", "m")
			h.write("a", "changed")
			h.write("b", "x")
		},
		"packed references": func(t *testing.T, h *host) {
			h.repository()
			runGit(t, h.dir, "pack-refs", "--all")
			runGit(t, h.dir, "gc", "-q")
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"detached head": func(t *testing.T, h *host) {
			h.repository()
			runGit(t, h.dir, "checkout", "-q", "--detach")
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"split index": func(t *testing.T, h *host) {
			h.repository()
			runGit(t, h.dir, "update-index", "--split-index")
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"linked worktree": func(t *testing.T, h *host) {
			h.repository()
			linked := filepath.Join(t.TempDir(), "linked")
			runGit(t, h.dir, "worktree", "add", "-q", linked)
			h.write("only here", "x")
			h.dir = linked
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"submodule": func(t *testing.T, h *host) {
			h.repository()
			above := &host{Server: h.Server, t: t, dir: t.TempDir()}
			above.repository()
			runGit(t, above.dir, "submodule", "--quiet", "add", h.dir, "sub")
			h.dir = filepath.Join(above.dir, "sub")
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"info/exclude": func(t *testing.T, h *host) {
			h.repository()
			h.write(".git/info/exclude", "*.log\n")
			h.write("a.log", "x")
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"ignored file modes": func(t *testing.T, h *host) {
			h.repository()
			runGit(t, h.dir, "config", "core.fileMode", "false")
			if err := os.Chmod(filepath.Join(h.dir, "dir/c.txt"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.write("a.txt", "x")
			h.write("b", "x")
		},
		"link to the workspace": func(t *testing.T, h *host) {
			h.repository()
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(h.dir, link); err != nil {
				t.Fatal(err)
			}
			h.dir = h.found(link)
			h.write("a.txt", "x")
			h.write("b", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			prepare(t, h)
			h.checkChanges(2)
		})
	}
}

func TestChangesAreThoseOfCalls_WhenGitFails(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a repository for each case")
	}
	for name, breakGit := range map[string]func(h *host){
		"no repository":   func(h *host) { _ = os.RemoveAll(filepath.Join(h.dir, ".git")) },
		"no git":          func(h *host) { h.t.(*testing.T).Setenv("PATH", h.dir) },
		"broken index":    func(h *host) { h.write(".git/index", "no index") },
		"HEAD is a pipe":  func(h *host) { replaceByPipe(h, ".git/HEAD") },
		"index is a pipe": func(h *host) { replaceByPipe(h, ".git/index") },
		"invalid .git file": func(h *host) {
			_ = os.RemoveAll(filepath.Join(h.dir, ".git"))
			h.write(".git", "gitdir: nowhere\n")
		},
		"reftable": func(h *host) { h.write(".git/config", "[extensions]\n\trefStorage = reftable\n") },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "no git" { // it changes the environment
				t.Parallel()
			}
			h := newHost(t, Config{})
			h.repository()
			h.write("b.txt", "not changed by a call\n")
			h.call(tools.WriteFile, map[string]any{"path": "a.txt", "content": "x"})
			h.checkChanges(2)
			breakGit(h)
			h.checkChanges(1)
		})
	}
}

func TestChangesExcludeTheToolHostsOwnFiles(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	h := newHost(t, Config{Dir: filepath.Join(workspace, "state")})
	h.dir = workspace
	runGit(t, workspace, "init", "-q")
	h.checkChanges(0)
	h.write("a", "x")
	h.checkChanges(1)
}

func TestInspectWorkspaceRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for name, req := range map[string]*harnessv1.InspectWorkspaceRequest{
		"no workspace":       {Namespace: "n", RunId: "r"},
		"relative workspace": {Namespace: "n", RunId: "r", Workspace: "a"},
		"no namespace":       {RunId: "r", Workspace: h.dir},
		"no run":             {Namespace: "n", Workspace: h.dir},
	} {
		if _, err := h.InspectWorkspace(context.Background(), req); code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.dir = filepath.Join(h.dir, "gone")
	if resp := h.inspect(); resp.GetFilesChanged() != 0 || resp.GetInstructionFiles() != nil {
		t.Errorf("got %v", resp)
	}
}
