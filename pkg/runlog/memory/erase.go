package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// erasePause is the wait between two deletions of one erasure: 500 in a second.
const erasePause = 2 * time.Millisecond

// Erase deletes what is stored of a run but the record with sequence keep, one
// thing after another, so that others see it half done. It is about what is stored
// when it begins: a run of the same name that is made meanwhile is spared, and one
// that shows in a message above through is left alone.
func (l *Log) Erase(ctx context.Context, name runlog.Run, keep, through uint64) error {
	if !name.Valid() {
		return fmt.Errorf("erase: run %q has an invalid name", name)
	}
	op := "erase " + name.String()
	if err := l.enter(ctx, op); err != nil {
		return err
	}
	all := l.stored(name, keep, through)
	l.mu.Unlock()
	for i, erase := range all {
		if i > 0 {
			l.pause(ctx, erasePause)
		}
		if err := l.enter(ctx, op); err != nil {
			return err
		}
		erase()
		l.mu.Unlock()
	}
	return nil
}

// pause waits, at most until ctx ends or the log is closed.
func (l *Log) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.closed:
	case <-timer.C:
	}
}

// stored returns, for all that is stored of a run up to through but the record with
// sequence keep, what deletes it unless it is gone: timers, blobs, inbox items from the
// newest on, so that what is left can be read, and records, the oldest first.
func (l *Log) stored(name runlog.Run, keep, through uint64) []func() {
	r := l.runs[name]
	if r == nil {
		return nil
	}
	var all []func()
	if newest := max(r.newest(), r.lastInbox()); newest > 0 && newest <= through {
		all = l.belongings(name, r)
	}
	for _, m := range slices.Backward(r.inbox) {
		if m.entry.Sequence <= through {
			all = append(all, func() { l.eraseMessage(m) })
		}
	}
	for _, m := range r.records {
		if m.entry.Sequence != keep && m.entry.Sequence <= through {
			all = append(all, func() { l.eraseMessage(m) })
		}
	}
	return all
}

// belongings returns what deletes the timers and blobs of a run.
func (l *Log) belongings(name runlog.Run, r *run) []func() {
	var all []func()
	for _, version := range slices.Sorted(maps.Keys(r.timers)) {
		t := r.timers[version]
		all = append(all, func() { l.eraseTimer(name, version, t) })
	}
	for _, digest := range slices.Sorted(maps.Keys(r.blobs)) {
		b := r.blobs[digest]
		all = append(all, func() {
			if r := l.runs[name]; r != nil && r.blobs[digest] == b {
				delete(r.blobs, digest)
				l.drop(name)
			}
		})
	}
	return all
}

// eraseTimer deletes a timer, which then does not fire, or is not delivered any
// more.
func (l *Log) eraseTimer(name runlog.Run, version uint64, t *timer) {
	r := l.runs[name]
	if r == nil || r.timers[version] != t {
		return
	}
	l.unset(&t.alarm)
	delete(r.timers, version)
	l.timers.ack(t.fired)
	l.drop(name)
}

// eraseMessage deletes a message, which is then not delivered any more.
func (l *Log) eraseMessage(m *message) {
	if l.at(m.entry.Sequence) != m {
		return
	}
	l.messages[m.entry.Sequence-1] = nil
	r := l.runs[m.entry.Run]
	if m.kind == runlog.KindInbox {
		r.inbox = without(r.inbox, m)
	} else {
		r.records = without(r.records, m)
	}
	if c := l.consumerOf(m); c != nil {
		c.ack(m.entry.Sequence)
	}
	l.drop(m.entry.Run)
}
