package confinement

import (
	"path/filepath"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// hide returns the paths that the run hides, absolute.
func (r Request) hide() []string {
	hide := slices.Clone(r.Config.GetHide())
	for i, path := range hide {
		if !filepath.IsAbs(path) {
			hide[i] = filepath.Join(r.Workspace, path)
		}
	}
	return hide
}

// pin returns the options of bubblewrap that mount the folders above each path on themselves, up to the
// writable folder that has it. A command cannot rename these then: what it moves away would be covered for the
// next command neither there nor at the new path.
func (f *folders) pin(r Request, write, paths []string) []string {
	var above []string
	for _, path := range paths {
		folder := ""
		for _, w := range write {
			if path != w && sandbox.Within(path, w) && len(w) > len(folder) {
				folder = w
			}
		}
		if folder == "" {
			continue
		}
		for at := filepath.Dir(path); len(at) > len(folder); at = filepath.Dir(at) {
			above = append(above, at)
		}
	}
	slices.Sort(above) // a folder before its entries
	var argv []string
	for _, path := range slices.Compact(above) {
		argv = append(argv, "--bind-fd", f.add(r, path, true), path)
		(*f)[len(*f)-1].Pinned = true
	}
	return argv
}

// cover returns the options of bubblewrap that put something empty over a path.
func (m Machine) cover(path string) []string {
	switch found, folder := m.inspect(path); {
	case !found:
		return nil
	case folder:
		return []string{"--tmpfs", path}
	default:
		return []string{"--ro-bind", "/dev/null", path}
	}
}

func (m Machine) inspect(path string) (found, folder bool) {
	if m.Look == nil {
		return true, true
	}
	return m.Look(path)
}

// Uncovered returns a secret that a command could read at the level kernel, where nothing in a
// folder can be hidden, with the folder; empty for none. The folders of /etc are left out if
// they have one.
func (m Machine) Uncovered(r Request) (secret, folder string) {
	e := &environment{all: m.Environ}
	for _, secret := range append([]string{r.Hidden}, m.Secrets...) {
		for _, folder := range slices.Concat([]string{r.Workspace}, systemFolders, m.toolchains(e), r.Config.GetRead(), r.Config.GetWrite()) {
			if sandbox.Within(secret, folder) {
				return secret, folder
			}
		}
	}
	return "", ""
}

// environment is the environment of the tool host.
type environment struct{ all []string }
