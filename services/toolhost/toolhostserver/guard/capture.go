package guard

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/gitguard"
)

const (
	// maxFile bounds a file whose content is kept in a snapshot, maxContent all of them, in
	// bytes.
	maxFile    = 1 << 20
	maxContent = 32 << 20
	// maxRepositories bounds the git folders of a snapshot.
	maxRepositories = 2_000
	// maxLine bounds files with one line.
	maxLine = 4 << 10
)

// capture takes a snapshot.
type capture struct {
	access    *access
	workspace string
	reach     Reach
	before    *gitguard.Snapshot // nil for the snapshot before a call
	user      func() user        // reads what it returns at its first call
	left      int                // bytes of content
	shot      *gitguard.Snapshot
	todo      []string // git folders
}

// take returns a snapshot of a workspace. before is the one before the call, nil for that
// one itself: what a call has made outside of the workspace does not count. The error means
// that not everything could be read, for want of descriptors or memory.
func take(a *access, workspace string, reach Reach, f found, before *gitguard.Snapshot, find func() user) (*gitguard.Snapshot, error) {
	c := &capture{access: a, workspace: workspace, reach: reach, before: before, user: sync.OnceValue(find), left: maxContent, shot: &gitguard.Snapshot{
		Workspace: workspace, Repositories: map[string]*gitguard.Repository{}, Pointers: map[string]gitguard.Pointer{},
	}}
	if above := repositoryAbove(workspace); above != "" && c.reaches(above+"/.git") {
		f.gits = append(f.gits, above)
	}
	c.included()
	if before != nil {
		c.again()
	}
	for _, dir := range f.gits {
		c.git(dir + "/.git")
	}
	c.todo = append(c.todo, f.bare...)
	for len(c.todo) > 0 && len(c.shot.Repositories) < maxRepositories {
		folder := c.todo[0]
		c.todo = c.todo[1:]
		c.repository(folder)
	}
	for folder := range c.shot.Repositories {
		c.hooksNamed(folder)
		c.called(folder)
	}
	if len(c.shot.Repositories) == 0 {
		return c.shot, cmp.Or(f.scarce, a.err)
	}
	return c.shot, cmp.Or(f.scarce, c.user().err, a.err)
}

// again queues what there was before, also where a call has hidden it.
func (c *capture) again() {
	for folder := range c.before.Repositories {
		if _, err := os.Lstat(folder); os.IsPermission(err) {
			c.access.permitAbove(folder)
		}
		c.todo = append(c.todo, folder)
	}
	for at := range c.before.Pointers {
		c.git(at)
	}
}

// repositoryAbove returns the nearest folder above a workspace that has a .git.
func repositoryAbove(workspace string) string {
	if _, err := os.Lstat(workspace + "/.git"); err == nil {
		return ""
	}
	for at := filepath.Dir(workspace); at != "/" && at != "."; at = filepath.Dir(at) {
		if _, err := os.Lstat(at + "/.git"); err == nil {
			return at
		}
	}
	return ""
}

// git adds a .git, which leads to a git folder or is one.
func (c *capture) git(at string) {
	e := c.access.entry(at, c)
	if e.Kind == gitguard.Other { // in a folder from which a call has taken its owner's permissions
		c.access.permitAbove(at)
		e = c.access.entry(at, c)
	}
	switch e.Kind {
	case gitguard.Missing:
	case gitguard.Folder:
		c.todo = append(c.todo, at)
	default:
		target := ""
		switch {
		case e.Kind == gitguard.Link:
			target = string(e.Data)
		case len(e.Data) <= maxLine:
			target = toolhost.GitFolder(string(e.Data))
		}
		c.shot.Pointers[at] = c.follow(e, filepath.Dir(at), target)
	}
}

// follow returns the pointer of an entry, and queues the folder to which it leads.
func (c *capture) follow(e gitguard.Entry, base, target string) gitguard.Pointer {
	p := gitguard.Pointer{Entry: e}
	if target == "" {
		return p
	}
	p.Target = canonical(absolute(base, target))
	if info, err := os.Lstat(p.Target); err == nil && info.IsDir() && c.reaches(p.Target) {
		c.todo = append(c.todo, p.Target)
	}
	return p
}

// reaches reports whether a path counts.
func (c *capture) reaches(path string) bool {
	if c.before == nil {
		return c.reach.has(c.workspace, path)
	}
	return sandbox.Within(path, c.workspace) || c.before.Holds(path) || c.before.Repositories[path] != nil || c.shot.Repositories[path] != nil
}

// repository adds a git folder, and queues those of its submodules and linked worktrees.
func (c *capture) repository(folder string) {
	if c.shot.Repositories[folder] != nil || canonical(folder) != folder {
		return // a call has put a link in the path
	}
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() {
		return
	}
	c.access.anchor(folder)
	c.access.permit(folder, 0o700)
	r := &gitguard.Repository{ID: identity(info), Configs: map[string]gitguard.Entry{}, Hooks: map[string]gitguard.Entry{}}
	c.shot.Repositories[folder] = r
	c.config(r, folder+"/config", 0)
	c.config(r, folder+"/config.worktree", 0)
	c.hooks(r, folder+"/hooks")
	if e := c.access.entry(folder+"/commondir", c); e.Kind != gitguard.Missing {
		target := ""
		if len(e.Data) <= maxLine {
			target = strings.TrimSpace(string(e.Data))
		}
		r.Common = c.follow(e, folder, target)
	}
	if e := c.access.entry(folder+"/"+gitguard.Todo, c); e.Kind == gitguard.File {
		r.Todo = e
	}
	c.named(folder, r)
	for _, name := range c.access.names(folder + "/worktrees") {
		c.todo = append(c.todo, folder+"/worktrees/"+name)
	}
	c.modules(folder+"/modules", 0)
}

// named adds the files of a repository that it had before a call, also those that its
// configuration does not name any more. They have moved with its folder.
func (c *capture) named(folder string, r *gitguard.Repository) {
	if c.before == nil {
		return
	}
	for from, former := range c.before.Repositories {
		if former.ID != r.ID {
			continue
		}
		for at := range former.Configs {
			c.config(r, moved(at, from, folder), 0)
		}
		for at := range former.Hooks {
			at = moved(at, from, folder)
			if _, ok := r.Hooks[at]; !ok {
				r.Hooks[at] = c.access.entry(at, c)
			}
		}
	}
}

// moved returns a path after its folder has moved.
func moved(path, from, to string) string {
	if sandbox.Within(path, from) {
		return to + strings.TrimPrefix(path, from)
	}
	return path
}

// modules queues the git folders of submodules. Their names may have slashes.
func (c *capture) modules(folder string, depth int) {
	const maxDepth = 16
	for _, name := range c.access.names(folder) {
		at := folder + "/" + name
		if _, err := os.Lstat(at + "/HEAD"); err == nil || depth == maxDepth {
			c.todo = append(c.todo, at)
			continue
		}
		c.modules(at, depth+1)
	}
}

// config adds a configuration file, and those that it includes.
func (c *capture) config(r *gitguard.Repository, at string, depth int) {
	const maxDepth, maxFiles = 10, 100
	if _, ok := r.Configs[at]; ok || depth > maxDepth || len(r.Configs) > maxFiles || !c.reaches(at) && depth > 0 {
		return
	}
	e := c.access.entry(at, c)
	r.Configs[at] = e
	if e.Kind == gitguard.Link {
		c.config(r, canonical(absolute(filepath.Dir(at), string(e.Data))), depth+1)
		return
	}
	settings, err := gitguard.ParseConfig(e.Data)
	if err != nil {
		return
	}
	c.workTrees(r, filepath.Dir(at), settings)
	for _, path := range gitguard.Includes(settings) {
		if path = c.user().expand(filepath.Dir(at), path); path != "" {
			c.config(r, canonicalParent(path), depth+1)
		}
	}
}

// workTrees adds the .git of the work trees that a repository names which a call has made. A submodule's
// is written before its configuration names it, so it is there whatever was found before.
func (c *capture) workTrees(r *gitguard.Repository, folder string, settings []gitguard.Setting) {
	if c.before == nil || c.knows(r.ID) {
		return
	}
	for _, tree := range gitguard.WorkTrees(settings) {
		if tree = canonical(absolute(folder, tree)); sandbox.Within(tree, c.workspace) {
			c.git(tree + "/.git")
		}
	}
}

// knows reports whether a git folder was there before the call.
func (c *capture) knows(id string) bool {
	for _, r := range c.before.Repositories {
		if r.ID == id {
			return true
		}
	}
	return false
}

// identity identifies a folder, also after it is moved.
func identity(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
	}
	return ""
}

// entry returns what there is at a path, without following it.
func (a *access) entry(path string, c *capture) gitguard.Entry {
	root, name, err := a.open(path)
	if err != nil {
		return gitguard.Entry{}
	}
	info, err := root.Lstat(name)
	switch _ = a.see(err); {
	case os.IsNotExist(err) || isNotFolder(err):
		return gitguard.Entry{}
	case err != nil:
		return gitguard.Entry{Kind: gitguard.Other}
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if a.see(err) != nil {
			return gitguard.Entry{Kind: gitguard.Other}
		}
		return gitguard.Entry{Kind: gitguard.Link, Data: []byte(target)}
	case info.IsDir():
		return gitguard.Entry{Kind: gitguard.Folder}
	case !info.Mode().IsRegular():
		return gitguard.Entry{Kind: gitguard.Other}
	}
	return c.file(root, name, info)
}

func isNotFolder(err error) bool {
	return err != nil && strings.Contains(err.Error(), unix.ENOTDIR.Error())
}

// file returns the entry of a regular file.
func (c *capture) file(root *os.Root, name string, info fs.FileInfo) gitguard.Entry {
	e := gitguard.Entry{Kind: gitguard.File, Executable: info.Mode().Perm()&0o111 != 0}
	if info.Size() > maxFile || info.Size() > int64(c.left) {
		e.Digest = fmt.Sprintf("%s %d %d", identity(info), info.Size(), changed(info))
		return e
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if os.IsPermission(err) {
		if _, ok := permit(root, name, 0o400); ok {
			f, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		}
	}
	if c.access.see(err) != nil {
		return gitguard.Entry{Kind: gitguard.Other}
	}
	defer func() { _ = f.Close() }()
	if e.Data, err = io.ReadAll(io.LimitReader(f, maxFile)); err != nil {
		return gitguard.Entry{Kind: gitguard.Other}
	}
	c.left -= len(e.Data)
	return e
}
