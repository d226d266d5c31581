package executor

import (
	"context"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// heartbeat postpones the redelivery every third of AckWait, each time only after a
// validated view has shown that the task still owns the step.
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
			view, err := l.cfg.Log.View(vctx, task.Run, task.Tail().Sequence)
			vcancel()
			switch {
			case err != nil:
				next = every / 10
			case !task.owns(view):
				cancel(errLost)
				return
			default:
				_ = d.InProgress()
				task.sawInbox(view.InboxSequence)
				task.mu.Lock()
				f := task.onHeartbeat
				task.mu.Unlock()
				if f != nil {
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

// owns reports whether a view shows that this task still has the step: no record is
// newer than its own. Its own record may be visible before the answer to its append.
func (t *Task) owns(view runlog.View) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if view.Newest.Sequence <= t.tail.Sequence {
		return true
	}
	w := view.Newest.Record.GetWriter()
	return t.writer != nil && w.GetNonce() == t.writer.GetNonce() && w.GetInstance() == t.writer.GetInstance()
}
