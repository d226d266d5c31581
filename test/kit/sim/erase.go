package sim

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// eraseBatch is how many messages are deleted in one interaction.
const eraseBatch = 8

// Erase deletes the messages of a run, a few at a time: timers, including
// those that fired, blobs, inbox items, records, and jobs and keyed blobs before and
// after the last record. Deleted messages are not delivered again.
func (h *handle) Erase(ctx context.Context, run runlog.Run, keep, through uint64) error {
	if !run.Valid() {
		return fmt.Errorf("erase: run %q has an invalid name", run)
	}
	e := &erasure{w: h.p.world, run: run, keep: keep, through: through}
	for part := uint64(0); !e.done; part++ {
		o := &op{key: key{kind: onErase, run: run.ID, a: keep, b: part}, write: true}
		o.do = func(fate) error {
			e.next(part == 0)
			return nil
		}
		if err := h.p.interact(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// erasure is the state of one erasure. Only the scheduler changes it.
type erasure struct {
	w             *World
	run           runlog.Run
	keep, through uint64

	last  uint64 // the last sequence of the stream when it started, at most through
	whole bool   // nothing of the run is above through
	keyed bool   // jobs and keyed blobs were deleted before the last record
	done  bool
}

// next carries out the next part.
func (e *erasure) next(begin bool) {
	s := e.w.store
	left := s.left(e.run, e.keep, e.through)
	switch {
	case begin:
		newest := s.newest(e.run)
		e.last, e.whole, e.done = min(uint64(len(s.all)), e.through), newest <= e.through, newest == 0
		if e.whole && !e.done {
			e.w.eraseTimers(e.run)
			clear(s.of(e.run).blobs)
		}
	case left > 1:
		s.erase(e.run, e.keep, e.through, min(eraseBatch, left-1))
	case !e.keyed:
		e.eraseKeyed()
		e.keyed = true
	case left == 1:
		s.erase(e.run, e.keep, e.through, left)
	default:
		e.eraseKeyed()
		e.done = true
	}
}

func (e *erasure) eraseKeyed() {
	if e.whole {
		e.w.store.eraseKeyed(e.run, e.last)
	}
}
