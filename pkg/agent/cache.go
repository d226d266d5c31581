package agent

import (
	"context"
	"fmt"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// maxEntries bounds the compiled definitions in a Cache. Runs of one agent share one.
const maxEntries = 256

// Cache keeps compiled definitions by their digests. It is safe for concurrent use. Its
// zero value is ready, but cannot load a definition that is stored in a blob.
type Cache struct {
	// Blob reads a blob of a run. A nil Blob is an error if a definition needs it.
	Blob func(ctx context.Context, run runlog.Run, digest string) ([]byte, error)

	mu      sync.Mutex
	entries map[string]*Definition
}

// Load returns the definition of the run that a snapshot belongs to. The oldest runs
// have tool rules in the snapshot and no definition.
func (c *Cache) Load(ctx context.Context, run runlog.Run, s runstate.DefinitionFields) (*Definition, error) {
	d, task := s.GetDefinition(), s.GetTaskContract()
	if d == nil && len(s.GetToolRules()) > 0 {
		d = &harnessv1.Definition{Tools: s.GetToolRules()}
	}
	return c.load(ctx, run, d, task)
}

// LoadSpec returns the definition of a run that is about to start.
func (c *Cache) LoadSpec(ctx context.Context, run runlog.Run, spec *harnessv1.RunSpec) (*Definition, error) {
	d, task := StoredForm(spec)
	return c.load(ctx, run, d, task)
}

// inline has the definitions of FromStep.
var inline Cache

// FromStep returns the definition that a step holds without blobs: that of its spec if
// the run is about to start, otherwise that of its snapshot.
func FromStep(step *harnessv1.Step) (*Definition, error) {
	if spec := step.GetRepairTrigger().GetSpec(); spec != nil {
		return inline.LoadSpec(context.Background(), runlog.Run{}, spec)
	}
	return inline.Load(context.Background(), runlog.Run{}, step.GetSnapshot())
}

// load returns the definition with the digests of d and task, compiling it if it is new.
func (c *Cache) load(ctx context.Context, run runlog.Run, d *harnessv1.Definition, task *harnessv1.TaskContract) (*Definition, error) {
	key := runstate.Digest(d) + " " + runstate.Digest(task)
	c.mu.Lock()
	definition := c.entries[key]
	c.mu.Unlock()
	if definition != nil {
		return definition, nil
	}
	get := func(ref *harnessv1.BlobRef) ([]byte, error) {
		if c.Blob == nil {
			return nil, fmt.Errorf("a part of the snapshot is the blob %s, and no blob can be read here: replace the reference with the part itself", ref.GetDigest())
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
	definition, err = Compile(d, task)
	if err != nil {
		return nil, err
	}
	definition.Digest = key
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxEntries {
		c.entries = map[string]*Definition{} // rare, and compiling again is cheap
	}
	c.entries[key] = definition
	return definition, nil
}
