package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

// confiner makes confinements.
type confiner struct {
	// data is the harness's folder for data, without links.
	data string
	// objects returns the folders in which git finds objects of a workspace that is a worktree;
	// nil: none is.
	objects func(workspace string) []string
}

// confine makes what a command needs, and returns how it is confined.
func (c *confiner) confine(m confinement.Machine, level harnessv1.SandboxLevel, f runFolder, dir string, cfg *harnessv1.SandboxConfig) (confinement.Confinement, error) {
	m.Etc = names("/etc") // its secrets must be hidden, also new ones
	var objects []string
	if c.objects != nil {
		objects = c.objects(dir)
	}
	made := confinement.Build(m, level, confinement.Request{
		Workspace: dir, Git: git.FoldersOutside(dir), Objects: objects, Home: f.home(), Temporary: f.temporary(), Overlays: f.overlays(), Config: cfg, Hidden: c.data,
	})
	if made.Plan == nil {
		return made, nil
	}
	made.Environ = append(made.Environ, git.Environ(dir, slices.Concat(cfg.GetRead(), cfg.GetWrite()))...)
	for _, folder := range []string{f.home(), f.temporary()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return made, err
		}
	}
	overlays := made.Plan.Overlays
	made.Plan.Overlays = nil
	for _, o := range overlays {
		if err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700), os.MkdirAll(o.Merged, 0o700)); err != nil {
			return made, err
		}
		// A cache that the user does not have is a folder of the run alone.
		if info, err := os.Stat(o.Lower); err == nil && info.IsDir() {
			made.Plan.Overlays = append(made.Plan.Overlays, o)
		}
	}
	if err := git.WriteConfig(f.home(), m.Home); err != nil {
		return made, err
	}
	for link, target := range made.Links {
		if err := makeLink(link, target); err != nil {
			return made, err
		}
	}
	return made, nil
}

// makeLink makes a link unless there is something.
func makeLink(link, target string) error {
	if _, err := os.Lstat(target); err != nil {
		return nil //nolint:nilerr // the user has no such cache
	}
	if _, err := os.Lstat(link); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// names returns the names of the entries of a folder, of folders with a slash at the end.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	all := make([]string, len(entries))
	for i, e := range entries {
		if all[i] = e.Name(); e.IsDir() {
			all[i] += "/"
		}
	}
	return all
}

// checkFolders refuses folders that a sandbox must not open: those that are not there, that
// are links, or that hold the home or the data of the harness.
func (c *confiner) checkFolders(m confinement.Machine, level harnessv1.SandboxLevel, dir string, cfg *harnessv1.SandboxConfig) error {
	if level < sandbox.Full {
		secret, folder := m.Uncovered(confinement.Request{Workspace: dir, Config: cfg, Hidden: c.data})
		if secret != "" {
			return fault.Invalid("sandbox", "%s of the harness is in %s, which commands read, and only the level full can keep them from it: use another folder for one of them", secret, folder)
		}
	}
	for _, list := range []struct {
		field string
		paths []string
	}{{"read", cfg.GetRead()}, {"write", cfg.GetWrite()}} {
		for i, path := range list.paths {
			if err := checkFolder(m, c.data, path); err != nil {
				return fault.In(fmt.Sprintf("sandbox.%s[%d]", list.field, i), err)
			}
		}
	}
	return nil
}

func checkFolder(m confinement.Machine, data, path string) error {
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s does not exist", path)
	case resolved != path:
		return fmt.Errorf("%s is a link or below one: name %s", path, resolved)
	case sandbox.Within(m.Home, path):
		return fmt.Errorf("%s holds the home of the user, with keys and settings: name the folders that are needed", path)
	case sandbox.Within(data, path) || sandbox.Within(path, data):
		return fmt.Errorf("%s holds data of the harness, which commands must not reach", path)
	}
	return nil
}
