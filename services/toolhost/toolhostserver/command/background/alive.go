package background

import (
	"context"
	"errors"
	"slices"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
)

// background is a background command that is running in this process, or about to start.
type background struct {
	*harnessv1.BackgroundCommand
	// key is that of its entry in the ledger, run that of its run.
	key, run string
	line     string
	limit    time.Duration
	output   *output
	// stop kills it; the first cause counts.
	stop context.CancelCauseFunc
	// begun is closed when it has begun.
	begun chan struct{}
	// exited is closed when nothing of it is running. exit and err are set before.
	exited chan struct{}
	// settled is closed when its entry is stored, or it is known that none will be.
	settled chan struct{}
	// done is closed when it has exited and its end is stored.
	done chan struct{}
	exit command.Exit
	err  error
}

// ended returns the state of a command that has ended by itself, at its time limit or by the guard.
func (b *background) ended(cause error) *harnessv1.BackgroundState {
	exit, limit, stopped := b.exit, time.Duration(0), ""
	if exit.Stopped && errors.Is(cause, errTimeout) {
		limit = b.limit
	}
	if exit.Stopped && errors.Is(cause, guard.ErrStopped) {
		stopped = "stopped: " + cause.Error()
	}
	failed := ""
	if b.err != nil {
		failed = "its supervisor failed, and everything that was found of it was killed"
	}
	return &harnessv1.BackgroundState{
		Id: b.GetId(), CallId: b.GetCallId(), Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE,
		End: toolhost.BackgroundEnd(exit.Code, exit.Signal, limit, exit.Exceeded, failed, stopped, exit.RefusedHosts), Tail: b.output.tailText(),
	}
}

// await returns when there is output after an offset, or the command has ended, or the time
// is over.
func (b *background) await(ctx context.Context, offset int64, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		size, dropped, grown := b.output.state()
		if size > offset || dropped > 0 {
			return
		}
		select {
		case <-grown:
		case <-b.done:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// kill returns when nothing of a background command is running; nil: nothing is.
func (b *background) kill(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.stop(errCancelled)
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backgrounds are the background commands of a run that are alive, by id.
type backgrounds map[string]*background

// ids returns the ids of background commands, in order.
func (alive backgrounds) ids() []string {
	ids := make([]string, 0, len(alive))
	for id := range alive {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
