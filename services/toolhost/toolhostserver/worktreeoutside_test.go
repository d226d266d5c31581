package toolhostserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAWorktreeHasNothingFromOutsideOfTheRepository: a command can make any file of a git folder a link, and the folder itself
// that of another repository. What the host then reads there with its own rights is in no worktree and in no result.
func TestAWorktreeHasNothingFromOutsideOfTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("makes worktrees")
	}
	t.Parallel()
	outside := t.TempDir()
	gitOutput(t, outside, "init", "-q", "-b", secret)
	put(t, outside, secret, secret)
	gitOutput(t, outside, "add", "-A")
	gitOutput(t, outside, "-c", "user.name=u", "-c", "user.email=u", "commit", "-qm", secret)
	put(t, outside, ".git/info/exclude", secret+"\n")
	commit := strings.TrimSpace(gitOutput(t, outside, "rev-parse", "HEAD"))
	gitOutput(t, outside, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+secret+"-module")
	conflict := t.TempDir()
	gitOutput(t, conflict, "init", "-q")
	shell(t, conflict, `printf '100644 %s 1\t%s\n' $(echo x | git hash-object -w --stdin) `+secret+" | git update-index --index-info")
	put(t, outside, ".git/shallow", strings.Repeat("a", 40)+"\n")
	for name, plant := range map[string]string{
		"a link to a file":              "ln -sf " + outside + "/" + secret + " .git/info/exclude",
		"a link to a folder":            "rm -r .git/info; ln -s " + outside + "/.git/info .git/info",
		"a link to a git folder":        "rm -r .git; ln -s " + outside + "/.git .git",
		"the name of a git folder":      "rm -r .git; echo gitdir: " + outside + "/.git >.git",
		"the name of a common folder":   "echo " + outside + "/.git >.git/commondir",
		"a link to the index":           "ln -sf " + outside + "/.git/index .git/index",
		"a link to unmerged files":      "ln -sf " + conflict + "/.git/index .git/index",
		"the folder of unmerged files":  "rm -r .git; echo gitdir: " + conflict + "/.git >.git",
		"a link to the list of shallow": "ln -s " + outside + "/.git/shallow .git/shallow",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newRepository(t, map[string]string{"a": "1"})
			shell(t, h.dir, plant)
			r, err := h.MakeWorktree(t.Context(), h.worktreeRequest("child"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(r.GetProblem(), secret) {
				t.Errorf("the problem shows what is outside: %s", r.GetProblem())
			}
			if r.GetWorkspace() == "" {
				t.Log(r.GetProblem())
				return
			}
			_ = filepath.WalkDir(r.GetWorkspace(), func(path string, _ os.DirEntry, err error) error {
				text, _ := os.ReadFile(path)
				if err != nil || strings.Contains(path+string(text), secret) || strings.Contains(string(text), strings.Repeat("a", 40)) {
					t.Errorf("%s has what is outside: %v", path, err)
				}
				return nil
			})
		})
	}
}
