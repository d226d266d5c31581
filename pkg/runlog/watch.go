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

// silence is how long a watcher relies on a quiet feed before it reads the log.
const silence = 10 * time.Second

// unsettled are the silences after an interruption. Until all servers of a bus know a new subscription,
// and all replicas have the stored records, a record may reach neither the feed nor the read after the
// interruption.
func unsettled() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
}

// hintWait is how long a record that is known by another path may take to arrive by the feed.
const hintWait = time.Second

// AppendedBefore returns the value of appended_before in a record that follows prev.
func AppendedBefore(prev Entry) uint64 {
	if adds(prev.Record) {
		return prev.Sequence
	}
	return prev.Record.GetAppendedBefore()
}

// adds reports whether a record adds messages to the conversation, or weights to messages.
func adds(rec *harnessv1.Record) bool {
	return len(rec.GetAppended()) > 0 || len(Weights(rec)) > 0
}

// Weights returns the weights of messages that a record states.
func Weights(rec *harnessv1.Record) []*harnessv1.Weights {
	if w := rec.GetJournal().GetModelResponded().GetWeights(); w != nil {
		return []*harnessv1.Weights{w}
	}
	var all []*harnessv1.Weights
	for _, o := range rec.GetStep().GetObserved() {
		if w := o.GetWeights(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// TowardsAppended returns the sequence to read next when walking back from rec over the
// records that add to the conversation; 0 if there is none before rec.
func TowardsAppended(rec *harnessv1.Record) uint64 {
	if before := rec.GetAppendedBefore(); before != 0 {
		return before
	}
	return rec.GetPrevSequence()
}

// BackAppended returns the records of from's run that add messages to the conversation, or
// weights to its messages, with sequences in (after, from.Sequence], oldest first. It reads
// each of them by exact sequence, and also each record without appended_before on the way.
func BackAppended(ctx context.Context, log Reader, from Entry, after uint64) ([]Entry, error) {
	var newestFirst []Entry
	for e := from; e.Sequence > after; {
		if e.Record == nil {
			return nil, fmt.Errorf("record at sequence %d: %w", e.Sequence, e.Err)
		}
		if adds(e.Record) {
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
			return nil, fmt.Errorf("version %d at sequence %d links to version %d at %d, which is not before it", e.Header.Version, e.Sequence, earlier.Header.Version, earlier.Sequence)
		}
		e = earlier
	}
	slices.Reverse(newestFirst)
	return newestFirst, nil
}

// Back returns the records of from's run with versions in (after, from's version],
// oldest first. It follows prev_sequence, so it makes one exact read per record and
// never scans the records of other runs. ErrLost means that one of them is not the predecessor of the
// next one: the bus has lost records and uses their sequences again.
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
			return nil, fmt.Errorf("sequence %d has version %d, expected %d: %w", prev.Sequence, prev.Header.Version, v-1, ErrLost)
		}
		if !Follows(e.Record, prev) {
			return nil, fmt.Errorf("version %d at sequence %d does not follow what is stored at %d: %w", v, e.Sequence, prev.Sequence, ErrLost)
		}
		e = prev
	}
}

// Pauses between two reads of a watch while the log is unavailable.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Away measures how long the bus has been unavailable. The zero Away is an available
// bus.
type Away struct {
	since time.Time
	pause time.Duration
}

// Again returns the pause before the next try after a failure at now: 50 ms, doubling
// to one second. ok is false once failures have lasted for patience.
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

// WatchSource is what a Watcher reads from.
type WatchSource interface {
	Feed
	Viewer
	Reader
}

// Watcher configures a watch of one run.
type Watcher struct {
	// After is the version after which the watch starts.
	After uint64
	// Contains is the sequence of a message that is known to be stored for the run; 0
	// for none.
	Contains uint64
	// Patience is how long the log may be unavailable. Default 0.
	Patience time.Duration
	// Hints has a value after another path than the feed has brought a record of the run; Known
	// returns the sequence of the newest of these. The feed loses records that a server has stored and not
	// sent on before it died. Both may be nil.
	Hints <-chan struct{}
	Known func() uint64
	// Handle is called with each record. Required.
	Handle func(Entry) error
	// CaughtUp, if not nil, is called once, after everything that was stored at the
	// start has been handled.
	CaughtUp func() error
}

// Watch calls Handle with the records of run after version After, in order of version,
// each once. It ends with the error of Handle or CaughtUp, with the cause of ctx, or
// when the log cannot be read. A new watch can continue from the last version.
//
// It subscribes to the feed first and then reads the log. The feed may drop records, so
// Watch reads the log again after a gap, an interruption, a hint or ten seconds of silence.
// While the log is unavailable, Watch retries. After Patience without a record it ends
// with ErrUnavailable.
//
// A run that has a known message counts as unavailable if it is not found: the replica
// that answered lags. If the bus has lost records that Handle has had, the watch ends with
// ErrLost.
func (w Watcher) Watch(ctx context.Context, log WatchSource, run Run) error {
	u := &watch{Watcher: w, log: log, run: run, next: w.After + 1, newest: w.Contains, feed: make(chan *Entry, 256)}
	defer func() {
		if u.stop != nil {
			u.stop()
		}
	}()
	return u.follow(ctx)
}

// watch is the state of one watch.
type watch struct {
	Watcher
	log WatchSource
	run Run

	// next is the version to handle next. newest is the highest known sequence of the
	// run, 0 if none is known.
	next, newest uint64
	given        Entry // the last handled record; sequence 0 for none
	feed         chan *Entry
	missed       atomic.Bool
	stop         func()
	caught       bool
	// ended is the error of Handle or CaughtUp.
	ended error
	away  Away
	// retry fires when the log has to be read again; nil while no read is due.
	retry <-chan time.Time
	// hinted fires when a record that is known by another path should have arrived; nil for none.
	hinted <-chan time.Time
	// silences are those that remain after an interruption.
	silences []time.Duration
}

func (w *watch) follow(ctx context.Context) error {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for err := w.catchUp(ctx); ; err = w.wait(ctx, quiet) {
		if err == nil && w.retry == nil && len(w.feed) == 0 && w.missed.Swap(false) {
			err = w.catchUp(ctx)
		}
		if err = w.afterError(ctx, err); err != nil {
			return err
		}
		quiet.Reset(w.silence())
	}
}

// silence returns how long the feed may be quiet before the next read.
func (w *watch) silence() time.Duration {
	if len(w.silences) > 0 {
		return w.silences[0]
	}
	return silence
}

// wait handles one event.
func (w *watch) wait(ctx context.Context, quiet *time.Timer) error {
	if ctx.Err() == nil {
		select { // queued records are cheaper than a read
		case e := <-w.feed:
			return w.fromFeed(ctx, e)
		default:
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case e := <-w.feed:
		return w.fromFeed(ctx, e)
	case <-w.retry:
		return w.catchUp(ctx)
	case <-quiet.C:
		if len(w.silences) > 0 {
			w.silences = w.silences[1:]
		}
		return w.catchUp(ctx)
	case <-w.Hints:
		if w.hinted == nil && w.Known() > w.newest {
			w.hinted = time.After(hintWait)
		}
	case <-w.hinted:
		w.hinted = nil
		if known := w.Known(); known > w.newest {
			w.newest = known
			return w.catchUp(ctx)
		}
	}
	return nil
}

// fromFeed handles an event of the feed; nil means that the feed was interrupted.
func (w *watch) fromFeed(ctx context.Context, e *Entry) error {
	if e == nil {
		w.silences = unsettled()
		return w.catchUp(ctx)
	}
	return w.record(ctx, *e)
}

// afterError returns nil if the watch continues after err, else the error to end with.
func (w *watch) afterError(ctx context.Context, err error) error {
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

// record handles a record of the feed.
func (w *watch) record(ctx context.Context, e Entry) error {
	w.newest = max(w.newest, e.Sequence)
	switch {
	case e.Header.Version == w.next && e.Record != nil:
		return w.give(ctx, e)
	case e.Header.Version < w.next && e.Sequence > w.given.Sequence && w.given.Sequence != 0:
		return w.replaced(ctx, e)
	case e.Header.Version >= w.next && w.retry == nil:
		return w.deliver(ctx, e)
	}
	return nil // handled before, or read from the log later
}

// catchUp reads the records that the watch does not have. It is due until it succeeds.
func (w *watch) catchUp(ctx context.Context) error {
	if w.stop == nil {
		var err error
		if w.stop, err = w.log.Subscribe(ctx, w.run, w.take); err != nil {
			return err
		}
	}
	view, err := w.log.View(ctx, w.run, w.newest)
	if errors.Is(err, ErrNotFound) && w.newest > 0 {
		return fmt.Errorf("%w: a known run is missing: %w", ErrUnavailable, err)
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

// take queues an event of the feed.
func (w *watch) take(e *Entry) {
	select {
	case w.feed <- e:
	default: // the queue is full: the reader reads the log once it is empty
		w.missed.Store(true)
	}
}

// deliver handles the missing records up to from.
func (w *watch) deliver(ctx context.Context, from Entry) error {
	w.newest = max(w.newest, from.Sequence)
	if w.given.Sequence != 0 && from.Header.Version < w.given.Header.Version {
		return w.replaced(ctx, from)
	}
	entries, err := Back(ctx, w.log, from, w.next-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.give(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// give handles the next record.
func (w *watch) give(ctx context.Context, e Entry) error {
	if w.given.Sequence != 0 && !Follows(e.Record, w.given) {
		return w.replaced(ctx, e)
	}
	if w.ended = w.Handle(e); w.ended == nil {
		w.next, w.given, w.away = e.Header.Version+1, e, Away{}
	}
	return w.ended
}

// replaced ends the watch because a record does not follow the last one. It belongs to
// another run of the same name, if the watched run was deleted, or the bus has lost the
// last one.
func (w *watch) replaced(ctx context.Context, e Entry) error {
	entries, err := Back(ctx, w.log, e, 0)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && entries[0].Sequence > w.given.Sequence:
		w.ended = fmt.Errorf("%s was deleted and another run has its name: %w", w.run, ErrNotFound)
	case err != nil && !errors.Is(err, ErrLost):
		return err
	default:
		w.ended = fmt.Errorf("version %d of %s, which was sent, is not stored any more: %w", w.given.Header.Version, w.run, ErrLost)
	}
	return w.ended
}
