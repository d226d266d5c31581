// Package trust is the verb that accepts files which runs have changed.
package trust

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
)

// Cmd accepts instruction files, skills, agent files and server files that runs have changed.
type Cmd struct {
	Data string `placeholder:"DIR" help:"Data directory. Default: $$XDG_DATA_HOME/harness, else ~/.local/share/harness."`
	Path string `arg:"" optional:"" help:"File, or folder with the files. Default: the current directory; without a terminal nothing is accepted then."`
}

func (Cmd) Help() string {
	return "Example:\n\n  harness trust AGENTS.md"
}

// Run shows each file that waits with its difference. On a terminal it asks for each; without one it
// accepts those of a path that is named.
func (c *Cmd) Run(_ context.Context, a *console.Console) (int, error) {
	path := c.Path
	if path == "" {
		path = "."
	}
	left, err := acceptance.At(a, c.Data).Waiting(path, c.Path != "")
	if err != nil {
		return exit.Error, err
	}
	if left > 0 {
		if a.Interactive() {
			return exit.Error, fmt.Errorf("%d of the files still wait", left)
		}
		return exit.Error, fmt.Errorf("%d files wait: name what you accept, such as harness trust AGENTS.md", left)
	}
	return exit.Done, nil
}
