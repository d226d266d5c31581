package jobs

import (
	"context"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Ends passes on the ends of jobs to the runs that wait for them. The zero value is ready for
// use.
type Ends struct {
	mu      sync.Mutex
	waiting map[jobID][]chan struct{}
}

type jobID struct {
	run runlog.Run
	key string
}

// Ended reports the end of a job; it is what runlog.JobEnds calls.
func (e *Ends) Ended(run runlog.Run, key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.waiting[jobID{run, key}] {
		select {
		case c <- struct{}{}:
		default: // a report that was not read says the same
		}
	}
}

// Changes returns what reports the ends of the jobs that a decision waits for: those whose key
// follows prefix in the keys of the wait.
func (e *Ends) Changes(prefix string) executor.Changes {
	return func(_ context.Context, task *executor.Task, keys []string) (changed <-chan struct{}, stop func()) {
		c := make(chan struct{}, 1)
		var ids []jobID
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.waiting == nil {
			e.waiting = map[jobID][]chan struct{}{}
		}
		for _, key := range keys {
			if job, ok := strings.CutPrefix(key, prefix); ok {
				id := jobID{task.Run, job}
				e.waiting[id] = append(e.waiting[id], c)
				ids = append(ids, id)
			}
		}
		return c, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, id := range ids {
				e.remove(id, c)
			}
		}
	}
}

// remove removes a channel. The caller holds mu.
func (e *Ends) remove(id jobID, c chan struct{}) {
	for i, other := range e.waiting[id] {
		if other == c {
			e.waiting[id] = append(e.waiting[id][:i:i], e.waiting[id][i+1:]...)
			break
		}
	}
	if len(e.waiting[id]) == 0 {
		delete(e.waiting, id)
	}
}
