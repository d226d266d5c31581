package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// resume prepares the stream of a watch, whose run has the view v.
func (s *Server) resume(ctx context.Context, w *watcher, v runlog.View) error {
	if w.alone {
		w.stream = gateway.NewRunStream(w.run.ID, w.from)
		return nil
	}
	w.stream = gateway.NewTreeStream(w.run.ID, w.from)
	if w.stream.Replays() && len(v.Step.Record.GetStep().GetSnapshot().GetChildren()) == 0 {
		w.stream.SkipReplay()
	}
	err := w.stream.Reopen("after", w.from, func(run string, sequence uint64) (runlog.Entry, error) {
		e, err := s.log.Read(ctx, runlog.Run{Namespace: w.run.Namespace, ID: run}, sequence)
		if err == nil && e.Record == nil {
			err = unreadable(e)
		}
		if errors.Is(err, runlog.ErrNotFound) {
			return e, fault.Invalid("after", "is not an offset of run %s as it is stored: watch again with a version", w.run)
		}
		return e, err
	})
	if err != nil {
		return err
	}
	for _, o := range w.stream.Open() {
		step := v.Step
		if o.Run != w.run.ID {
			below, err := s.view(ctx, runlog.Run{Namespace: w.run.Namespace, ID: o.Run})
			var known *fault.Error
			if errors.Is(err, runlog.ErrNotFound) || errors.As(err, &known) {
				continue
			}
			if err != nil {
				return err
			}
			step = below.Step
		}
		w.stream.Known(step)
	}
	return nil
}

// continues reports whether a run that is parked at a step continues by itself.
func (s *Server) continues(ctx context.Context, e runlog.Entry) (bool, error) {
	snapshot := e.Record.GetStep().GetSnapshot()
	if snapshot.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || snapshot.GetStopReason().GetKind() != runstate.KindAgent {
		return runstate.IsWaiting(snapshot.GetStatus(), snapshot.GetStopReason()), nil
	}
	idle, _, err := s.treeIdle(ctx, e)
	return !idle, err
}

// treeIdle reports whether of the runs that a parked run waits for none works: each is parked
// for a reason that does not pass by itself, by the last report that its parent has taken. first
// is the first run below that waits for an answer or a resume.
func (s *Server) treeIdle(ctx context.Context, e runlog.Entry) (idle bool, first runlog.Entry, err error) {
	snapshot := e.Record.GetStep().GetSnapshot()
	if snapshot.GetStopping() != nil {
		return false, first, nil
	}
	for _, c := range tree.Awaited(snapshot) {
		v, err := s.viewBelow(ctx, e.Run, c)
		if err != nil {
			return false, first, err
		}
		leaf, ok, err := s.restOf(ctx, v, c)
		if err != nil || !ok {
			return false, first, err
		}
		if first.Record == nil {
			first = leaf
		}
	}
	return first.Record != nil, first, nil
}

// restOf reports whether a child is parked as its last report says, and nothing below it
// works. leaf is the run that waits, the child or one below it.
func (s *Server) restOf(ctx context.Context, v runlog.View, c *harnessv1.Child) (leaf runlog.Entry, ok bool, err error) {
	if v.Step.Record == nil || !v.Quiescent() || v.Step.Record.GetStep().GetTo() != runlog.Park {
		return leaf, false, nil
	}
	snapshot := v.Step.Record.GetStep().GetSnapshot()
	if c.GetReport().GetVersion() < v.Step.Header.Version || snapshot.GetParent().GetOrder() < c.GetOrder() || v.InboxSequence > snapshot.GetInboxCursor() {
		return leaf, false, nil
	}
	switch snapshot.GetStopReason().GetKind() {
	case runstate.KindAgent:
		ok, leaf, err = s.treeIdle(ctx, v.Step)
		return leaf, ok, err
	case runstate.KindWait, runstate.KindPoison:
		return leaf, false, nil
	case runstate.KindProviderUnavailable:
		return v.Step, tree.NeedsInput(v.Step.Record.GetStep()), nil
	}
	return v.Step, true, nil
}

// viewBelow returns a view of a child; the zero View if it is not stored.
func (s *Server) viewBelow(ctx context.Context, parent runlog.Run, c *harnessv1.Child) (runlog.View, error) {
	v, err := s.view(ctx, runlog.Run{Namespace: parent.Namespace, ID: c.GetRunId()})
	var known *fault.Error
	if errors.Is(err, runlog.ErrNotFound) || errors.As(err, &known) {
		return runlog.View{}, nil
	}
	return v, err
}

// below visits the views of all runs below a step that were started, parents first, until visit
// returns an error. ended: those too that have ended.
func (s *Server) below(ctx context.Context, e runlog.Entry, ended bool, visit func(runlog.View) error) error {
	seen := map[string]bool{}
	for _, c := range e.Record.GetStep().GetSnapshot().GetChildren() {
		if c.GetOrder() == 0 || seen[c.GetRunId()] || !ended && tree.Ended(c) && c.GetOrder() <= c.GetReport().GetOrder() {
			continue
		}
		seen[c.GetRunId()] = true
		v, err := s.viewBelow(ctx, e.Run, c)
		if err != nil {
			return err
		}
		if v.Step.Record == nil {
			continue
		}
		if err := visit(v); err != nil {
			return err
		}
		if err := s.below(ctx, v.Step, ended, visit); err != nil {
			return err
		}
	}
	return nil
}

// withTree puts the pending calls of the runs below into the result of a run that is parked at
// its newest step and, if it waits for them alone and nothing below works, the first of these
// runs that waits.
func (s *Server) withTree(ctx context.Context, e runlog.Entry, r *harnessv1.HarnessResult) error {
	snapshot := e.Record.GetStep().GetSnapshot()
	if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED || len(snapshot.GetChildren()) == 0 || s.runs.seen(e.Run) > e.Sequence {
		return nil
	}
	err := s.below(ctx, e, false, func(v runlog.View) error {
		r.Pending = append(r.Pending, s.pendingBelow(ctx, v.Step)...)
		return nil
	})
	if err != nil || r.GetReason().GetKind() != runstate.KindAgent {
		return err
	}
	idle, first, err := s.treeIdle(ctx, e)
	if err != nil {
		return err
	}
	r.Reason = proto.CloneOf(r.GetReason())
	if r.Reason.Details == nil {
		r.Reason.Details = &harnessv1.StopDetails{}
	}
	if !idle {
		r.Reason.Details.RunId = ""
		return nil
	}
	waits := first.Record.GetStep().GetSnapshot()
	r.Reason.Details.RunId = first.Run.ID
	r.Reason.Message = fmt.Sprintf("Sub-agent %s (run %s) waits: %s", waits.GetParent().GetAgent(), first.Run.ID, waits.GetStopReason().GetMessage())
	return nil
}

// pendingBelow returns the calls that wait for an answer at a step of a run below, named with
// it.
func (s *Server) pendingBelow(ctx context.Context, step runlog.Entry) []*harnessv1.PendingCall {
	if step.Record.GetStep().GetTo() != runlog.Park {
		return nil
	}
	calls := s.whole(ctx, step.Run).calls(gateway.Answerable(step.Record.GetStep().GetSnapshot()))
	for i, c := range calls {
		calls[i] = proto.CloneOf(c)
		calls[i].RunId = step.Run.ID
	}
	return calls
}

// giveBelow delivers an answer that the run refused, because its call does not wait there, to
// the run below in which it waits, or has its answer.
func (s *Server) giveBelow(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, refused error) (input.Admission, error) {
	call, _ := input.Answers(item)
	var refusal *fault.Error
	if call == "" || !errors.As(refused, &refusal) || refusal.Reason != harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING {
		return 0, refused
	}
	reading, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(reading, run)
	if err != nil {
		return 0, refused
	}
	var waiting, answered []runlog.Run
	err = s.below(reading, v.Step, true, func(v runlog.View) error {
		state, err := s.runState(reading, v, item)
		if err != nil {
			return err
		}
		switch {
		case state.Awaits(call):
			waiting = append(waiting, v.Newest.Run)
		case state.Had(call):
			answered = append(answered, v.Newest.Run)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	candidates := waiting
	if len(candidates) == 0 {
		candidates = answered
	}
	switch len(candidates) {
	case 0:
		return 0, refused
	case 1:
		return s.give(ctx, candidates[0], item)
	}
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.ID
	}
	return 0, fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING,
		fmt.Sprintf("call %q waits in more than one run below %s: answer it in one of %s", call, run, strings.Join(names, ", ")), "call_id", call)
}
