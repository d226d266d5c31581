package places

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// settled is for file systems that count seconds.
const settled = 2 * time.Second

// entry is the known state of a place.
type entry struct {
	seen    identity
	sure    bool // a place with this identity has not changed since it was read
	version trust.Version
}

// identity differs if a file has changed: its inode, size and times, and for a link those of
// the file to which it leads.
type identity struct{ own, target status }

type status struct {
	mode       uint32
	dev, ino   uint64
	size, time int64
}

// identify returns the identity of a file; zero for none.
func identify(path string) identity {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return identity{}
	}
	id := identity{own: statusOf(&s)}
	if s.Mode&unix.S_IFMT == unix.S_IFLNK && unix.Stat(path, &s) == nil {
		id.target = statusOf(&s)
	}
	return id
}

// changed returns the time of the last change of a file and its target.
func (i identity) changed() int64 { return max(i.own.time, i.target.time) }

// fixed are the places that are compared although the search may not find them, below links.
var fixed = toolhost.InstructionNames

// compare compares the places of a workspace with their known states. Changes are those of the open
// watches; without them, those of the user.
func (p *Places) compare(w *workspace, found guard.Places, accepted ...string) {
	names := make(map[string]bool, len(found.Names)+len(w.known))
	for name := range w.known {
		names[name] = true
	}
	for name := range w.before {
		names[name] = true
	}
	w.register(p.store.NamedIn(w.dir))
	for name := range w.named {
		names[name] = true
	}
	for _, path := range accepted {
		if name, within := disk.Within(w.dir, path); within {
			names[name] = true
		}
	}
	left := map[bool]int{true: guard.MaxPlaces, false: guard.MaxPlaces}
	for name := range names {
		left[sandbox.PlaceOf(name).Instructs()]--
	}
	for _, name := range fixed {
		names[name] = true
	}
	w.partial = found.Partial
	for _, name := range found.Names {
		if names[name] {
			continue
		}
		instructs := sandbox.PlaceOf(name).Instructs()
		if left[instructs]--; left[instructs] < 0 {
			w.partial = true
			continue
		}
		names[name] = true
	}
	for name := range names {
		p.update(w, name, slices.Contains(accepted, w.absolute(name)))
	}
	w.fresh, w.before = false, nil
	p.markPartial(w)
	delete(p.died, w.dir)
	if w.dirty && len(w.open) > 0 {
		p.mark(w)
	}
}

// markPartial stores which places are known if there may be more.
func (p *Places) markPartial(w *workspace) {
	if !w.partial && w.former == nil {
		return
	}
	known := []string{}
	for name := range w.known {
		if sandbox.PlaceOf(name).Instructs() {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	if w.partial && w.former != nil && slices.Equal(w.former.Known, known) {
		return
	}
	var now *trust.Partial
	if w.partial {
		now = &trust.Partial{Workspace: w.dir, Since: time.Now().Add(-settled), Known: known}
		if w.former != nil {
			now.Since = w.former.Since
		}
	}
	if err := p.store.SetPartial(w.dir, now); err != nil {
		p.log.Error("which guarded places of a workspace are known cannot be stored", "workspace", w.dir, "error", err)
		return
	}
	w.former = now
}

// sure reports whether a further change of a file has another time than the one that counts until then. A process
// may have mapped the file: its first write sets the time, later ones need not.
func (w *workspace) sure(until time.Time) bool {
	if !time.Now().After(until) {
		return false
	}
	return !slices.ContainsFunc(w.open, func(o *Watch) bool { return !o.began.After(until) })
}

// see compares one place.
func (p *Places) see(w *workspace, name string) {
	p.update(w, name, false)
	if w.dirty && !w.fresh {
		p.mark(w)
	}
}

// register adds files that a person has named to those that are compared.
func (w *workspace) register(found []string) {
	for _, name := range found {
		if _, ok := w.named[name]; !ok {
			w.named[name] = false
		}
	}
}

// former returns the known state of a place. For a file that is compared for the first time because a person
// has named it, that is the content that was read then.
func (p *Places) former(w *workspace, name string) (e entry, known bool) {
	e, known = w.known[name]
	if compared, registered := w.named[name]; registered && !compared {
		w.named[name] = true
		if v, ok := p.store.Named(w.absolute(name)); ok && !known {
			if trust.Read(w.absolute(name)).Digest == v.Digest {
				v = read(w.dir, name) // as it is compared, such as a link that leads out
			}
			return entry{version: v}, false
		}
	}
	return e, known
}

// update reads a place if it may have changed, and keeps its state. accepted reports that a person
// has approved the change.
func (p *Places) update(w *workspace, name string, accepted bool) {
	former, known := p.former(w, name)
	id := identify(w.absolute(name))
	if known && former.sure && former.seen == id {
		return
	}
	now := entry{seen: id, sure: id == identity{} || w.sure(time.Unix(0, id.changed()).Add(p.settled)) && keepsTimes(w.absolute(name))}
	if id != (identity{}) {
		now.version = read(w.dir, name)
	}
	w.known[name] = now
	if id == (identity{}) {
		delete(w.known, name)
	}
	before, died := former.version, false
	if w.fresh && w.before != nil {
		died = true
		if v, compared := w.before[name]; compared || !former.version.Exists() {
			before = v
		}
	}
	c := change{name: name, before: before, after: now.version, instructs: w.instructs(name)}
	if c.none() {
		return
	}
	w.dirty = true
	if !known && len(w.open) == 0 && w.former.Waits(name) && p.record(w.absolute(name), c, false) != nil {
		p.log.Error("a file that agents read, and that was not compared, cannot be stored", "path", w.absolute(name))
	}
	if len(w.open) == 0 && !died {
		return
	}
	if died {
		p.log.Warn("a guarded place was changed by a call during which a host has died", "path", w.absolute(name))
	}
	if err := p.record(w.absolute(name), c, accepted); err != nil {
		p.log.Error("a change of a file that agents read cannot be stored", "path", w.absolute(name), "error", err)
	}
	if accepted {
		return
	}
	for _, watch := range w.open {
		watch.see(c)
	}
}

// record stores a change of a file that agents read. One that was approved counts as accepted, unless the
// content before it waits: the person has not been shown that.
func (p *Places) record(path string, c change, accepted bool) error {
	if !c.instructs || c.before.Digest == c.after.Digest {
		return nil
	}
	if !accepted {
		return p.store.Changed(path, c.before)
	}
	if p.store.Waits(path, c.before.Digest) {
		return nil
	}
	return p.store.Allowed(path, c.after)
}

// read returns the version of a place. Links lead to files of the workspace alone.
func read(dir, name string) trust.Version {
	root, err := disk.OpenRoot(dir)
	if err != nil {
		return trust.Version{Digest: "the workspace cannot be opened"}
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(name)
	if err != nil {
		return trust.Version{Digest: "not readable"}
	}
	if info.IsDir() {
		return trust.Version{Digest: "folder"}
	}
	v := trust.ReadWith(info, func() (string, error) { return root.Readlink(name) }, func() (*os.File, error) {
		return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
	if !sandbox.PlaceOf(name).Instructs() && info.Mode()&fs.ModeSymlink != 0 && !v.Kept {
		v.Digest += " " + v.Link
	}
	return v
}
