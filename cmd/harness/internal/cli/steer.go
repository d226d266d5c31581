package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// oneRun names the run of a command.
type oneRun struct {
	target `embed:""`
	RunID  string `arg:"" name:"run" help:"Id of the run, or its beginning."`
}

func (o *oneRun) check(a *app) error {
	if err := o.target.check(a); err != nil {
		return err
	}
	if o.Namespace == "*" {
		return errors.New("--namespace: a run has one namespace, not *")
	}
	return runName("RUN", o.RunID)
}

// stored notes that an input is stored and what processes it.
func (o *oneRun) stored(a *app, s *backend.Session, what string) {
	if s.Local {
		a.printNote("%s; no process is using %s: harness resume %s%s continues the run", what, o.Data, o.RunID, o.words(a))
		return
	}
	a.printNote("%s; harness watch %s%s follows the run", what, o.RunID, o.words(a))
}

// interruptCmd stops what a run is doing and parks it.
type interruptCmd struct {
	oneRun `embed:""`
	Reason string `placeholder:"WHY" help:"Reason, stored with the run."`
}

func (c *interruptCmd) run(ctx context.Context, a *app) (int, error) {
	return stop(ctx, a, &c.oneRun, harnessv1.RunStatus_RUN_STATUS_PARKED, func(ctx context.Context, s *backend.Session, id string) error {
		_, err := s.Client.InterruptRun(ctx, &harnessv1.InterruptRunRequest{Namespace: c.Namespace, RunId: c.RunID, RequestId: id, Reason: c.Reason})
		return err
	})
}

// cancelCmd cancels a run.
type cancelCmd struct {
	oneRun `embed:""`
	Reason string `placeholder:"WHY" help:"Reason, stored with the run."`
}

func (c *cancelCmd) run(ctx context.Context, a *app) (int, error) {
	return stop(ctx, a, &c.oneRun, harnessv1.RunStatus_RUN_STATUS_CANCELLED, func(ctx context.Context, s *backend.Session, id string) error {
		_, err := s.Client.CancelRun(ctx, &harnessv1.CancelRunRequest{Namespace: c.Namespace, RunId: c.RunID, RequestId: id, Reason: c.Reason})
		return err
	})
}

// stopPatience is how long interrupt and cancel wait for the run to stop.
const stopPatience = 30 * time.Second

// stopGrace is how long to wait after a result that is not the requested one: an
// interrupt has no effect on a parked run that waits for no answer.
const stopGrace = 3 * time.Second

// stop sends an input that stops a run and waits for its effect.
func stop(ctx context.Context, a *app, o *oneRun, want harnessv1.RunStatus, send func(context.Context, *backend.Session, string) error) (int, error) {
	if err := o.check(a); err != nil {
		return exit.Error, err
	}
	session, err := o.connect(ctx, a, backend.Drive, o.RunID)
	if err != nil {
		return before(err)
	}
	defer func() { disconnect(ctx, a, session) }()
	f := &runFollower{target: &o.target, session: session, run: o.RunID}
	current, err := f.current(ctx)
	if err != nil {
		return exit.Error, err
	}
	run := current.GetRun()
	if hasEnded(run.GetStatus()) && len(current.GetWaiting()) == 0 { // otherwise an input is about to resume it
		return exit.Error, fmt.Errorf("run %s has ended (%s): nothing to stop", o.RunID, render.StatusName(run.GetStatus()))
	}
	id := follow.NewID()
	if err := send(ctx, session, id); err != nil {
		return exit.Error, err
	}
	waiting, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	waiting, release := a.cancelOnSignal(waiting)
	defer release()
	outcome, err := follow.Follow(waiting, follow.Config{
		Client: session.Client, Namespace: o.Namespace, Run: o.RunID, After: run.GetVersion(), Sent: []string{id},
		NoDeltas: true, Printer: render.NewQuiet(a.err), Lost: session.Lost, Grace: stopGrace,
		Enough: func(r *harnessv1.HarnessResult) bool {
			if want == harnessv1.RunStatus_RUN_STATUS_PARKED {
				return follow.IsInterrupted(r)
			}
			return r.GetStatus() == want
		},
	})
	if cause := context.Cause(waiting); err != nil && cause != nil {
		a.printNote("stored; run %s stops when a worker continues it", o.RunID)
		return exit.Done, nil
	}
	if err != nil {
		return exit.Error, err
	}
	result := outcome.Result
	if reason, refused := outcome.Rejected[id]; refused && result.GetStatus() != want {
		return exit.Error, fmt.Errorf("run %s is %s: %s", o.RunID, render.StatusName(result.GetStatus()), reason)
	}
	fmt.Fprintf(a.out, "%s %s %s\n", o.RunID, render.StatusName(result.GetStatus()), render.Clean(result.GetReason().GetKind()))
	if result.GetStatus() != want {
		return exit.Error, fmt.Errorf("run %s ended first (%s)", o.RunID, render.StatusName(result.GetStatus()))
	}
	return exit.Done, nil
}

func hasEnded(s harnessv1.RunStatus) bool {
	switch s {
	case harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED:
		return false
	default:
		return true
	}
}
