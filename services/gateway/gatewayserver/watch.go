package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// queuedDeltas bounds the deltas queued for a slow client. Beyond them text is dropped;
// records never are.
const queuedDeltas = 512

// WatchRun sends the records of a run, strictly by version.
func (s *Server) WatchRun(r *harnessv1.WatchRunRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunResponse]) error {
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return err
	}
	until := r.GetUntil()
	if _, ok := harnessv1.WatchUntil_name[int32(until)]; !ok {
		return fault.Invalid("until", "%d is not END, REST or NOW", int32(until))
	}
	if until == harnessv1.WatchUntil_WATCH_UNTIL_UNSPECIFIED {
		until = harnessv1.WatchUntil_WATCH_UNTIL_END
	}
	from, err := gateway.OffsetOf(r.GetAfterVersion(), r.GetAfter())
	if err != nil {
		return err
	}
	return s.watch(stream.Context(), &watcher{
		run:   run,
		from:  from,
		alone: r.Tree != nil && !r.GetTree(),
		until: until,
		text:  !r.GetNoDeltas() && until != harnessv1.WatchUntil_WATCH_UNTIL_NOW,
		send: func(u *harnessv1.RunUpdate) error {
			return stream.Send(&harnessv1.WatchRunResponse{Update: u})
		},
	})
}

// watcher is one watch of a run. All of its fields belong to the goroutine that runs
// watch.
type watcher struct {
	run runlog.Run
	// from is the offset up to which the client has received the stream.
	from gateway.Offset
	// alone leaves out the runs below.
	alone bool
	until harnessv1.WatchUntil
	// text: the client wants deltas.
	text bool
	send func(*harnessv1.RunUpdate) error
	// receipts are sent between records; nil without a client that sends inputs.
	receipts <-chan *harnessv1.InputReceipt
	// hooks are calls that the client answers, also sent between records.
	hooks <-chan *harnessv1.HookRequest
	// left is closed when the client has closed its side; nil if it cannot send.
	left <-chan struct{}
	// stays keeps a watch of an already ended run open until left is closed.
	stays bool

	// resultOf returns the result of a run that is parked or has ended at a step, nil
	// for other records.
	resultOf func(runlog.Entry) *harnessv1.HarnessResult
	// whole puts texts that are stored as blobs into an event of a run.
	whole func(runID string, e *harnessv1.Event)

	stream *gateway.TreeStream
	// known is the sequence of a record that the run is known to have.
	known uint64
	// caughtUp: the records stored at the start were delivered.
	caughtUp bool
	// newest is the newest entry that was delivered; result is the version whose result
	// was delivered.
	newest runlog.Entry
	result uint64
	// away counts failed reads of the run; again fires when the next is due, nil if none
	// is.
	away  runlog.Away
	again <-chan time.Time
}

func (s *Server) watch(ctx context.Context, w *watcher) error {
	err := s.deliver(ctx, w)
	var known *fault.Error
	if errors.Is(err, runlog.ErrUnavailable) && !errors.As(err, &known) && ctx.Err() == nil {
		return because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			fmt.Sprintf("watch %s: %s; attach again with after_version %d", w.run, s.whyUnavailable(err), max(w.from.Root.Version, w.newest.Header.Version)))
	}
	return s.failure(ctx, "watch", w.run, err)
}

func (s *Server) deliver(ctx context.Context, w *watcher) error {
	if err := s.attach(ctx, w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.resultOf = func(e runlog.Entry) *harnessv1.HarnessResult {
		// A park before the newest record costs no read: more follows.
		if w.until != harnessv1.WatchUntil_WATCH_UNTIL_NOW && e.Sequence >= w.known && s.inputWaits(ctx, e) {
			return nil
		}
		return s.resultOf(ctx, e)
	}
	w.whole = func(runID string, e *harnessv1.Event) {
		s.whole(ctx, runlog.Run{Namespace: w.run.Namespace, ID: runID}).event(e)
	}
	f := s.newFollowers(ctx, w)
	defer f.close()
	if err := f.open(); err != nil {
		return err
	}
	for {
		done, err := s.next(ctx, w, f)
		if err != nil {
			return err
		}
		if done {
			return w.acknowledge()
		}
	}
}

// next waits for one event and sends it to the client.
func (s *Server) next(ctx context.Context, w *watcher, f *followers) (done bool, err error) {
	select {
	case <-s.closing:
		return false, errClosing()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case d := <-f.deltas:
		return false, w.deltas(f.splice(d))
	case r := <-w.receipts:
		return false, w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Receipt{Receipt: r}})
	case h := <-w.hooks:
		return false, w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Hook{Hook: h}})
	case <-w.left:
		w.left, w.stays = nil, false
		return s.checkOver(ctx, w)
	case <-w.again:
		return s.checkOver(ctx, w)
	case n := <-f.news:
		if n.entry.Record != nil {
			s.runs.heard(n.entry)
		}
		if err := f.take(n); err != nil {
			return false, err
		}
		if n.caughtUp && n.run == w.run.ID {
			w.caughtUp = true
		}
		if err := s.pump(w, f); err != nil {
			return false, err
		}
		if n.entry.Record != nil {
			failpoint.Hit(gateway.Writer, "watching")
			if w.caughtUp && n.run == w.run.ID {
				w.stays = false // the client sees any later end
			}
		}
		return s.checkOver(ctx, w)
	}
}

// pump sends what may be delivered now.
func (s *Server) pump(w *watcher, f *followers) error {
	for {
		d, ok := w.stream.Next()
		switch {
		case !ok:
			return f.open()
		case d.Event != nil:
			w.whole(d.Run, d.Event)
			if err := w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Event{Event: d.Event}}); err != nil {
				return err
			}
		default:
			if err := w.record(f, d); err != nil {
				return err
			}
		}
	}
}

// checkOver finds out whether the watch is over. While the log is unavailable it is not, and
// another read is scheduled.
func (s *Server) checkOver(ctx context.Context, w *watcher) (done bool, err error) {
	w.again = nil
	if !w.caughtUp {
		return false, nil
	}
	if done, err = s.arrived(ctx, w); err == nil {
		w.away = runlog.Away{}
		return done, nil
	}
	if errors.Is(err, runlog.ErrNotFound) {
		err = fmt.Errorf("%w: it was there: %w", runlog.ErrUnavailable, err)
	}
	if ctx.Err() != nil || !errors.Is(err, runlog.ErrUnavailable) {
		return false, err
	}
	pause, ok := w.away.Again(time.Now(), s.patience)
	if !ok {
		return false, err
	}
	w.again = time.After(pause)
	return false, nil
}

// attach sends the client the run that it watches.
func (s *Server) attach(ctx context.Context, w *watcher) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx, w.run)
	if errors.Is(err, runlog.ErrNotFound) {
		if unknown := s.runs.ready(); unknown != nil {
			return unknown // a lagging replica may have answered
		}
	}
	if err != nil {
		return err
	}
	after := w.from.Root.Version
	if v.Newest.Header.Version < after {
		if v, _, err = s.fresher(ctx, w.run, v); err != nil {
			return err
		}
	}
	if has := v.Newest.Header.Version; has < after {
		return because(runlog.ErrLost, codes.DataLoss, harnessv1.ErrorReason_ERROR_REASON_NOT_STORED,
			fmt.Sprintf("watch %s: it has no version %d: the bus has lost its newest versions; watch again with after_version %d", w.run, after, has),
			"version", strconv.FormatUint(has, 10))
	}
	if err := s.resume(ctx, w, v); err != nil {
		return err
	}
	w.known = v.Newest.Sequence
	w.stays = w.stays && v.Quiescent() && v.Step.Record.GetStep().GetTo() == runlog.End
	return w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Attached{Attached: &harnessv1.Attached{
		Namespace: w.run.Namespace, RunId: w.run.ID, Version: v.Newest.Header.Version,
	}}})
}

// arrived reports whether a watch that was sent everything stored is over. A client that
// already had all of it still receives the result of a parked or ended run.
func (s *Server) arrived(ctx context.Context, w *watcher) (done bool, err error) {
	if w.newest.Sequence == 0 {
		v, err := s.view(ctx, w.run)
		if err != nil {
			return false, err
		}
		if v.Quiescent() && v.Newest.Header.Version <= w.from.Root.Version {
			w.newest = v.Newest
			if err := w.rest(v.Newest); err != nil {
				return false, err
			}
		}
	}
	if w.until == harnessv1.WatchUntil_WATCH_UNTIL_NOW {
		return w.stream.Current(), nil
	}
	return s.over(ctx, w)
}

// inputWaits reports whether a parked run has an input that is not applied yet, and so continues:
// a client that attaches after an answer must not hear that it is missing. If the log is
// unavailable, the stored result counts.
func (s *Server) inputWaits(ctx context.Context, e runlog.Entry) bool {
	snapshot := e.Record.GetStep().GetSnapshot()
	if to := e.Record.GetStep().GetTo(); !runlog.IsRest(to) || to == runlog.End || runstate.Expired(snapshot) {
		return false
	}
	v, err := s.log.View(ctx, e.Run, max(e.Sequence, s.runs.seen(e.Run)))
	return err == nil && v.Newest.Sequence == e.Sequence && v.InboxSequence > snapshot.GetInboxCursor()
}

// over reports whether the watch has reached its end condition.
func (s *Server) over(ctx context.Context, w *watcher) (bool, error) {
	to := w.newest.Record.GetStep().GetTo()
	if w.stays || !runlog.IsRest(to) ||
		to != runlog.End && w.until != harnessv1.WatchUntil_WATCH_UNTIL_REST {
		return false, nil
	}
	if !w.stream.Complete() {
		return false, nil
	}
	if waits, err := s.continues(ctx, w.newest); err != nil || waits {
		return false, err
	}
	if runstate.Expired(w.newest.Record.GetStep().GetSnapshot()) {
		return true, nil // whatever is in its inbox
	}
	v, err := s.log.View(ctx, w.run, max(w.newest.Sequence, s.runs.seen(w.run)))
	if err != nil {
		return false, err
	}
	cursor := w.newest.Record.GetStep().GetSnapshot().GetInboxCursor()
	return v.Newest.Sequence == w.newest.Sequence && v.InboxSequence <= cursor, nil
}

// record takes a record whose events were sent.
func (w *watcher) record(f *followers, d gateway.Delivery) error {
	released := f.delivered(d)
	if d.Old {
		return nil
	}
	if err := w.deltas(released); err != nil {
		return err
	}
	if d.Run != w.run.ID {
		return nil
	}
	w.newest = *d.Record
	return w.rest(*d.Record)
}

// deltas sends deltas.
func (w *watcher) deltas(deltas []*harnessv1.Delta) error {
	for _, d := range deltas {
		if err := w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Delta{Delta: d}}); err != nil {
			return err
		}
	}
	return nil
}

// rest sends the result if the run is parked or has ended.
func (w *watcher) rest(e runlog.Entry) error {
	result := w.resultOf(e)
	if result == nil || w.result == e.Header.Version {
		return nil
	}
	w.result = e.Header.Version
	return w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Result{Result: result}})
}

// acknowledge sends the remaining receipts when a watch is over.
func (w *watcher) acknowledge() error {
	for {
		select {
		case r := <-w.receipts:
			if err := w.send(&harnessv1.RunUpdate{Update: &harnessv1.RunUpdate_Receipt{Receipt: r}}); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
