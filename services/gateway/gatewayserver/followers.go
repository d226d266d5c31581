package gatewayserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// Pauses between two searches for a child that is not there yet.
const (
	firstSearch   = 20 * time.Millisecond
	longestSearch = 500 * time.Millisecond
)

// news is what a goroutine that follows a log sends to the watch.
type news struct {
	run     string
	opening int
	entry   runlog.Entry
	// caughtUp: the records stored at the start have arrived. missing: the run was not found.
	// gone: it was deleted.
	caughtUp, missing, gone bool
	// err ended the follower.
	err error
}

// followers follow the logs of the open runs of a watch, and receive their deltas. All methods
// are for the goroutine that runs the watch.
type followers struct {
	s      *Server
	w      *watcher
	ctx    context.Context //nolint:containedctx // of the watch
	cancel context.CancelFunc
	group  sync.WaitGroup
	opened map[string]*logFollower
	news   chan news
	deltas chan runDelta
}

type runDelta struct {
	run   string
	delta *harnessv1.Delta
}

// logFollower follows one log.
type logFollower struct {
	opening int
	cancel  context.CancelFunc
	// more allows it to pass on the next record.
	more   chan struct{}
	splice gateway.Splice
	// stop ends the deltas.
	stop func()
}

func (s *Server) newFollowers(ctx context.Context, w *watcher) *followers {
	ctx, cancel := context.WithCancel(ctx)
	return &followers{
		s: s, w: w, ctx: ctx, cancel: cancel, opened: map[string]*logFollower{}, news: make(chan news), deltas: make(chan runDelta, queuedDeltas),
	}
}

// close ends all followers and waits for them.
func (f *followers) close() {
	f.cancel()
	for _, l := range f.opened {
		l.stop()
	}
	f.group.Wait()
}

// open follows the runs that are open and no others.
func (f *followers) open() error {
	open := f.w.stream.Open()
	if len(open) == 1 && len(f.opened) == 1 {
		return nil
	}
	left := map[string]bool{}
	for _, o := range open {
		left[o.Run] = true
		l := f.opened[o.Run]
		if l != nil && l.opening == o.Opening {
			continue
		}
		f.end(o.Run)
		if err := f.start(o); err != nil {
			return err
		}
	}
	for run := range f.opened {
		if !left[run] {
			f.end(run)
		}
	}
	return nil
}

func (f *followers) end(run string) {
	if l := f.opened[run]; l != nil {
		l.stop()
		l.cancel()
		delete(f.opened, run)
	}
}

func (f *followers) start(o gateway.OpenRun) error {
	run := runlog.Run{Namespace: f.w.run.Namespace, ID: o.Run}
	ctx, cancel := context.WithCancel(f.ctx)
	l := &logFollower{opening: o.Opening, cancel: cancel, more: make(chan struct{}, 1), splice: gateway.NewSplice(o.At.After()), stop: func() {}}
	if f.w.text {
		stop, err := f.s.log.SubscribeDeltas(run, func(d *harnessv1.Delta) {
			select {
			case f.deltas <- runDelta{o.Run, d}:
			default: // the client is slow
			}
		})
		if err != nil {
			cancel()
			return err
		}
		l.stop = stop
	}
	f.group.Add(1)
	follow := func() {
		defer f.group.Done()
		f.follow(ctx, run, o, l)
	}
	if !f.s.spawn(follow) {
		f.group.Done()
		cancel()
		l.stop()
		return errClosing()
	}
	f.opened[o.Run] = l
	return nil
}

// follow passes the records of a run to the watch, each once the one before it was
// delivered.
func (f *followers) follow(ctx context.Context, run runlog.Run, o gateway.OpenRun, l *logFollower) {
	tell := func(n news) error {
		n.run, n.opening = o.Run, o.Opening
		select {
		case f.news <- n:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	hints, leave := f.s.runs.hint(run)
	defer leave()
	watcher := runlog.Watcher{
		After: o.After, Patience: f.s.patience, Hints: hints, Known: func() uint64 { return f.s.runs.seen(run) },
		Handle: func(e runlog.Entry) error {
			if err := tell(news{entry: e}); err != nil {
				return err
			}
			select {
			case <-l.more:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
		CaughtUp: func() error { return tell(news{caughtUp: true}) },
	}
	root := run == f.w.run
	if root {
		watcher.Contains = f.w.known
	} else if !f.search(ctx, run, tell) {
		return
	}
	err := watcher.Watch(ctx, f.s.log, run)
	if !root && errors.Is(err, runlog.ErrNotFound) {
		_ = tell(news{gone: true})
		return
	}
	_ = tell(news{err: err})
}

// search waits until a child is there. found is false if it never will be, or ctx has ended.
func (f *followers) search(ctx context.Context, run runlog.Run, tell func(news) error) (found bool) {
	for pause := firstSearch; ; pause = min(2*pause, longestSearch) {
		_, err := f.s.view(ctx, run)
		var known *fault.Error
		switch {
		case err == nil:
			return true
		case errors.As(err, &known):
			_ = tell(news{gone: true}) // it was deleted
			return false
		case errors.Is(err, runlog.ErrNotFound):
			if tell(news{missing: true}) != nil {
				return false
			}
		case !errors.Is(err, runlog.ErrUnavailable) && ctx.Err() == nil:
			_ = tell(news{err: err})
			return false
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// take passes news to the stream, unless they are of a run that was closed since.
func (f *followers) take(n news) error {
	l := f.opened[n.run]
	switch {
	case l == nil || l.opening != n.opening:
		return nil
	case n.err != nil:
		return &followError{n.err}
	case n.caughtUp:
		f.w.stream.CaughtUp(n.run)
	case n.missing:
		f.w.stream.Missing(n.run)
	case n.gone:
		f.w.stream.Gone(n.run)
	default:
		return f.w.stream.Arrive(n.entry)
	}
	return nil
}

// followError is the end of a follower.
type followError struct{ err error }

func (e *followError) Error() string { return "the log is no longer followed: " + e.err.Error() }
func (e *followError) Unwrap() error { return e.err }

// delivered lets the follower of a record pass on the next one, and returns the deltas that
// waited for the record.
func (f *followers) delivered(d gateway.Delivery) []*harnessv1.Delta {
	l := f.opened[d.Run]
	if l == nil {
		return nil
	}
	l.more <- struct{}{}
	if d.Old {
		return nil
	}
	return f.named(d.Run, l.splice.Record(*d.Record))
}

// splice returns what of a delta is to be sent now.
func (f *followers) splice(d runDelta) []*harnessv1.Delta {
	l := f.opened[d.run]
	if l == nil {
		return nil
	}
	if fits := l.splice.Delta(d.delta); fits != nil {
		return f.named(d.run, []*harnessv1.Delta{fits})
	}
	return nil
}

// named puts the run into deltas of a child.
func (f *followers) named(run string, deltas []*harnessv1.Delta) []*harnessv1.Delta {
	if run == f.w.run.ID {
		return deltas
	}
	for i, d := range deltas {
		deltas[i] = proto.CloneOf(d)
		deltas[i].RunId = run
	}
	return deltas
}
