package repairserver

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

const (
	wakeConcurrency = 64
	// maxErasures bounds the runs that one process erases at the same time.
	maxErasures = 4
)

// wake handles a message that may wake a run, or that has it erased.
func (s *Server) wake(ctx context.Context, cfg executor.Config, d runlog.Delivery) {
	run, release := d.Entry().Run, func() {}
	if err := s.bury(ctx, d); err != nil {
		s.logger.Warn("message put back", "run", run.ID, "namespace", run.Namespace, "error", err)
		_ = d.Nak(time.Second)
		return
	}
	if err := s.relate(ctx, cfg, d.Entry()); err != nil {
		if ctx.Err() == nil {
			s.logger.Warn("message put back", "run", run.ID, "namespace", run.Namespace, "error", err)
		}
		_ = d.Nak(time.Second)
		return
	}
	var step runlog.Entry // the newest step
	end := repair.Run(repair.Wake{Message: d.Entry().Sequence, KeepDeleted: s.keepDeleted}, func(a repair.Action) repair.Event {
		switch a := a.(type) {
		case repair.Append:
			failpoint.Hit(repair.Name, "wake_seen")
			// Its park or end is reported before what follows, whose reports replace it.
			if err := s.report(ctx, cfg, step, false); err != nil {
				return repair.Failure{Err: err}
			}
		case repair.Erase:
			if a.Keep > 0 {
				if err := s.expireBelow(ctx, cfg, step); err != nil {
					return repair.Failure{Err: err}
				}
			}
			select {
			case s.erasures <- struct{}{}:
			default:
				return repair.Busy{}
			}
			stop := s.keepDelivery(ctx, d)
			release = func() { stop(); <-s.erasures }
		case repair.SetTimer:
			failpoint.Hit(repair.Name, "erased")
		}
		e := s.do(ctx, cfg, run, a)
		if read, ok := e.(repair.ViewRead); ok {
			step = read.View.Step
		}
		if _, appends := a.(repair.Append); appends {
			if _, stored := e.(repair.Done); stored {
				failpoint.Hit(repair.Name, "woken")
			}
		}
		return e
	})
	release()
	switch end := end.(type) {
	case repair.Ack:
		_ = d.Ack()
	case repair.PutBack:
		if end.Err != nil && ctx.Err() == nil {
			s.logger.Warn("message put back", "run", run.ID, "namespace", run.Namespace, "error", end.Err)
		}
		_ = d.Nak(end.Delay + spread(run, d.Number(), end.Spread))
	default:
		s.logger.Error("message put back", "run", run.ID, "namespace", run.Namespace, "error", rejected(end))
		_ = d.Nak(time.Second)
	}
}

// spread returns a part of most that differs between runs and deliveries, and is the same for the same one: a
// simulation reproduces it.
func spread(run runlog.Run, delivery uint64, most time.Duration) time.Duration {
	const parts = 1024
	return most / parts * time.Duration(runlog.HashID(run.String()+" "+strconv.FormatUint(delivery, 10))%parts)
}

// bury kills the background commands of a run that has ended without the confirmation that
// they are dead: it was deleted while it waited for an answer, or its stop decision failed.
func (s *Server) bury(ctx context.Context, d runlog.Delivery) error {
	step := d.Entry().Record.GetStep()
	if step.GetTo() != runlog.End || len(step.GetSnapshot().GetBackgroundCommands()) == 0 {
		return nil
	}
	stop := s.keepDelivery(ctx, d)
	defer stop()
	_, err := s.background.Observe(ctx, d.Entry().Run, step.GetSnapshot())
	return err
}

// keepDelivery delays the redelivery of d until stop is called: two workers that
// erase the same run do no harm, but twice the work.
func (s *Server) keepDelivery(ctx context.Context, d runlog.Delivery) (stop func()) {
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
