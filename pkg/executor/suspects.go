package executor

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// suspectTime is how long a batch of suspected steps delays the next one.
const suspectTime = 10 * time.Second

// suspects admits the suspected steps of a worker in batches, first come first served. The
// next batch begins when all steps of the one before have ended, or after suspectTime.
type suspects struct {
	mu      sync.Mutex
	waiting []*suspect
	batch   *batch // nil between batches
}

// suspect is a step that waits.
type suspect struct {
	limit    uint32 // of the size of its batch, from 1
	admitted chan struct{}
	batch    *batch // once admitted
}

// batch is a number of steps that begin together.
type batch struct {
	size, left uint32
	timer      *time.Timer
}

// admit waits until a step may begin, with limit-1 others at most. company is the number
// of steps that begin with it, itself included. The caller calls over once the step has ended.
func (s *suspects) admit(ctx context.Context, limit uint32) (company uint32, over func(), err error) {
	w := &suspect{limit: max(limit, 1), admitted: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	if s.batch == nil {
		s.next()
	}
	s.mu.Unlock()
	select {
	case <-w.admitted:
		return w.batch.size, sync.OnceFunc(func() { s.leave(w.batch) }), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.leave(w.batch) // admitted meanwhile
	}
	return 0, nil, context.Cause(ctx)
}

// next begins a batch: the first that waits, and those after it that its size suits. The
// caller holds mu.
func (s *suspects) next() {
	s.batch = nil
	if len(s.waiting) == 0 {
		return
	}
	b, room := &batch{}, uint32(math.MaxUint32)
	var rest []*suspect
	for _, w := range s.waiting {
		if limit := min(room, w.limit); b.size < limit {
			room, w.batch = limit, b
			b.size++
			continue
		}
		rest = append(rest, w)
	}
	for _, w := range s.waiting {
		if w.batch == b {
			close(w.admitted)
		}
	}
	s.waiting, s.batch, b.left = rest, b, b.size
	b.timer = time.AfterFunc(suspectTime, func() { s.over(b) })
}

// leave notes that a step of a batch has ended.
func (s *suspects) leave(b *batch) {
	s.mu.Lock()
	b.left--
	last := b.left == 0
	s.mu.Unlock()
	if last {
		s.over(b)
	}
}

// over begins the next batch, unless b is over already.
func (s *suspects) over(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batch == b {
		b.timer.Stop()
		s.next()
	}
}
