package agent

import (
	"context"
	"fmt"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxKept bounds the compiled definitions that are kept. Runs of one agent share one.
const maxKept = 256

// Cache keeps compiled definitions by their digests. Its zero value is ready for use
// where nothing is stored elsewhere.
type Cache struct {
	// Blob reads a blob of a run; nil where there are none.
	Blob func(ctx context.Context, run runlog.Run, digest string) ([]byte, error)

	mu   sync.Mutex
	kept map[string]*Definition
}

// For is the compiled definition of the run of a snapshot. Runs that were begun
// before there were definitions have their rules in the snapshot itself.
func (c *Cache) Load(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (*Definition, error) {
	d, task := s.GetDefinition(), s.GetTaskContract()
	if d == nil && len(s.GetToolRules()) > 0 {
		d = &harnessv1.Definition{Tools: s.GetToolRules()}
	}
	return c.compiled(ctx, run, d, task)
}

// ForSpec is the compiled definition of a run that is about to begin.
func (c *Cache) LoadSpec(ctx context.Context, run runlog.Run, spec *harnessv1.RunSpec) (*Definition, error) {
	d, task := StoredForm(spec)
	return c.compiled(ctx, run, d, task)
}

// inline keeps what steps hold themselves.
var inline Cache

// FromStep is the compiled definition of a step that holds it itself: that of its spec
// when the run is about to begin, else that of its snapshot.
func FromStep(step *harnessv1.Step) (*Definition, error) {
	if spec := step.GetRepairTrigger().GetSpec(); spec != nil {
		return inline.LoadSpec(context.Background(), runlog.Run{}, spec)
	}
	return inline.Load(context.Background(), runlog.Run{}, step.GetSnapshot())
}

func (c *Cache) compiled(ctx context.Context, run runlog.Run, d *harnessv1.Definition, task *harnessv1.TaskContract) (*Definition, error) {
	key := runstate.Digest(d) + " " + runstate.Digest(task)
	c.mu.Lock()
	have := c.kept[key]
	c.mu.Unlock()
	if have != nil {
		return have, nil
	}
	get := func(ref *harnessv1.BlobRef) ([]byte, error) {
		if c.Blob == nil {
			return nil, fmt.Errorf("a part of the snapshot is stored under %s, and there is no store here: put the part itself in its place", ref.GetDigest())
		}
		return c.Blob(ctx, run, ref.GetDigest())
	}
	var err error
	if d != nil {
		if d, err = runstate.UnpackPart(d, get); err != nil {
			return nil, err
		}
	}
	if task != nil {
		if task, err = runstate.UnpackPart(task, get); err != nil {
			return nil, err
		}
	}
	made, err := Compile(d, task)
	if err != nil {
		return nil, err
	}
	made.Digest = key
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[string]*Definition{} // rare, and cheap to make again
	}
	c.kept[key] = made
	return made, nil
}
