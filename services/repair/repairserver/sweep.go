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

const (
	// sweepShare bounds the share of time that is spent on listing runs: after a
	// sweep there are so many times its length without one, at most sweepRest sweeps.
	sweepShare = 100
	sweepRest  = 10
	// late is how long a park may outlast its timer.
	late = time.Minute
)

// listing is what a sweep has to know of all runs.
type listing struct {
	// standing are the runs that do not rest, with the sequence of the step at which
	// their present cycle began.
	standing map[runlog.Run]uint64
	// expired are the last records of deleted runs whose time is over: their timer is
	// lost when the erasure that it began was broken off.
	expired []runlog.Entry
	// overdue are the parks that should have ended by themselves: their timer is lost.
	overdue map[runlog.Run]runlog.Entry
}

// sweep looks again and again for runs that stand still, until ctx ends. It needs
// no memory of runs that rest, and keeps nothing between two sweeps but where the
// runs stood that do not.
func (s *Server) sweep(ctx context.Context, cfg executor.Config) {
	before := listing{}
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
		now, err := s.list(ctx)
		if err == nil {
			pause = min(max(s.sweeping, sweepShare*time.Since(began)), sweepRest*s.sweeping)
			err = s.tend(ctx, cfg, before, now)
			before = now
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("sweep broken off", "error", err)
		}
	}
}

// tend takes care of what two listings show to stand still. It ends when the bus is
// away.
func (s *Server) tend(ctx context.Context, cfg executor.Config, before, now listing) error {
	care := func(run runlog.Run, err error) error {
		if err != nil && !errors.Is(err, runlog.ErrUnavailable) {
			s.logger.Warn("sweep", "run", run.ID, "namespace", run.Namespace, "error", err)
			return nil
		}
		return err
	}
	for _, run := range slices.SortedFunc(maps.Keys(now.standing), func(a, b runlog.Run) int { return cmp.Compare(now.standing[a], now.standing[b]) }) {
		if before.standing[run] != now.standing[run] {
			continue // it has moved since the last look
		}
		if err := care(run, s.sweepRun(ctx, cfg, run, now.standing[run])); err != nil {
			return err
		}
	}
	for _, run := range slices.SortedFunc(maps.Keys(now.overdue), func(a, b runlog.Run) int {
		return cmp.Compare(now.overdue[a].Sequence, now.overdue[b].Sequence)
	}) {
		e := now.overdue[run]
		if before.overdue[run].Sequence != e.Sequence {
			continue
		}
		s.logger.Error("the timer of a park is lost", "run", run.ID, "namespace", run.Namespace, "version", e.Header.Version)
		if err := care(run, s.log.SetTimer(ctx, run, e.Record.GetStep().GetSnapshot().GetParkVersion(), s.now())); err != nil {
			return err
		}
	}
	for _, e := range now.expired {
		if err := care(e.Run, s.eraseLast(ctx, e)); err != nil {
			return err
		}
	}
	return nil
}

// list looks at the newest steps of all runs.
func (s *Server) list(ctx context.Context) (listing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, whole := listing{standing: map[runlog.Run]uint64{}, overdue: map[runlog.Run]runlog.Entry{}}, false
	err := s.log.Runs(ctx, func() {
		whole = true
		cancel()
	}, func(e runlog.Entry) {
		delete(l.standing, e.Run)
		delete(l.overdue, e.Run)
		step := e.Record.GetStep()
		snapshot := step.GetSnapshot()
		switch {
		case !runlog.IsRest(step.GetTo()):
			l.standing[e.Run] = e.Sequence
		case runstate.Expired(snapshot) && s.now().After(snapshot.GetExpireTime().AsTime().Add(s.keep)):
			l.expired = append(l.expired, e)
		case step.GetTo() == runlog.Park && snapshot.GetWakeAt() != nil && s.now().After(snapshot.GetWakeAt().AsTime().Add(late)):
			l.overdue[e.Run] = e
		}
	})
	if whole {
		return l, nil
	}
	return listing{}, err
}

// eraseLast erases the last record of a deleted run, unless the name is another
// run's by now.
func (s *Server) eraseLast(ctx context.Context, e runlog.Entry) error {
	newest, err := s.log.Newest(ctx, e.Run)
	if err != nil || newest != e.Sequence {
		return err
	}
	return s.log.Erase(ctx, e.Run, 0, e.Sequence)
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
	err = s.append(ctx, cfg, view, rec)
	if errors.Is(err, runlog.ErrFenced) {
		return nil // it has moved
	}
	return err
}
