package compactionserver

import (
	"context"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// jobEnds passes on the ends of jobs to the runs that wait for them.
type jobEnds struct {
	mu      sync.Mutex
	waiting map[jobID][]chan struct{}
}

type jobID struct {
	run runlog.Run
	key string
}

// ended reports the end of a job.
func (j *jobEnds) ended(run runlog.Run, key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.waiting[jobID{run, key}] {
		select {
		case c <- struct{}{}:
		default: // a report that was not read says the same
		}
	}
}

// changes reports the ends of the jobs whose summaries a decision waits for.
func (j *jobEnds) changes(_ context.Context, task *executor.Task, keys []string) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	var ids []jobID
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range keys {
		if job, ok := strings.CutPrefix(key, compaction.KeySummary); ok {
			id := jobID{task.Run, job}
			j.waiting[id] = append(j.waiting[id], c)
			ids = append(ids, id)
		}
	}
	return c, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, id := range ids {
			j.remove(id, c)
		}
	}
}

// remove removes a channel. The caller holds mu.
func (j *jobEnds) remove(id jobID, c chan struct{}) {
	for i, other := range j.waiting[id] {
		if other == c {
			j.waiting[id] = append(j.waiting[id][:i:i], j.waiting[id][i+1:]...)
			break
		}
	}
	if len(j.waiting[id]) == 0 {
		delete(j.waiting, id)
	}
}
