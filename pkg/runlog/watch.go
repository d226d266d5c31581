package runlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// silence is how long a watcher trusts a quiet feed before it reads the log.
const silence = 10 * time.Second

// AppendedBefore is what a record that follows prev says in appended_before.
func AppendedBefore(prev Entry) uint64 {
	if len(prev.Record.GetAppended()) > 0 {
		return prev.Sequence
	}
	return prev.Record.GetAppendedBefore()
}

// TowardsAppended is the sequence at which to go on from rec to the records before
// it that add to the conversation; 0 when there is none before it.
func TowardsAppended(rec *harnessv1.Record) uint64 {
	if before := rec.GetAppendedBefore(); before != 0 {
		return before
	}
	return rec.GetPrevSequence()
}

// BackAppended returns those of from's run's records that add to the
// conversation, with sequences above after and up to from, oldest first. It
// costs one exact read for each of them, and one for each record that does not
// say where the one before it is.
func BackAppended(ctx context.Context, log Reader, from Entry, after uint64) ([]Entry, error) {
	var newestFirst []Entry
	for e := from; e.Sequence > after; {
		if e.Record == nil {
			return nil, fmt.Errorf("record at sequence %d: %w", e.Sequence, e.Err)
		}
		if len(e.Record.GetAppended()) > 0 {
			newestFirst = append(newestFirst, e)
		}
		before := TowardsAppended(e.Record)
		if before <= after {
			break
		}
		earlier, err := log.Read(ctx, e.Run, before)
		if err != nil {
			return nil, fmt.Errorf("conversation before version %d: %w", e.Header.Version, err)
		}
		if earlier.Sequence >= e.Sequence || earlier.Header.Version >= e.Header.Version {
			return nil, fmt.Errorf("version %d at sequence %d says that version %d at %d is before it", e.Header.Version, e.Sequence, earlier.Header.Version, earlier.Sequence)
		}
		e = earlier
	}
	slices.Reverse(newestFirst)
	return newestFirst, nil
}

// Back returns the records of from's run with versions above after and up to
// from, oldest first. It walks prev_sequence, so it costs one exact read per
// record and never scans other runs' traffic.
func Back(ctx context.Context, log Reader, from Entry, after uint64) ([]Entry, error) {
	if from.Header.Version <= after {
		return nil, nil
	}
	entries := make([]Entry, from.Header.Version-after)
	for e := from; ; {
		if e.Record == nil {
			return nil, fmt.Errorf("record at sequence %d: %w", e.Sequence, e.Err)
		}
		v := e.Record.GetVersion()
		entries[v-after-1] = e
		if v == after+1 {
			return entries, nil
		}
		prev, err := log.Read(ctx, e.Run, e.Record.GetPrevSequence())
		if err != nil {
			return nil, fmt.Errorf("version %d: %w", v-1, err)
		}
		if prev.Header.Version != v-1 {
			return nil, fmt.Errorf("sequence %d holds version %d, want %d", prev.Sequence, prev.Header.Version, v-1)
		}
		e = prev
	}
}

// Pauses between the tries of a watch to which the log gives no answer.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Away counts how long the bus has given no answer. The zero Away is a bus that
// has answered.
type Away struct {
	since time.Time
	pause time.Duration
}

// Again says how long to wait before the next try after a failure at now: 50 ms,
// doubling to a second. ok is false when there was no answer for patience.
func (a *Away) Again(now time.Time, patience time.Duration) (pause time.Duration, ok bool) {
	if a.since.IsZero() {
		a.since = now
	}
	if now.Sub(a.since) >= patience {
		return 0, false
	}
	a.pause = min(max(2*a.pause, firstPause), longestPause)
	return a.pause, true
}

// Watch is a Watcher's Watch without patience: it ends with the first
// ErrUnavailable.
func Watch(ctx context.Context, log WatchSource, run Run, after uint64, handle func(Entry) error, caughtUp func() error) error {
	return Watcher{After: after, Handle: handle, CaughtUp: caughtUp}.Watch(ctx, log, run)
}

// WatchSource is what a Watcher reads from.
type WatchSource interface {
	Feed
	Viewer
	Reader
}

// Watcher says what of a run is watched.
type Watcher struct {
	// After is the version behind which the watch begins.
	After uint64
	// Contains is the sequence of a message that the run is known to have; 0 for
	// none.
	Contains uint64
	// Patience is how long the log may give no answer. Default: not at all.
	Patience time.Duration
	// Handle is called with each record. Required.
	Handle func(Entry) error
	// CaughtUp, when not nil, is called once after everything that was stored at
	// the start has been handled.
	CaughtUp func() error
}

// Watch calls Handle with the records of run after version After, strictly by
// version, each once, until Handle or CaughtUp returns an error (which it then
// returns), ctx ends or the log cannot be read; a new watch may go on from there.
//
// It listens to the feed first and reads the log then; on a gap, an
// interruption or ten seconds of silence it reads again, because the feed may
// drop records. A log that is unavailable is asked again until it or the feed
// has brought the watch on; after Patience without that the watch ends with
// ErrUnavailable.
//
// A run of which a message is known counts as unavailable where it is not found:
// the replica that answered is behind.
func (w Watcher) Watch(ctx context.Context, log WatchSource, run Run) error {
	u := &watch{Watcher: w, log: log, run: run, next: w.After + 1, newest: w.Contains, feed: make(chan *Entry, 256)}
	defer func() {
		if u.stop != nil {
			u.stop()
		}
	}()
	return u.follow(ctx)
}

// watch is a watch under way.
type watch struct {
	Watcher
	log WatchSource
	run Run

	// next is the version that is to be handled next, newest the highest sequence
	// that is known of the run, 0 while nothing is.
	next, newest uint64
	given        uint64 // sequence of the record that was handled last; 0 for none
	feed         chan *Entry
	missed       atomic.Bool
	stop         func()
	caught       bool
	// ended is what Handle or CaughtUp ended the watch with.
	ended error
	away  Away
	// retry fires when the log is to be asked again; nil while nothing is owed.
	retry <-chan time.Time
}

func (w *watch) follow(ctx context.Context) error {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for err := w.catchUp(ctx); ; err = w.wait(ctx, quiet) {
		if err == nil && w.retry == nil && len(w.feed) == 0 && w.missed.Swap(false) {
			err = w.catchUp(ctx)
		}
		if err = w.settle(ctx, err); err != nil {
			return err
		}
		quiet.Reset(silence)
	}
}

// wait takes in one thing that happens.
func (w *watch) wait(ctx context.Context, quiet *time.Timer) error {
	if ctx.Err() == nil {
		select { // what is there is cheaper than a look
		case e := <-w.feed:
			return w.brought(ctx, e)
		default:
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case e := <-w.feed:
		return w.brought(ctx, e)
	case <-w.retry:
		return w.catchUp(ctx)
	case <-quiet.C:
		return w.catchUp(ctx)
	}
}

// brought takes in what the feed brings; nil says that it was interrupted.
func (w *watch) brought(ctx context.Context, e *Entry) error {
	if e == nil {
		return w.catchUp(ctx)
	}
	return w.fed(ctx, *e)
}

// settle decides what err means for the watch: nil when it goes on.
func (w *watch) settle(ctx context.Context, err error) error {
	switch {
	case w.ended != nil:
		return w.ended
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, ErrUnavailable):
		return err
	}
	pause, ok := w.away.Again(time.Now(), w.Patience)
	if !ok {
		return err
	}
	w.retry = time.After(pause)
	return nil
}

// fed takes in a record of the feed.
func (w *watch) fed(ctx context.Context, e Entry) error {
	w.newest = max(w.newest, e.Sequence)
	switch {
	case e.Header.Version == w.next && e.Record != nil:
		return w.give(e)
	case e.Header.Version >= w.next && w.retry == nil:
		return w.deliver(ctx, e)
	}
	return nil // handled before, or comes when the log answers
}

// catchUp reads what the log has and the watch has not. It is owed until it has
// succeeded.
func (w *watch) catchUp(ctx context.Context) error {
	if w.stop == nil {
		var err error
		if w.stop, err = w.log.Subscribe(ctx, w.run, w.take); err != nil {
			return err
		}
	}
	view, err := w.log.View(ctx, w.run, w.newest)
	if errors.Is(err, ErrNotFound) && w.newest > 0 {
		return fmt.Errorf("%w: it was there: %w", ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	if err := w.deliver(ctx, view.Newest); err != nil {
		return err
	}
	w.retry, w.away = nil, Away{}
	if !w.caught {
		w.caught = true
		if w.CaughtUp != nil {
			w.ended = w.CaughtUp()
		}
	}
	return w.ended
}

// take is called by the feed.
func (w *watch) take(e *Entry) {
	select {
	case w.feed <- e:
	default: // the reader is behind; it reads the log once it has emptied the feed
		w.missed.Store(true)
	}
}

// deliver handles the records up to from that were not.
func (w *watch) deliver(ctx context.Context, from Entry) error {
	w.newest = max(w.newest, from.Sequence)
	entries, err := Back(ctx, w.log, from, w.next-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.give(e); err != nil {
			return err
		}
	}
	return nil
}

// give handles the next record. One that does not follow the one before it is of
// another run: that which was watched was deleted, and its name is used again.
func (w *watch) give(e Entry) error {
	if w.given != 0 && e.Record.GetPrevSequence() != w.given {
		w.ended = fmt.Errorf("%s was deleted, and another run has its name: %w", w.run, ErrNotFound)
		return w.ended
	}
	if w.ended = w.Handle(e); w.ended == nil {
		w.next, w.given, w.away = e.Header.Version+1, e.Sequence, Away{}
	}
	return w.ended
}
