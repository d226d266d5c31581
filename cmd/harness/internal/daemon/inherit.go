package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// Inheritance has the environments of the runs of a background process that a server has replaced. The runs that were
// at work are RUNNING in the log, and a server continues those.
type Inheritance struct {
	// Environments are those of the runs, as their clients gave them.
	Environments *node.Environments

	dir     string
	from    int // the process that was replaced
	release func()
}

// Serves reports whether a background process has a data directory.
func Serves(dir string) bool { return holding(dir).Background }

// Inherit takes over from the background process of a data directory, as a successor does: it waits until
// no command runs, and note gets the reasons of its waits. It returns nil if no background process has the
// directory, or one of a higher APILevel. The caller closes it.
func Inherit(ctx context.Context, dir, build string, note func(string)) (*Inheritance, error) {
	for {
		h := holding(dir)
		if !h.Background || h.API > node.APILevel {
			return nil, nil //nolint:nilnil // nothing to inherit
		}
		noted := ""
		s := Successor{Dir: dir, Build: build, Replace: h.PID, Waits: func(text string) error {
			if text != noted {
				note(text)
			}
			noted = text
			return nil
		}}
		handed, release, err := s.TakeOver(ctx)
		if errors.Is(err, ErrHeld) {
			continue // another process has replaced it
		}
		if err != nil {
			return nil, err
		}
		i, env := &Inheritance{dir: dir, from: h.PID, release: release}, newEnvironments(dir)
		for _, given := range handed.GetEnvironments() {
			if err := env.Put(given); err != nil {
				return nil, errors.Join(err, i.Close(false))
			}
		}
		i.Environments = env.forNode()
		note(fmt.Sprintf("this process replaces the background process %d (%s), and its runs continue here", h.PID, h.Build))
		return i, nil
	}
}

// Close lets other clients start a background process again. If the server has not started, clients treat
// the end of the replaced process as a crash: those that follow a run start another one and resume it.
func (i *Inheritance) Close(started bool) error {
	if i == nil {
		return nil
	}
	defer i.release()
	if started || EndOf(i.dir, i.from) != Replaced {
		return nil
	}
	if err := os.Remove(filepath.Join(i.dir, noteFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the end of the background process: %w", err)
	}
	return nil
}
