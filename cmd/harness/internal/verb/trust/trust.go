// Package trust is the verb that accepts files which runs have changed.
package trust

import (
	"context"
	"errors"
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
	person := acceptance.At(a, c.Data)
	left, err := person.Waiting(path, c.Path != "")
	switch {
	case errors.Is(err, console.ErrSignal):
		return exit.Error, errors.New("interrupted; the files that you have not answered for still wait")
	case err != nil:
		return exit.Error, err
	case left > 0 && a.Interactive():
		return exit.Error, fmt.Errorf("%s", waiting(left, "still "))
	case left > 0:
		return exit.Error, fmt.Errorf("%s: name what you accept, such as harness trust%s AGENTS.md", waiting(left, ""), person.Words())
	}
	return exit.Done, nil
}

// waiting returns how many files wait.
func waiting(n int, still string) string {
	if n == 1 {
		return "1 file " + still + "waits"
	}
	return fmt.Sprintf("%d files %swait", n, still)
}
