package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// maxWaiting bounds the steps that wait without a slot, and so their memory. A step
// above it waits in its slot, so that the worker takes fewer new ones.
const maxWaiting = 8192

// minWait is the shortest wait for a time: a decision may name one that has passed.
const minWait = 100 * time.Millisecond

// errStopping ends a wait because this worker stops.
var errStopping = errors.New("this worker stops")

// watch has what can end the waits of one task. The zero watch watches nothing.
type watch struct {
	pokes   <-chan struct{} // hints that the inbox has a new item
	leave   func()
	keys    []string
	changed <-chan struct{}
	end     func() // of changed
	renewed int    // times in a row, by start
}

// maxRenewed bounds the repeats in a row of a decision that always waits for other keys.
const maxRenewed = 8

// start watches keys. again reports whether something may have changed before: the
// decision must then be repeated before a wait. A watch of more keys is kept, because a
// change between two watches would be lost. again is true at most maxRenewed times in a row, so
// decisions that always have different keys wait too.
func (w *watch) start(ctx context.Context, task *Task, keys []string, changes Changes) (again bool) {
	watched := !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(w.keys, key) })
	if task.delivery == nil || w.leave != nil && watched {
		w.renewed = 0
		return false
	}
	if w.leave == nil {
		w.pokes, w.leave = task.loop.pokesOf(ctx, task.Run)
	}
	if w.end != nil {
		w.end()
	}
	w.keys, w.changed, w.end = keys, nil, nil
	if changes != nil {
		w.changed, w.end = changes(ctx, task, keys)
	}
	if w.renewed++; w.renewed <= maxRenewed {
		return true
	}
	w.renewed = 0
	return false
}

func (w *watch) stop() {
	if w.end != nil {
		w.end()
	}
	if w.leave != nil {
		w.leave()
	}
}

// wait waits without a slot until the decision is to be repeated. An error means that it
// is not: the worker stops, or another worker has the step.
func (t *Task) wait(ctx context.Context, w *watch, until *timestamppb.Timestamp) error {
	if t.delivery == nil {
		return errors.New("the decision waits, which only a step from the run log can do")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer t.delivery.onStop(func() { cancel(errStopping) })()
	l := t.loop
	began, end := l.cfg.Now(), telemetry.WaitStopped
	t.setWaiting(true)
	l.cfg.Metrics.Waiting(ctx, l.x.Name(), 1)
	defer func() {
		t.setWaiting(false)
		took := l.cfg.Now().Sub(began)
		t.delivery.waited += took
		l.cfg.Metrics.Waiting(ctx, l.x.Name(), -1)
		l.cfg.Metrics.WaitEnded(ctx, l.x.Name(), end, took)
	}()
	t.leaveRoom()
	leave, ok := l.admitWait()
	if !ok {
		end = t.await(ctx, w, until)
		return t.enterRoom(ctx)
	}
	if err := t.delivery.Wait(ctx, func() {
		defer leave()
		end = t.await(ctx, w, until)
	}); err != nil {
		return err
	}
	return t.enterRoom(ctx)
}

// await returns what ended a wait.
func (t *Task) await(ctx context.Context, w *watch, until *timestamppb.Timestamp) telemetry.WaitEnd {
	poll := time.NewTimer(t.pollPause())
	defer poll.Stop()
	var passed <-chan time.Time
	if until != nil {
		timer := time.NewTimer(max(until.AsTime().Sub(t.cfg.Now()), minWait))
		defer timer.Stop()
		passed = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return telemetry.WaitStopped
		case _, ok := <-w.changed:
			if ok {
				return telemetry.WaitChanged
			}
			w.changed = nil // closed: there are no reports
		case <-w.pokes:
			if last, err := t.cfg.Log.LastInbox(ctx, t.Run); err == nil { // else the next heartbeat finds the item
				t.sawInbox(last)
			}
		case <-t.input:
			return telemetry.WaitInput
		case <-passed:
			return telemetry.WaitUntil
		case <-poll.C:
			return telemetry.WaitPoll
		}
	}
}

func (t *Task) setWaiting(waiting bool) {
	t.changeWord(func() { t.waiting = waiting })
}

// pollPause returns how long the task waits without a report: Config.Poll, a quarter
// more or less. It depends on the run alone, so that runs do not poll in step.
func (t *Task) pollPause() time.Duration {
	const parts = 1024
	share := runlog.HashID(t.Run.String()) % parts
	return t.cfg.Poll*3/4 + t.cfg.Poll/2*time.Duration(share)/parts
}

// sawInbox records that the newest item of the inbox is at sequence. A wait ends for
// each item once.
func (t *Task) sawInbox(sequence uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sequence <= t.inbox {
		return
	}
	t.inbox = sequence
	select {
	case t.input <- struct{}{}:
	default:
	}
}

// admitWait reports whether one more step may wait without a slot. leave ends its wait.
func (l *loop) admitWait() (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= maxWaiting {
		return nil, false
	}
	l.waiting++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting--
	}, true
}

// pokesOf returns the pokes of a run. The first call subscribes to those of all runs, so
// that an executor that never waits receives none. Without a subscription a heartbeat
// finds the items.
func (l *loop) pokesOf(ctx context.Context, run runlog.Run) (pokes <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsubscribe == nil {
		stop, err := l.cfg.Log.OnPoke(l.pokes.Poke)
		if err != nil {
			l.logger.WarnContext(ctx, "subscribe to pokes", "error", err)
		} else {
			l.unsubscribe = stop
		}
	}
	return l.pokes.Enter(run)
}

// stopPokes ends the subscription to pokes.
func (l *loop) stopPokes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsubscribe != nil {
		l.unsubscribe()
	}
}

// stepDelivery is a delivery to this worker. Only its handler uses it.
type stepDelivery struct {
	runlog.Delivery
	// onStop calls f when the worker is to stop. cancel prevents that.
	onStop func(f func()) (cancel func() bool)
	// stopping reports whether the worker takes no more steps.
	stopping func() bool
	// waited is the time that the step has waited.
	waited time.Duration
}
