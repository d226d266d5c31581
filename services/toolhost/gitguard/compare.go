package gitguard

import (
	"path"
	"slices"
	"strings"
)

// Fix is a path to put back.
type Fix struct {
	// Path is absolute.
	Path string
	// Was is the present entry, Put the one to put there: Missing to take it away.
	Was, Put Entry
	// Lost is true if the former entry was too large to be kept, so that Put is
	// Missing.
	Lost bool
	// Made is true if the path is no part of a repository that was there before the call:
	// whether it is put back depends on what else there is.
	Made bool
	// Names are the changed files and settings, for the model.
	Names []string
}

// Unfinished reports whether a program may be about to write the file, which is empty. Git
// runs nothing by it so far.
func (f Fix) Unfinished() bool {
	return f.Was.isText() && len(f.Was.Data) == 0
}

// Compare returns what to put back after a call, sorted by path.
func Compare(before, after *Snapshot) []Fix {
	c := comparison{before: before, after: after}
	for _, folder := range sorted(after.Repositories) {
		c.repository(folder)
	}
	for _, at := range sorted(after.Pointers) {
		c.pointer(at, before.Pointers[at], after.Pointers[at])
	}
	slices.SortStableFunc(c.fixes, func(a, b Fix) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(c.fixes, func(a, b Fix) bool { return a.Path == b.Path })
}

type comparison struct {
	before, after *Snapshot
	fixes         []Fix
}

// bases are the former states of a repository, before the call.
type bases struct {
	// same is the same folder, maybe elsewhere; nil for one that the call has made.
	same *Repository
	// there is the repository that was at its place; nil for none.
	there *Repository
}

// entries returns the former entries of a path.
func (b bases) entries(kind func(*Repository) map[string]Entry, at string) []Entry {
	var found []Entry
	for _, r := range []*Repository{b.same, b.there} {
		if r != nil {
			found = append(found, kind(r)[at])
		}
	}
	return found
}

func configs(r *Repository) map[string]Entry { return r.Configs }
func hooks(r *Repository) map[string]Entry   { return r.Hooks }

// basesOf returns the former states of the repository at a folder.
func (c *comparison) basesOf(folder string) bases {
	id := c.after.Repositories[folder].ID
	b := bases{there: c.before.Repositories[folder]}
	if b.there != nil && b.there.ID == id {
		b.same = b.there
		return b
	}
	for _, former := range sorted(c.before.Repositories) {
		if c.before.Repositories[former].ID == id {
			b.same = c.before.Repositories[former].moved(former, folder)
			break
		}
	}
	return b
}

// moved returns a repository whose folder is moved.
func (r *Repository) moved(from, to string) *Repository {
	move := func(entries map[string]Entry) map[string]Entry {
		moved := make(map[string]Entry, len(entries))
		for at, e := range entries {
			if within(at, from) {
				at = to + strings.TrimPrefix(at, from)
			}
			moved[at] = e
		}
		return moved
	}
	return &Repository{ID: r.ID, Configs: move(r.Configs), Hooks: move(r.Hooks), Common: r.Common, Todo: r.Todo, Called: r.Called}
}

func (c *comparison) repository(folder string) {
	now, b := c.after.Repositories[folder], c.basesOf(folder)
	for _, at := range paths(now.Configs, b.same, configs) {
		c.config(folder, at, now.Configs[at], b)
	}
	for _, at := range paths(now.Hooks, b.same, hooks) {
		c.hook(at, now.Hooks[at], b)
	}
	var common Pointer
	if b.same != nil {
		common = b.same.Common
	}
	c.pointer(folder+"/commondir", common, now.Common)
}

// paths returns the paths of entries before and after the call.
func paths(now map[string]Entry, same *Repository, kind func(*Repository) map[string]Entry) []string {
	all := sorted(now)
	if same != nil {
		all = append(all, sorted(kind(same))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// config compares a configuration file.
func (c *comparison) config(folder, at string, now Entry, b bases) {
	before := b.entries(configs, at)
	if slices.ContainsFunc(before, now.Equal) || b.same == nil && now.Kind == Missing {
		return
	}
	settings, err := read(now)
	if err == nil {
		for _, e := range before {
			if was, wasErr := read(e); wasErr == nil && slices.Equal(guarded(was), guarded(settings)) {
				return
			}
		}
	}
	if b.same != nil {
		c.restore(at, now, b.same.Configs[at], c.settingNames(at, now, b.same.Configs[at]))
		return
	}
	kept := slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return !made(s) && !c.leadsBack(folder, s) })
	if err == nil && len(kept) == len(settings) {
		return
	}
	c.fixes = append(c.fixes, Fix{
		Path: at, Was: now, Put: Entry{Kind: File, Data: FormatConfig(kept)}, Made: true, Names: c.settingNames(at, now, Entry{Kind: File, Data: FormatConfig(kept)}),
	})
}

// read returns the settings of a file, none for one that is missing.
func read(e Entry) ([]Setting, error) {
	switch {
	case e.Kind == Missing:
		return nil, nil
	case !e.isText():
		return nil, errUnsure
	}
	return ParseConfig(e.Data)
}

// leadsBack reports whether a setting names the work tree of a submodule whose .git leads
// to the folder.
func (c *comparison) leadsBack(folder string, s Setting) bool {
	if s.Key != "core.worktree" || s.Value == "" {
		return false
	}
	tree := s.Value
	if !path.IsAbs(tree) {
		tree = path.Join(folder, tree)
	}
	p, ok := c.after.Pointers[path.Join(tree, ".git")]
	return ok && p.Target == folder
}

// settingNames returns what differs between two versions of a configuration file.
func (c *comparison) settingNames(at string, now, before Entry) []string {
	shown := c.shown(at)
	a, errA := read(before)
	b, errB := read(now)
	if errA != nil || errB != nil {
		return []string{shown}
	}
	keys := difference(guarded(a), guarded(b))
	if len(keys) == 0 {
		return []string{"the order of settings in " + shown}
	}
	for i := range keys {
		keys[i] = clip(keys[i]) + " in " + shown
	}
	return keys
}

// hook compares an entry of a hooks folder, or the folder.
func (c *comparison) hook(at string, now Entry, b bases) {
	before := b.entries(hooks, at)
	plain := func(e Entry) bool { return e.Kind == Missing || e.Kind == Folder }
	switch {
	case slices.ContainsFunc(before, now.Equal):
	case plain(now) && (b.same == nil || plain(b.same.Hooks[at])): // the files count
	case b.same != nil:
		c.restore(at, now, b.same.Hooks[at], []string{"the hook " + c.shown(at)})
	default:
		c.restore(at, now, Entry{}, []string{"the hook " + c.shown(at)})
		c.fixes[len(c.fixes)-1].Made = true
	}
}

// pointer compares what leads git to a folder. It may lead to every folder that is compared
// too.
func (c *comparison) pointer(at string, before, now Pointer) {
	switch {
	case now.Kind == Missing, now.Equal(before.Entry) && now.Target == before.Target:
	case now.Kind != Other && c.after.Repositories[now.Target] != nil:
	default:
		c.restore(at, now.Entry, before.Entry, []string{"the file " + c.shown(at)})
		c.fixes[len(c.fixes)-1].Made = true
	}
}

func (c *comparison) restore(at string, now, before Entry, names []string) {
	f := Fix{Path: at, Was: now, Put: before, Names: names}
	if before.Digest != "" || before.Kind == Other {
		f.Put, f.Lost = Entry{}, true
	}
	c.fixes = append(c.fixes, f)
}

// shown returns a path as the model knows it.
func (c *comparison) shown(at string) string {
	if !c.after.Elsewhere && within(at, c.after.Workspace) && at != c.after.Workspace {
		at = strings.TrimPrefix(at[len(c.after.Workspace):], "/")
	}
	return clip(at)
}
