package git

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// notFound is how git reports that there is no repository.
var notFound = regexp.MustCompile(`(?m)^fatal: (not a git repository|error opening '.*\.git'|failed to read object|bad object|your current branch appears to be broken)`)

// Outside are folders of a workspace's repository that the workspace does not have.
type Outside struct {
	// Root is the folder with .git. It is above the workspace if Above is set.
	Root  string
	Above bool
	// Folders are the git folder and the folders with its references and objects, as far as they are neither in the
	// workspace nor reachable by FoldersOutside. Each is a git folder or within one, or the file that names one.
	Folders []string
}

// FindOutside returns the folders of a workspace's repository that its commands cannot reach by themselves: a workspace that names a
// folder does not prove that the folder is for it, so a person has to give it.
func FindOutside(dir string) Outside {
	r, err := Find(dir)
	if err != nil || !r.Exists {
		return Outside{}
	}
	out := Outside{Root: r.Root, Above: r.Root != r.Workspace}
	folder, common, err := Folder(r.Root)
	if err != nil {
		return Outside{}
	}
	given := append([]string{r.Workspace}, FoldersOutside(dir)...)
	for _, path := range []string{folder, common, filepath.Join(common, "objects"), filepath.Join(common, "refs")} {
		path, err := filepath.EvalSymlinks(path)
		if err != nil || slices.ContainsFunc(given, func(folder string) bool { _, in := disk.Within(folder, path); return in }) {
			continue
		}
		if isGitFolder(path) || isGitFolder(filepath.Dir(path)) {
			out.Folders, given = append(out.Folders, path), append(given, path)
		}
	}
	if info, err := os.Lstat(filepath.Join(r.Root, ".git")); err == nil && info.Mode().IsRegular() && out.Above && out.Folders != nil {
		out.Folders = append(out.Folders, filepath.Join(r.Root, ".git"))
	}
	return out
}

// isGitFolder reports whether git takes a folder for a git folder. Another folder that a workspace names is not for commands.
func isGitFolder(dir string) bool {
	return gitguard.IsBare(func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// NotReached returns a text for the model if git found no repository in a workspace that has one outside of the sandbox; empty for
// none. asks is true if commands can ask to run outside.
func NotReached(output, dir string, asks bool) string {
	if !notFound.MatchString(output) {
		return ""
	}
	out := FindOutside(dir)
	if len(out.Folders) == 0 {
		return ""
	}
	named := strings.Join(out.Folders, ", ")
	text := fmt.Sprintf("The git folder of this workspace's repository is outside of the sandbox (%s), so git does not find it. Do not make a new repository. "+
		"The user can let commands write it with sandbox: {write: [%s]} in the agent file, or read the history with sandbox: {read: [%s]}.", named, named, named)
	if out.Above {
		text = fmt.Sprintf("The workspace is a folder of the repository %s, whose git folder is outside of the sandbox (%s), so git does not find it. Do not make a new repository. "+
			"The user can let commands read its history with sandbox: {read: [%s]} in the agent file, or start a run with the workspace %s.", out.Root, named, named, out.Root)
	}
	if asks {
		text += " If the task needs this, repeat the call with unconfined and the reason: a person decides about it."
	}
	return text
}

// Environ returns the variables by which git finds a repository above a workspace of which folders that commands can reach have
// the git folder: the folders in between are of another file system in a sandbox.
func Environ(dir string, reached []string) []string {
	if len(reached) == 0 {
		return nil
	}
	out := FindOutside(dir)
	if !out.Above || !slices.ContainsFunc(out.Folders, func(path string) bool {
		return slices.ContainsFunc(reached, func(folder string) bool { _, in := disk.Within(folder, path); return in })
	}) {
		return nil
	}
	return []string{"GIT_DISCOVERY_ACROSS_FILESYSTEM=1"}
}
