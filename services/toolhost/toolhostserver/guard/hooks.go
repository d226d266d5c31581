package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

const (
	// maxHooks bounds the files of a hooks folder, maxHookDepth the folders below one another
	// in it.
	maxHooks     = 1_000
	maxHookDepth = 6
)

// hookNames are the programs that git runs from a hooks folder (githooks(5)).
var hookNames = strings.Fields(`applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg
	commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive
	post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
	p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change`)

// hooks adds a hooks folder with its entries.
func (c *capture) hooks(r *gitguard.Repository, folder string) {
	if e, ok := r.Hooks[folder]; ok && e.Kind != gitguard.Folder {
		return
	}
	e := c.access.entry(folder, c)
	r.Hooks[folder] = e
	if e.Kind == gitguard.Folder {
		c.access.permit(folder, 0o700)
		c.hooksBelow(r, folder, 0)
	}
}

func (c *capture) hooksBelow(r *gitguard.Repository, folder string, depth int) {
	entries, err := readFolder(folder)
	if c.access.see(err) != nil || depth > maxHookDepth {
		return
	}
	for _, entry := range entries {
		at := folder + "/" + entry.Name()
		if len(r.Hooks) > maxHooks || entry.Type().IsRegular() && gitguard.IsSample(entry.Name()) {
			continue
		}
		e := c.access.entry(at, c)
		r.Hooks[at] = e
		if e.Kind == gitguard.Folder {
			c.access.permit(at, 0o700)
			c.hooksBelow(r, at, depth+1)
		}
	}
}

// hooksNamed adds the hooks folders that configuration names.
func (c *capture) hooksNamed(folder string) {
	r := c.shot.Repositories[folder]
	paths := append([]string(nil), c.user().hooks...)
	for _, e := range r.Configs {
		if settings, err := gitguard.ParseConfig(e.Data); err == nil && e.Kind == gitguard.File {
			paths = append(paths, gitguard.HooksPaths(settings)...)
		}
	}
	for _, path := range paths {
		for _, base := range c.bases(folder) {
			c.hooksAt(r, folder, c.user().expand(base, path))
		}
	}
}

// hooksAt adds a hooks folder that configuration names.
func (c *capture) hooksAt(r *gitguard.Repository, folder, path string) {
	if path == "" {
		return
	}
	path = canonical(path)
	if filepath.Base(path) == "_" { // husky: scripts that run those in the folder above
		path = filepath.Dir(path)
	}
	if !c.reaches(path) {
		return
	}
	if !sandbox.Within(c.workspace, path) && !sandbox.Within(folder, path) {
		c.hooks(r, path)
		return
	}
	for _, name := range hookNames { // the folder has all of the work
		if e := c.access.entry(path+"/"+name, c); e.Kind != gitguard.Missing {
			r.Hooks[path+"/"+name] = e
		}
	}
}

// called adds the files of the work tree that the hooks of a repository name.
func (c *capture) called(folder string) {
	r := c.shot.Repositories[folder]
	for _, hook := range r.Hooks {
		for _, name := range gitguard.Called(hook) {
			for _, base := range c.bases(folder)[1:] {
				path := filepath.Join(base, name)
				_, hooked := r.Hooks[path]
				if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && !hooked && sandbox.Within(path, c.workspace) {
					if r.Called == nil {
						r.Called = map[string]string{}
					}
					r.Called[path] = fmt.Sprint(identity(info), " ", changed(info))
				}
			}
		}
	}
}

// bases returns the folders in which git may run the hooks of a repository.
func (c *capture) bases(folder string) []string {
	bases := []string{folder}
	if filepath.Base(folder) == ".git" {
		bases = append(bases, filepath.Dir(folder))
	}
	for at, p := range c.shot.Pointers {
		if to := c.shot.Repositories[p.Target]; p.Target == folder || to != nil && to.Common.Target == folder {
			bases = append(bases, filepath.Dir(at))
		}
	}
	return bases
}
