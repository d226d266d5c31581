package runspec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// WarnChecks warns about each command of a contract that needs a file which is in none of the
// folders: the contract cannot be met before the agent writes it. Folders that do not exist,
// such as those of another machine, are left out; without one nothing is known.
func WarnChecks(a *console.Console, c *harnessv1.TaskContract, folders ...string) {
	folders = slices.DeleteFunc(folders, func(dir string) bool {
		info, err := os.Stat(dir)
		return dir == "" || err != nil || !info.IsDir()
	})
	if len(folders) == 0 {
		return
	}
	for _, o := range c.GetRequiredOutputs() {
		command := o.GetPredicate().GetCommand()
		needed := neededFiles(command)
		if len(needed) == 0 || o.GetOptional() || slices.ContainsFunc(needed, func(name string) bool { return isThere(name, folders) }) {
			continue
		}
		a.Report("WARNING: contract, output %s: %q needs %s, and %s has none: the contract cannot be met before the agent writes it",
			o.GetId(), content.Clip(command, 80), strings.Join(needed, " or "), folders[0])
	}
}

func isThere(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		_, err := os.Stat(name)
		return err == nil
	})
}

// projectFiles are the files of which a program needs one in the folder in which it runs.
var projectFiles = map[string][]string{
	"make": {"Makefile", "makefile", "GNUmakefile"},
	"npm":  {"package.json"},
}

// neededFiles returns the files of which a command needs one; nil if that is not known. Only
// the first program of a command counts, without options and without anything that a shell
// expands.
func neededFiles(command string) []string {
	first, _, _ := strings.Cut(strings.TrimSpace(command), "\n")
	words := strings.Fields(first)
	if len(words) == 0 || strings.ContainsAny(first, "$*?~`'\"\\(){}<>") {
		return nil
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, ";|&") }); i >= 0 {
		words = words[:i]
	}
	switch {
	case len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }):
		return nil
	case strings.Contains(words[0], "/"):
		return words[:1]
	case slices.Contains([]string{"sh", "bash", "python", "python3", "node"}, words[0]) && len(words) > 1:
		return words[1:2]
	}
	return projectFiles[words[0]]
}
