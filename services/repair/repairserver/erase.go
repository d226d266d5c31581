package repairserver

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

const (
	// maxErasures bounds the runs that are deleted at once by one process.
	maxErasures = 4
	// erasureDelay is the least wait before a run whose turn it was not is looked at
	// again, and erasureSpread over how long after it those that wait are spread.
	erasureDelay  = time.Second
	erasureSpread = 10 * time.Second
)

// erase deletes what is stored of a run that was deleted: at first all but the
// record that says so, and that once its time is over, which a timer tells. The
// delivery is done with when the timer is set, so an erasure survives every process.
//
// A run of which nothing but an input is left, that came too late, has no such
// record; the view is then nil. Nothing is deleted that is newer than what this
// worker has seen: the name may be another run's by now.
func (s *Server) erase(ctx context.Context, d runlog.Delivery, run runlog.Run, expired *runlog.View) {
	select {
	case s.erasing <- struct{}{}:
		defer func() { <-s.erasing }()
	default:
		_ = d.Nak(erasureDelay + time.Duration(rand.Int64N(int64(erasureSpread)))) //nolint:gosec // spreads, hides nothing
		return
	}
	release := s.hold(ctx, d)
	err := s.eraseBut(ctx, run, d.Entry().Sequence, expired)
	release()
	if err != nil {
		if ctx.Err() == nil {
			s.logger.Warn("erasure put back", "run", run.ID, "namespace", run.Namespace, "error", err)
		}
		_ = d.Nak(erasureDelay)
		return
	}
	_ = d.Ack()
}

func (s *Server) eraseBut(ctx context.Context, run runlog.Run, delivered uint64, expired *runlog.View) error {
	if expired == nil {
		return s.log.Erase(ctx, run, 0, delivered)
	}
	last := expired.Newest
	if err := s.log.Erase(ctx, run, last.Sequence, seen(*expired)); err != nil {
		return err
	}
	failpoint.Hit(repair.Name, "erased")
	until := last.Record.GetStep().GetSnapshot().GetExpireTime().AsTime().Add(s.keep)
	return s.log.SetTimer(ctx, run, last.Header.Version, until)
}

// seen is the sequence of the newest message that a view shows.
func seen(v runlog.View) uint64 { return max(v.Newest.Sequence, v.InboxSequence) }

// hold holds off the redelivery of d until release is called. Two workers that
// erase the same run do no harm, but twice the work.
func (s *Server) hold(ctx context.Context, d runlog.Delivery) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		for {
			timer := time.NewTimer(runlog.Lapse(s.log.AckWait()))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				_ = d.InProgress()
			}
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}
