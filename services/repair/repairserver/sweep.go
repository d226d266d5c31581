package repairserver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// sweepShare bounds the share of time that is spent on sweeping: after a sweep
// there are so many times its length without one.
const sweepShare = 100

// sweep looks again and again for runs that stand still, until ctx ends. It needs
// no memory of runs that rest, and keeps nothing between two sweeps but where the
// runs stood that do not.
func (s *Server) sweep(ctx context.Context, cfg executor.Config) {
	var before map[runlog.Run]uint64
	pause := s.sweeping
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		began := time.Now()
		standing, expired, err := s.working(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.logger.Warn("sweep put off", "error", err)
			}
			continue
		}
		inOrder := slices.SortedFunc(maps.Keys(standing), func(a, b runlog.Run) int { return cmp.Compare(standing[a], standing[b]) })
		for _, run := range inOrder {
			sequence := standing[run]
			if before[run] != sequence {
				continue // it has moved since the last look
			}
			if err := s.sweepRun(ctx, cfg, run, sequence); err != nil && ctx.Err() == nil {
				s.logger.Warn("sweep", "run", run.ID, "namespace", run.Namespace, "error", err)
			}
		}
		for _, e := range expired {
			if err := s.eraseLast(ctx, e); err != nil && ctx.Err() == nil {
				s.logger.Warn("sweep", "run", e.Run.ID, "namespace", e.Run.Namespace, "error", err)
			}
		}
		before = standing
		pause = max(s.sweeping, sweepShare*time.Since(began))
	}
}

// working are the runs that do not rest, with the sequence of the step at which
// their present cycle began, and the last records of deleted runs whose time is
// over: their timer is lost when the erasure that it began was broken off.
func (s *Server) working(ctx context.Context) (standing map[runlog.Run]uint64, expired []runlog.Entry, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	runs, whole := map[runlog.Run]uint64{}, false
	err = s.log.Runs(ctx, func() {
		whole = true
		cancel()
	}, func(e runlog.Entry) {
		if snapshot := e.Record.GetStep().GetSnapshot(); runstate.Expired(snapshot) && s.now().After(snapshot.GetExpireTime().AsTime().Add(s.keep)) {
			expired = append(expired, e)
		}
		if runlog.IsRest(e.Record.GetStep().GetTo()) {
			delete(runs, e.Run)
			return
		}
		runs[e.Run] = e.Sequence
	})
	if whole {
		return runs, expired, nil
	}
	return nil, nil, err
}

// eraseLast erases the last record of a deleted run, unless the name is another
// run's by now.
func (s *Server) eraseLast(ctx context.Context, e runlog.Entry) error {
	view, err := s.log.View(ctx, e.Run, e.Sequence)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil
	}
	if err != nil || view.Newest.Sequence != e.Sequence {
		return err
	}
	return s.log.Erase(ctx, e.Run, 0, seen(view))
}

// sweepRun looks at one run that stands still.
func (s *Server) sweepRun(ctx context.Context, cfg executor.Config, run runlog.Run, contains uint64) error {
	view, err := s.log.View(ctx, run, contains)
	if err != nil || view.Newest.Record == nil || view.Step.Record == nil {
		return err
	}
	at := repair.Consumer{Exists: true}
	at.AckFloor, err = s.log.AckFloor(ctx, run, view.Step.Record.GetStep().GetTo())
	if errors.Is(err, runlog.ErrNotFound) {
		at, err = repair.Consumer{}, nil
	}
	if err != nil {
		return err
	}
	rec := repair.Sweep(view, at)
	if rec == nil {
		return nil
	}
	s.logger.Error("a run stands still", "run", run.ID, "namespace", run.Namespace, "version", view.Newest.Header.Version,
		"executor", view.Step.Record.GetStep().GetTo(), "served", at.Exists)
	_, err = s.log.Append(ctx, s.envelope(cfg, view, rec))
	if errors.Is(err, runlog.ErrFenced) {
		return nil // it has moved
	}
	return err
}
