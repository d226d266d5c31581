package repairserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// on returns what carries out the actions of machines on a run.
func (s *Server) on(ctx context.Context, cfg executor.Config, run runlog.Run) func(repair.Action) repair.Event {
	return func(a repair.Action) repair.Event { return s.do(ctx, cfg, run, a) }
}

// do carries out one action on a run.
func (s *Server) do(ctx context.Context, cfg executor.Config, run runlog.Run, a repair.Action) repair.Event {
	switch a := a.(type) {
	case repair.ReadView:
		view, err := s.log.View(ctx, run, a.Contains)
		return found(repair.ViewRead{View: view}, err)
	case repair.ReadNewest:
		newest, err := s.log.Newest(ctx, run)
		return result(repair.Newest{Sequence: newest}, err)
	case repair.ReadLastItem:
		last, err := s.log.LastInbox(ctx, run)
		return result(repair.Newest{Sequence: last}, err)
	case repair.ReadItems:
		items, err := s.log.Inbox(ctx, run, a.After, a.UpTo)
		for _, item := range items {
			if link, ok := spans.Link(item.GetTraceparent(), spans.Cause.String("input")); ok {
				trace.SpanFromContext(ctx).AddLink(link)
			}
		}
		if err == nil && len(items) == 0 {
			err = fmt.Errorf("inbox of %s: items after %d up to %d not found", run, a.After, a.UpTo)
		}
		return result(repair.Items{Items: items}, err)
	case repair.ReadAckFloor:
		floor, err := s.log.AckFloor(ctx, run, a.Executor)
		return found(repair.Newest{Sequence: floor}, err)
	case repair.Redeliver:
		return result(repair.Done{}, s.log.Redeliver(ctx, run, a.Executor, a.From))
	case repair.CheckAttendance:
		attended, err := s.scope.admits(ctx, s.log, a.View)
		return result(repair.Attendance{Yes: attended}, err)
	case repair.Append:
		err := s.append(ctx, cfg, a.View, a.Record)
		if errors.Is(err, runlog.ErrFenced) {
			return repair.Conflict{}
		}
		return result(repair.Done{}, err)
	case repair.AppendItem:
		item := proto.CloneOf(a.Item)
		item.Time = timestamppb.New(s.now())
		_, _, err := s.log.AppendInbox(ctx, run, item, a.After)
		return result(repair.Done{}, err)
	case repair.Erase:
		if err := s.profiles.Forget(ctx, run, a.Profile, a.First); err != nil {
			return repair.Failure{Err: err}
		}
		return result(repair.Done{}, s.log.Erase(ctx, run, a.Keep, a.UpTo))
	case repair.SetTimer:
		return result(repair.Done{}, s.log.SetTimer(ctx, run, a.Version, a.At))
	}
	return repair.Failure{Err: fmt.Errorf("unsupported action %T", a)}
}

// result returns the event of an action that ended with err.
func result(done repair.Event, err error) repair.Event {
	if err != nil {
		return repair.Failure{Err: err}
	}
	return done
}

// found is result for a read that reports runlog.ErrNotFound.
func found(done repair.Event, err error) repair.Event {
	if errors.Is(err, runlog.ErrNotFound) {
		return repair.NotFound{Err: err}
	}
	return result(done, err)
}

// rejected returns the error of a machine that ended with an action that its shell
// does not know: a programming error.
func rejected(a repair.Action) error {
	if r, ok := a.(repair.Reject); ok {
		return fmt.Errorf("event %T cannot follow", r.Event)
	}
	return fmt.Errorf("unsupported action %T", a)
}

// append stores a record after the newest one of a view, with the trace of the run.
// If the record is a step, it starts a cycle whose span ends with it.
func (s *Server) append(ctx context.Context, cfg executor.Config, view runlog.View, rec *harnessv1.Record) error {
	rec = s.envelope(cfg, view, rec)
	state := view.Step.Record.GetStep().GetSnapshot().GetTrace()
	var ended []runtrace.Span
	if step := rec.GetStep(); step.GetSnapshot() != nil {
		state, ended = runtrace.Next(state, step, rec.GetVersion(), rec.GetCommitTime().AsTime())
		step.Snapshot.Trace = state
	}
	_, err := s.log.Append(spans.Under(ctx, runtrace.Current(state)), rec)
	if err == nil {
		spans.End(cfg.Tracer, view.Newest.Run, rec.GetStep(), ended)
	}
	return err
}

// envelope completes a record that is to follow the newest one of a view.
func (s *Server) envelope(cfg executor.Config, view runlog.View, rec *harnessv1.Record) *harnessv1.Record {
	rec.Namespace, rec.RunId = view.Newest.Run.Namespace, view.Newest.Run.ID
	runlog.Link(rec, view.Newest)
	rec.Schema = runlog.Schema
	rec.CommitTime = timestamppb.New(s.now())
	rec.Writer = &harnessv1.Writer{Executor: repair.Name, Instance: cfg.Instance, Nonce: rand.Uint64()}
	return rec
}

// fired handles a timer. An error has it delivered again.
func (s *Server) fired(ctx context.Context, run runlog.Run, parkVersion uint64) error {
	end := repair.Run(repair.Timer{ParkVersion: parkVersion}, func(a repair.Action) repair.Event {
		if _, ok := a.(repair.AppendItem); !ok {
			return s.do(ctx, executor.Config{}, run, a)
		}
		failpoint.Hit(repair.Name, "timer_fired")
		e := s.do(ctx, executor.Config{}, run, a)
		if _, ok := e.(repair.Done); ok {
			failpoint.Hit(repair.Name, "timer_kept")
		}
		return e
	})
	if finish, ok := end.(repair.Finish); ok {
		return finish.Err
	}
	return rejected(end)
}
