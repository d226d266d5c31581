package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// TestGitOutsideOfTheWorkspace: a git folder that does not name the workspace is not opened by itself; the result names it and how to
// give it, and given it works: to read or to write. One that names the workspace works.
func TestGitOutsideOfTheWorkspace(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	gitUser(t)
	h := newHost(t, Config{})
	const commit = "git init -q w && cd w && mkdir -p packages/a && echo x > packages/a/f && git add . && git commit -qm one && cd .. && "
	for name, c := range map[string]struct {
		prepare, workspace, folder, named string
		works                             bool
	}{
		"a link":                             {commit + "mkdir meta && mv w/.git meta/p.git && ln -s ../meta/p.git w/.git", "w", "meta/p.git", "{write: [", false},
		"a link that is absolute":            {commit + `mkdir meta && mv w/.git meta/p.git && ln -s "$PWD/meta/p.git" w/.git`, "w", "meta/p.git", "{write: [", false},
		"a separate folder":                  {commit + `cd w && git init -q --separate-git-dir=../sep.git .`, "w", "sep.git", "{write: [", false},
		"above":                              {commit + "true", "w/packages/a", "w/.git", "or start a run with the workspace", false},
		"above, separate":                    {commit + "cd w && git init -q --separate-git-dir=../sep.git .", "w/packages/a", "sep.git", "or start a run with the workspace", false},
		"objects elsewhere":                  {commit + "mkdir -p o.git/refs && echo 'ref: refs/heads/x' > o.git/HEAD && mv w/.git/objects o.git/objects && ln -s ../../o.git/objects w/.git/objects", "w", "o.git/objects", "{write: [", false},
		"a link to one that names it":        {commit + "mkdir meta && mv w/.git meta/p.git && ln -s ../meta/p.git w/.git && git -C w config core.worktree ../../w", "w", "", "", true},
		"a separate folder that names it":    {commit + `cd w && git init -q --separate-git-dir=../sep.git . && git config core.worktree "$PWD"`, "w", "", "", true},
		"a linked worktree":                  {commit + "git -C w worktree add -q ../v", "v", "", "", true},
		"a link to a folder that is no repo": {commit + "rm -rf w/.git && mkdir keys && echo k > keys/HEAD && ln -s ../keys w/.git", "w", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := h.found(t.TempDir())
			shell(t, above, c.prepare)
			h := &host{Server: h.Server, t: t, dir: filepath.Join(above, c.workspace)}
			folder := filepath.Join(above, c.folder)
			for _, level := range h.levels() {
				const line = "cat .git/HEAD .git/config; git log --oneline"
				r := h.confined(level, nil, line)
				switch {
				case c.works:
					if r.GetIsError() || !strings.Contains(r.GetResult(), "one") {
						t.Errorf("%s: %s", sandbox.Name(level), r.GetResult())
					}
					continue
				case c.folder == "":
					if strings.Contains(r.GetResult(), "sandbox: {") || strings.Contains(r.GetResult(), "k\n") {
						t.Errorf("%s: %s", sandbox.Name(level), r.GetResult())
					}
					continue
				case !strings.Contains(r.GetResult(), folder) || !strings.Contains(r.GetResult(), c.named) || !strings.Contains(r.GetResult(), "Do not make a new repository."):
					t.Errorf("%s: %s", sandbox.Name(level), r.GetResult())
				case strings.Contains(r.GetResult(), "repositoryformatversion") && c.folder != "o.git/objects":
					t.Errorf("%s: the git folder was read: %s", sandbox.Name(level), r.GetResult())
				}
				if r := h.confined(level, &harnessv1.SandboxConfig{Read: git.FindOutside(h.dir).Folders}, "git log --oneline && ! git tag v"); !strings.Contains(r.GetResult(), "one\n") || r.GetIsError() && c.folder != "o.git/objects" {
					t.Errorf("%s, read: %s", sandbox.Name(level), r.GetResult())
				}
			}
			if c.folder == "" || strings.HasPrefix(name, "above") {
				return
			}
			r := h.confined(h.levels()[0], &harnessv1.SandboxConfig{Write: []string{folder}}, "echo y > y && git add . && git commit -qm two && echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git log --oneline")
			if !strings.Contains(r.GetResult(), "two\n") {
				t.Errorf("write: %s", r.GetResult())
			}
			if _, err := os.Stat(filepath.Join(h.dir, ".git/hooks/pre-commit")); err == nil {
				t.Error("a hook in the git folder stays")
			}
		})
	}
}
