package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// inferenceLapse is how long after its last announcement an inference worker counts as
// available: longer than its restart.
const inferenceLapse = time.Minute

// inferenceWorkers knows whether the mesh has an inference worker. A mesh that was
// upgraded may have none; then no job of a run may be waited for.
type inferenceWorkers struct {
	inside bool // in this process
	now    func() time.Time
	// locate looks for one that is ready; nil finds none.
	locate func(ctx context.Context) error

	mu   sync.Mutex
	seen time.Time // when one was ready
}

// Available reports whether an inference worker is in this process, was ready within the
// last minute, or is ready now: the announcements are read every few seconds, and a mesh
// that has just started may have a worker that was not ready before. A worker is ready only
// if its consumer exists.
func (w *inferenceWorkers) Available(ctx context.Context) bool {
	if w.recent() {
		return true
	}
	if w.locate == nil || w.locate(ctx) != nil {
		return false
	}
	w.found()
	return true
}

// recent reports whether a worker is in this process or was ready within the last minute.
func (w *inferenceWorkers) recent() bool {
	if w.inside {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.seen.IsZero() && w.now().Sub(w.seen) < inferenceLapse
}

// found records that a worker is ready.
func (w *inferenceWorkers) found() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.now()
}

// record takes the announcements of all processes.
func (w *inferenceWorkers) record(all []*harnessv1.Presence) {
	for _, p := range all {
		if p.GetRole() == workflow.Inference && p.GetReady() {
			w.found()
			return
		}
	}
}

// WithoutInference is what a mesh without an inference worker does not do.
const WithoutInference = "conversations are not summarised, and a run whose window is full forgets old results instead"

// warnings returns the problems of the mesh that do not keep this node from its work, by
// role. Only a gateway reports them, once for all roles.
func (m *mesh) warnings() map[string]string {
	if !slices.Contains(m.n.cfg.Roles, workflow.Gateway) || m.inference.recent() {
		return nil
	}
	return map[string]string{workflow.Inference: fmt.Sprintf(
		"no process with this role is ready: %s; start `harness serve --roles %s`", WithoutInference, workflow.Inference)}
}
