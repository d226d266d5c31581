package repairserver

import (
	"context"
	"errors"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

const (
	// sweepShare bounds the time spent on listing runs: the pause after a sweep is at
	// least sweepShare times its length, at most maxSweepPause times Config.Sweep.
	sweepShare    = 100
	maxSweepPause = 10
	// hurried is how many sweeps come after only Config.Hurry, at a start and after the bus has lost
	// its newest records: steps that were acknowledged are the newest ones again, and two
	// sweeps find them.
	hurried = 2
)

// sweep lists the runs again and again and recovers those that do not move, until
// ctx ends.
func (s *Server) sweep(ctx context.Context, cfg executor.Config) {
	before, lost, turned := repair.Listing{}, s.log.Lost(), s.log.Turned()
	hurries, pause := hurried, min(s.hurry, s.sweepInterval)
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-lost:
			timer.Stop()
			before, lost = repair.Listing{}, s.log.Lost() // first: another loss may come meanwhile
			s.rewind(ctx)
			hurries, pause = hurried, min(s.hurry, s.sweepInterval)
			continue
		case <-turned:
			timer.Stop()
			turned = s.log.Turned() // first: another clock may go back meanwhile
			s.expire(ctx)
			continue
		case <-timer.C:
		}
		start := time.Now()
		s.rewind(ctx) // after a loss that this process has not seen
		listing, err := s.list(ctx)
		if err == nil {
			pause = min(max(s.sweepInterval, sweepShare*time.Since(start)), maxSweepPause*s.sweepInterval)
			if hurries--; hurries > 0 {
				pause = min(s.hurry, s.sweepInterval)
			}
			err = s.tend(ctx, cfg, listing.Since(before))
			before = listing
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("sweep stopped early", "error", err)
		}
	}
}

// rewind has delivered again what a loss has made consumers skip. If it fails, the next sweep
// tries again.
func (s *Server) rewind(ctx context.Context) {
	if err := s.log.Rewind(ctx); err != nil && ctx.Err() == nil {
		s.logger.Warn("consumers may be past what the bus has", "error", err)
	}
}

// expire has the steps of dead workers delivered again after a clock of the bus went back. If it fails, it
// tries again after expirePause until the bus answers.
func (s *Server) expire(ctx context.Context) {
	for {
		err := s.log.Expire(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.logger.Warn("steps of dead workers may wait until the clock of the bus has caught up", "error", err)
		timer := time.NewTimer(expirePause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// expirePause is the wait before another try to have messages delivered again.
const expirePause = time.Second

// list reads the newest steps of all runs.
func (s *Server) list(ctx context.Context) (repair.Listing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listing, complete := repair.Listing{}, false
	err := s.log.Runs(ctx, func() {
		complete = true
		cancel()
	}, func(e runlog.Entry) { listing.Add(e, s.now(), s.keepDeleted) })
	if complete {
		return listing, nil
	}
	return repair.Listing{}, err
}

// tend does the work that a sweep has found. It returns early if the bus is
// unavailable; an error of one run does not keep others from their recovery.
func (s *Server) tend(ctx context.Context, cfg executor.Config, work repair.Work) error {
	for _, r := range work.Recoveries {
		if err := s.tolerate(r.Run, s.recoverRun(ctx, cfg, r)); err != nil {
			return err
		}
	}
	for _, e := range work.Overdue {
		s.logger.Error("the timer of a park is lost; setting it again", "run", e.Run.ID, "namespace", e.Run.Namespace, "version", e.Header.Version)
		if err := s.tolerate(e.Run, s.log.SetTimer(ctx, e.Run, e.Record.GetStep().GetSnapshot().GetParkVersion(), s.now())); err != nil {
			return err
		}
	}
	for _, e := range work.Expired {
		if err := s.tolerate(e.Run, s.eraseClosing(ctx, cfg, e)); err != nil {
			return err
		}
	}
	return nil
}

// tolerate logs an error of one run, and returns it if the bus is unavailable.
func (s *Server) tolerate(run runlog.Run, err error) error {
	if err != nil && !errors.Is(err, runlog.ErrUnavailable) {
		s.logger.Warn("sweep of a run failed", "run", run.ID, "namespace", run.Namespace, "error", err)
		return nil
	}
	return err
}

// recoverRun recovers a run that has not moved between two sweeps.
func (s *Server) recoverRun(ctx context.Context, cfg executor.Config, r repair.RunRecovery) error {
	end := repair.Run(r.Recovery, func(a repair.Action) repair.Event {
		switch a := a.(type) {
		case repair.Redeliver:
			s.logger.Error("the bus has lost what followed a step that was begun; delivering it again", "run", r.Run.ID, "namespace", r.Run.Namespace,
				"sequence", a.From, "executor", a.Executor)
		case repair.Append:
			s.logger.Error("the run does not move; recovering it", "run", r.Run.ID, "namespace", r.Run.Namespace,
				"version", a.View.Newest.Header.Version, "executor", a.View.Step.Record.GetStep().GetTo(), "served", a.Record.GetStep() != nil)
		}
		return s.do(ctx, cfg, r.Run, a)
	})
	if finish, ok := end.(repair.Finish); ok {
		return finish.Err
	}
	return rejected(end)
}

// eraseClosing erases the closing record of a deleted run whose children are deleted, unless its
// name belongs to another run by now.
func (s *Server) eraseClosing(ctx context.Context, cfg executor.Config, e runlog.Entry) error {
	if err := s.expireBelow(ctx, cfg, e); err != nil {
		return err
	}
	newest, err := s.log.Newest(ctx, e.Run)
	if err != nil || newest != e.Sequence {
		return err
	}
	return s.log.Erase(ctx, e.Run, 0, e.Sequence)
}
