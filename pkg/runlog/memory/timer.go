package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// timer is one that is set, or fired and not handled yet.
type timer struct {
	alarm alarm
	fired uint64 // its sequence among those that fired; 0 before
}

// SetTimer makes a timer fire at a time, and one that is set and has not fired at
// no other.
func (l *Log) SetTimer(ctx context.Context, name runlog.Run, parkVersion uint64, at time.Time) error {
	if !name.Valid() {
		return fmt.Errorf("timer: run %q has an invalid name", name)
	}
	if err := l.enter(ctx, "timer of "+name.String()); err != nil {
		return err
	}
	defer l.mu.Unlock()
	r := l.of(name)
	t := r.timers[parkVersion]
	if t == nil || t.fired != 0 { // one that has fired is not called back
		t = &timer{}
		r.timers[parkVersion] = t
		t.alarm.ring = func() { l.fire(name, parkVersion, t) }
	}
	now := time.Now()
	if wait := at.Sub(now); wait > 0 {
		l.set(&t.alarm, now.Add(wait)) // by the monotonic clock
	} else {
		l.unset(&t.alarm)
		t.alarm.ring()
	}
	return nil
}

// fire has a timer delivered.
func (l *Log) fire(name runlog.Run, parkVersion uint64, t *timer) {
	l.fired++
	t.fired = l.fired
	l.timers.add(&job{
		message: &message{entry: runlog.Entry{Run: name, Sequence: t.fired, Header: runlog.Header{Version: parkVersion}}},
		finished: func() {
			if r := l.runs[name]; r != nil && r.timers[parkVersion] == t {
				delete(r.timers, parkVersion)
				l.drop(name)
			}
		},
	})
}

const (
	// timersAtOnce bounds the timers in work.
	timersAtOnce = 8
	// timerPause is the wait before a timer that could not be handled is delivered
	// again.
	timerPause = time.Second
)

// ConsumeTimers delivers timers that fired.
func (l *Log) ConsumeTimers(ctx context.Context, handle func(context.Context, runlog.Run, uint64) error) error {
	return l.consume(ctx, l.timers, timersAtOnce, func(ctx context.Context, d *delivery) {
		err := handle(ctx, d.entry.Run, d.entry.Header.Version)
		_ = d.say(func() error {
			if err != nil {
				d.putBack(timerPause)
				return nil
			}
			d.said = true
			d.consumer.ack(d.entry.Sequence)
			return nil
		})
	})
}
