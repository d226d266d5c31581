package executor

import (
	"context"
	"errors"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// heartbeat postpones the redelivery every third of AckWait, each time only after a
// validated read has shown that the task still owns the step, and publishes then whether the task waits.
func (l *loop) heartbeat(ctx context.Context, cancel context.CancelCauseFunc, d runlog.Delivery, task *Task) (stop func()) {
	beat := func() time.Duration { return runlog.Lapse(l.cfg.Log.AckWait()) } // the setting can change
	done := make(chan struct{})
	beating := make(chan struct{}, 1)
	timer := time.AfterFunc(beat(), func() {
		select {
		case beating <- struct{}{}:
		case <-done:
		}
	})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		seen := uint64(0) // nothing up to this sequence is unknown; 0 before the first view
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-beating:
			}
			// A failed view is repeated soon: after three of them another worker would
			// get the step.
			next, every := beat(), beat()
			vctx, vcancel := context.WithTimeout(ctx, every/2)
			view, same, err := l.view(vctx, task, seen)
			vcancel()
			switch {
			case errors.Is(err, runlog.ErrLost):
				cancel(err)
				return
			case err != nil:
				next = every / 10
			case same:
				_ = d.InProgress()
				task.beat()
			case !task.owns(view):
				cancel(errLost)
				return
			default:
				_ = d.InProgress()
				task.beat()
				seen = max(view.Newest.Sequence, view.InboxSequence)
				task.sawInbox(view.InboxSequence)
				if f := task.heartbeatFunc(); f != nil {
					hctx, hcancel := context.WithTimeout(ctx, every)
					f(hctx, view)
					hcancel()
				}
			}
			timer.Reset(next)
		}
	}()
	return func() {
		timer.Stop()
		close(done)
		<-finished
	}
}

// view returns a validated view of the task's run. A step that waits needs none while
// nothing is newer than the view before, which ends at seen: same is true
// then. This keeps waits cheap.
func (l *loop) view(ctx context.Context, task *Task, seen uint64) (view runlog.View, same bool, err error) {
	if seen > 0 && task.waits() {
		newer, err := l.cfg.Log.Newer(ctx, task.Run, seen)
		if err != nil || !newer {
			return runlog.View{}, err == nil, err
		}
	}
	view, err = l.cfg.Log.View(ctx, task.Run, task.Tail().Sequence)
	return view, false, err
}

// heartbeatFunc returns the function to call at each heartbeat; nil for none.
func (t *Task) heartbeatFunc() func(context.Context, runlog.View) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.onHeartbeat
}

// waits reports whether the task waits, and no function is to see the views.
func (t *Task) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting && t.onHeartbeat == nil
}

// owns reports whether a view shows that this task still has the step: no record is
// newer than its own, and its own is not lost. Its own record may be visible before the
// answer to its append.
func (t *Task) owns(view runlog.View) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := view.Newest.Record.GetWriter()
	if view.Newest.Sequence == t.tail.Sequence { // which is used again after a loss
		return w == nil || t.tail.Record == nil || w.GetNonce() == t.tail.Record.GetWriter().GetNonce()
	}
	return view.Newest.Sequence > t.tail.Sequence && t.writer != nil && w.GetNonce() == t.writer.GetNonce() && w.GetInstance() == t.writer.GetInstance()
}
