package guard

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

// user is what counts of the user's own configuration of git.
type user struct {
	scarcity
	home string
	// hooks are the hooks folders that it names.
	hooks []string
	// includes are the files that it includes, whatever the condition, by their paths without links in the folder.
	includes []string
}

// maxUserFiles bounds the files of the user's own configuration.
const maxUserFiles = 100

// findUser reads the user's own configuration.
func findUser() user {
	home, _ := os.UserHomeDir()
	u := user{home: home}
	todo := []string{"/etc/gitconfig", os.Getenv("GIT_CONFIG_SYSTEM"), os.Getenv("GIT_CONFIG_GLOBAL"), filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config")}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		todo = append(todo, filepath.Join(xdg, "git/config"))
	}
	own, seen := len(todo), map[string]bool{}
	for i := 0; i < len(todo) && i < maxUserFiles; i++ {
		path := todo[i]
		if path == "" || seen[path] {
			continue
		}
		seen[path] = true
		if i >= own {
			u.includes = append(u.includes, canonicalParent(path))
		}
		todo = append(todo, u.read(path)...)
	}
	return u
}

// read reads a file of configuration, and returns the paths of those that it includes.
func (u *user) read(path string) []string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	text, err := os.ReadFile(path)
	if u.see(err) != nil {
		return nil
	}
	settings, err := gitguard.ParseConfig(text)
	if err != nil {
		return nil
	}
	u.hooks = append(u.hooks, gitguard.HooksPaths(settings)...)
	var included []string
	for _, at := range gitguard.Includes(settings) {
		at = u.expand(filepath.Dir(canonical(path)), at)
		if at != "" && !sandbox.Within(at, "/proc") && !sandbox.Within(at, "/sys") && !sandbox.Within(at, "/dev") { // reads of these may wait
			included = append(included, at)
		}
	}
	return included
}

// ofUser is the name, in a workspace, of the watched repository that is the user's own configuration. There is no such
// folder.
const ofUser = ".configuration of the user"

// included adds the files of the workspace that the user's own configuration includes: git reads them in each repository.
func (c *capture) included() {
	r := &gitguard.Repository{ID: ofUser, Configs: map[string]gitguard.Entry{}, Hooks: map[string]gitguard.Entry{}}
	for _, path := range c.user().includes {
		if sandbox.Within(path, c.workspace) {
			c.config(r, path, 0)
		}
	}
	folder := c.workspace + "/" + ofUser
	c.named(folder, r)
	if len(r.Configs) > 0 {
		c.shot.Repositories[folder] = r
	}
}

// expand returns a path of configuration as an absolute one; empty if it cannot.
func (u user) expand(base, path string) string {
	switch {
	case strings.HasPrefix(path, "~/"):
		return filepath.Join(u.home, path[2:])
	case strings.HasPrefix(path, "~"), strings.HasPrefix(path, "%("), strings.ContainsRune(path, 0):
		return ""
	}
	return absolute(base, path)
}
