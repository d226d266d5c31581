package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

// FoldersOutside returns the folders outside of a workspace that git needs for it: those of
// the repository of which it is a linked worktree, or its own as a submodule. That a
// workspace names a folder is not enough: the folder must name the workspace.
func FoldersOutside(dir string) []string {
	dotGit := filepath.Join(dir, ".git")
	if info, err := os.Lstat(dotGit); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		own, err := filepath.EvalSymlinks(dotGit)
		if err == nil && filepath.Dir(own) != dir && isSubmodule(own, dir) {
			return []string{own}
		}
	}
	text, err := disk.ReadSmall(dotGit, LineBytes)
	if err != nil {
		return nil // no repository, or its own
	}
	own := toolhost.GitFolder(text)
	if own == "" {
		return nil
	}
	if own, err = filepath.EvalSymlinks(absolute(dir, own)); err != nil {
		return nil
	}
	if isSubmodule(own, dir) {
		return []string{own}
	}
	back, err := disk.ReadSmall(filepath.Join(own, "gitdir"), LineBytes)
	if err != nil || absolute(own, strings.TrimSpace(back)) != filepath.Join(dir, ".git") {
		return nil
	}
	// own is COMMON/worktrees/NAME.
	if filepath.Base(filepath.Dir(own)) != "worktrees" {
		return nil
	}
	return []string{filepath.Dir(filepath.Dir(own))}
}

// Owns reports whether a git folder is that of the repository at root, and not one of another repository to which a link or
// a file leads. root is without links.
func Owns(root, folder string) bool {
	if folder == filepath.Join(root, ".git") {
		return true
	}
	return slices.ContainsFunc(FoldersOutside(root), func(own string) bool { _, in := disk.Within(own, folder); return in })
}

// OwnsIndex reports whether the index that git reads in a repository is its own. If not, the names in it may be those of
// another repository.
func OwnsIndex(root string) bool {
	folder, _, err := Folder(root)
	if err != nil || !Owns(root, folder) {
		return false
	}
	within, err := disk.OpenRoot(folder)
	if err != nil {
		return false
	}
	defer func() { _ = within.Close() }()
	info, err := within.Lstat("index")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular()
}

// isSubmodule reports whether a git folder is that of a submodule in a folder.
func isSubmodule(own, dir string) bool {
	text, err := disk.ReadSmall(filepath.Join(own, "config"), FileBytes)
	if err != nil {
		return false
	}
	settings, err := gitguard.ParseConfig([]byte(text))
	return err == nil && slices.ContainsFunc(settings, func(s gitguard.Setting) bool {
		return s.Key == "core.worktree" && absolute(own, s.Value) == dir
	})
}

// sharedSettings are the user's settings of git that commands have too. None of them names a
// program or a credential.
var sharedSettings = []string{
	"user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email", "init.defaultbranch",
	"core.autocrlf", "core.eol", "core.safecrlf", "pull.rebase", "pull.ff", "merge.ff", "merge.conflictstyle", "push.default", "safe.directory",
}

// WriteConfig writes git's configuration into the home of commands, unless it has one.
func WriteConfig(own, home string) error {
	to := filepath.Join(own, ".gitconfig")
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	var shared []gitguard.Setting
	for _, name := range []string{".config/git/config", ".gitconfig"} {
		text, err := disk.ReadSmall(filepath.Join(home, name), FileBytes)
		if err != nil {
			continue
		}
		settings, err := gitguard.ParseConfig([]byte(text))
		if err != nil {
			continue
		}
		for _, s := range settings {
			if slices.Contains(sharedSettings, s.Key) {
				shared = append(shared, s)
			}
		}
	}
	err := os.WriteFile(to, gitguard.FormatConfig(shared), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
