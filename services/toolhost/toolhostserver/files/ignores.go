package files

import (
	"path/filepath"
	"slices"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// rulesAbove returns the rules of .gitignore files that hold in a workspace because it is in a
// folder of a repository: those of the folders around it, up to the root of the repository,
// and of .git/info/exclude. Files that lead out of the repository have none.
func (f *Files) rulesAbove(dir string) []workspace.Rules {
	r, err := git.Find(dir)
	if err != nil || !r.Exists || r.Root == r.Workspace {
		return nil
	}
	root, err := f.Open(r.Root)
	if err != nil {
		return nil
	}
	defer root.Close()
	var rules []workspace.Rules
	add := func(folder, name string) {
		path, err := filepath.Rel(r.Root, filepath.Join(folder, name))
		if err != nil {
			return
		}
		file, _, err := root.OpenRegular(path)
		if err != nil {
			return
		}
		defer func() { _ = file.Close() }()
		below, err := filepath.Rel(folder, r.Workspace)
		if found := workspace.ReadRules(file); err == nil && found != nil {
			rules = append(rules, workspace.Rules{Below: filepath.ToSlash(below) + "/", File: found})
		}
	}
	for at := filepath.Dir(r.Workspace); ; at = filepath.Dir(at) {
		add(at, ".gitignore")
		if at == r.Root || at == filepath.Dir(at) {
			break
		}
	}
	add(r.Root, ".git/info/exclude")
	slices.Reverse(rules)
	return rules
}
