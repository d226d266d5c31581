// Package steer is the verbs that store an input for a run: send, answer, approve, interrupt,
// cancel and feedback. An input that the run does not take is refused before it is stored; answer
// and approve can follow the run that their answer continues.
package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (InterruptCmd) Help() string {
	return "Example:\n\n  harness interrupt r-x7k2qm4a"
}

func (CancelCmd) Help() string {
	return "Example:\n\n  harness cancel r-x7k2qm4a --reason 'no longer needed'"
}

// InterruptCmd stops what a run is doing and parks it.
type InterruptCmd struct {
	target.OneRun `embed:""`
	Reason        string `placeholder:"WHY" help:"Reason, stored with the run."`
}

func (c *InterruptCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return stop(ctx, a, &c.OneRun, harnessv1.RunStatus_RUN_STATUS_PARKED, func(ctx context.Context, s *backend.Session, id string) error {
		_, err := s.Client.InterruptRun(ctx, &harnessv1.InterruptRunRequest{Namespace: c.Namespace, RunId: c.RunID, RequestId: id, Reason: c.Reason})
		return err
	})
}

// CancelCmd cancels a run.
type CancelCmd struct {
	target.OneRun `embed:""`
	Reason        string `placeholder:"WHY" help:"Reason, stored with the run."`
}

func (c *CancelCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	return stop(ctx, a, &c.OneRun, harnessv1.RunStatus_RUN_STATUS_CANCELLED, func(ctx context.Context, s *backend.Session, id string) error {
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
func stop(ctx context.Context, a *console.Console, o *target.OneRun, want harnessv1.RunStatus, send func(context.Context, *backend.Session, string) error) (int, error) {
	if err := o.Check(a); err != nil {
		return exit.Error, err
	}
	session, err := o.Connect(ctx, a, backend.Drive, o.RunID)
	if err != nil {
		return console.Before(err)
	}
	defer func() { target.Disconnect(ctx, a, session) }()
	f := &follower.Follower{Target: &o.Target, Session: session, Run: o.RunID}
	current, err := f.Current(ctx)
	if err != nil {
		return exit.Error, err
	}
	run := current.GetRun()
	if target.HasEnded(run.GetStatus()) && len(current.GetWaiting()) == 0 { // otherwise an input is about to resume it
		return exit.Error, fmt.Errorf("run %s has ended (%s): nothing to stop", o.RunID, render.StatusName(run.GetStatus()))
	}
	id := follow.NewID()
	if err := send(ctx, session, id); err != nil {
		return exit.Error, err
	}
	waiting, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	waiting, release := a.CancelOnSignal(waiting)
	defer release()
	outcome, err := follow.Follow(waiting, follow.Config{
		Client: session.Client, Namespace: o.Namespace, Run: o.RunID, After: run.GetVersion(), Sent: []string{id},
		NoDeltas: true, Printer: render.NewQuiet(a.Err), Answered: true, Lost: session.Lost, Grace: stopGrace,
		Enough: func(r *harnessv1.HarnessResult) bool {
			if want == harnessv1.RunStatus_RUN_STATUS_PARKED {
				return follow.IsInterrupted(r)
			}
			return r.GetStatus() == want
		},
	})
	if cause := context.Cause(waiting); err != nil && cause != nil {
		a.Report("stored; run %s stops when a worker continues it", o.RunID)
		return exit.Done, nil
	}
	if err != nil {
		return exit.Error, err
	}
	result := outcome.Result
	if reason, refused := outcome.Rejected[id]; refused && result.GetStatus() != want {
		return exit.Error, fmt.Errorf("run %s is %s: %s", o.RunID, render.StatusName(result.GetStatus()), reason)
	}
	fmt.Fprintf(a.Out, "%s %s %s\n", o.RunID, render.StatusName(result.GetStatus()), render.Clean(result.GetReason().GetKind()))
	if result.GetStatus() != want {
		return exit.Error, fmt.Errorf("run %s ended first (%s)", o.RunID, render.StatusName(result.GetStatus()))
	}
	return exit.Done, nil
}
