package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

const (
	// followPause is the wait before following the runs again after a failure.
	followPause = time.Second
	// batch is how many runs a watcher of runs receives at a time: it bounds how long
	// the index is locked, and how many steps are read before the first is sent.
	batch = 256
	// many is the size of a list of runs from which on the garbage of building it is
	// returned to the system immediately.
	many = 1000
)

// runs is the index of all runs, shared by all calls, and its watchers.
type runs struct {
	mu    sync.RWMutex
	index gateway.Index
	// admissions are the requests that index does not show yet.
	admissions gateway.Admissions
	complete   bool
	// broken is why the runs are not being followed.
	broken   error
	watchers map[*runsWatcher]struct{}
	// hints receive a value for each step of a run that the followed runs bring.
	hints map[runlog.Run]map[chan struct{}]struct{}
}

// runsWatcher is a watcher of runs. Its watch changes under runs.mu: under the read lock
// only by its own stream.
type runsWatcher struct {
	watch *gateway.RunsWatch
	// wake has a token when there may be something to send.
	wake chan struct{}
	// lost is closed when the runs were not followed for too long.
	lost chan struct{}
}

func (r *runs) apply(e runlog.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change, changed := r.index.Apply(e); changed {
		r.publish(change)
	}
	for c := range r.hints[e.Run] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// hint returns a channel that has a value after a step of a run was applied, until leave.
func (r *runs) hint(run runlog.Run) (c chan struct{}, leave func()) {
	c = make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hints == nil {
		r.hints = map[runlog.Run]map[chan struct{}]struct{}{}
	}
	if r.hints[run] == nil {
		r.hints[run] = map[chan struct{}]struct{}{}
	}
	r.hints[run][c] = struct{}{}
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.hints[run], c)
		if len(r.hints[run]) == 0 {
			delete(r.hints, run)
		}
	}
}

// publish passes changes to the watchers. The caller has locked r.mu.
func (r *runs) publish(changes ...gateway.Change) {
	for w := range r.watchers {
		for _, c := range changes {
			if !w.watch.Change(c) {
				continue
			}
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// gone records that the step of a row is no longer stored.
func (r *runs) gone(row gateway.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change, changed := r.index.Gone(row.Run, row.Sequence); changed {
		r.publish(change)
	}
}

// relist starts to read the runs of the log again; listed records that all that were
// stored then have been read.
func (r *runs) relist() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.Relist()
}

func (r *runs) listed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish(r.index.Listed()...)
	r.complete, r.broken = true, nil
}

// heard applies a record that arrived by another path than the followed runs, so that a
// watcher of runs sees at least the versions that a watcher of one run has seen.
func (r *runs) heard(e runlog.Entry) {
	r.mu.RLock()
	lists := gateway.Lists(e)
	news := lists && r.index.Lacks(e) || !lists && r.index.News(e)
	r.mu.RUnlock()
	switch {
	case !news:
	case lists:
		r.apply(e)
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.index.Advance(e)
	}
}

func (r *runs) saw(run runlog.Run, sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.Saw(run, sequence)
}

func (r *runs) seen(run runlog.Run) uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.index.Seen(run)
}

func (r *runs) broke(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete, r.broken = false, err
	if errors.Is(err, runlog.ErrLost) {
		r.index.Lost()
	}
}

func (r *runs) ready() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.complete:
		return nil
	case r.broken != nil:
		return because(r.broken, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"the list of runs is unavailable: the log cannot be reached; try again")
	}
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
		"the list of runs is not complete yet; try again")
}

// join adds a watcher of runs; leave removes it.
func (r *runs) join(w *runsWatcher) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = map[*runsWatcher]struct{}{}
	}
	r.watchers[w] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}
}

// next returns what a watcher of runs receives next.
func (r *runs) next(w *runsWatcher) gateway.Batch {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return w.watch.Next(&r.index, batch)
}

// lose ends all watches of runs, because changes may have been missed.
func (r *runs) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.watchers {
		close(w.lost)
		delete(r.watchers, w)
	}
}

// follow keeps the index up to date until ctx ends. Changes during an interruption
// arrive when it follows again: the index then receives the newest steps of all runs and
// passes on what it does not have.
func (s *Server) follow(ctx context.Context) {
	var since time.Time // since when the runs are not followed
	for {
		steps := 0
		s.runs.relist()
		err := s.log.Runs(ctx, func() {
			since = time.Time{}
			s.runs.listed()
			if steps >= many {
				// The records decoded for the list are garbage now. An idle process
				// would keep the memory for minutes.
				s.spawn(debug.FreeOSMemory)
			}
		}, func(e runlog.Entry) {
			steps++
			s.runs.apply(e)
		})
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the log ended the list of runs")
		}
		s.runs.broke(err)
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= s.patience {
			s.runs.lose()
		}
		s.logger.Warn("runs are not being followed; trying again", "error", err, "wait", followPause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
	}
}

// WatchRuns lists runs and then sends each run that changes.
func (s *Server) WatchRuns(r *harnessv1.WatchRunsRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunsResponse]) error {
	watch, err := gateway.NewRunsWatch(r, access.Namespaces(stream.Context()))
	if err != nil {
		return err
	}
	if err := s.runs.ready(); err != nil {
		return err
	}
	w := &runsWatcher{watch: watch, wake: make(chan struct{}, 1), lost: make(chan struct{})}
	defer s.runs.join(w)()
	for {
		told := s.runs.next(w)
		runs, err := s.shown(stream.Context(), w, told.Rows)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := stream.Send(&harnessv1.WatchRunsResponse{Update: &harnessv1.WatchRunsResponse_Run{Run: run}}); err != nil {
				return err
			}
		}
		if told.CaughtUp {
			if err := stream.Send(&harnessv1.WatchRunsResponse{Update: &harnessv1.WatchRunsResponse_CaughtUp{CaughtUp: &harnessv1.CaughtUp{}}}); err != nil {
				return err
			}
		}
		if told.More {
			continue
		}
		if err := s.attend(stream.Context(), w, w.wake, nil); err != nil {
			return err
		}
	}
}

// shown reads the runs to send to a watcher. It waits for a log that is temporarily
// unavailable.
func (s *Server) shown(ctx context.Context, w *runsWatcher, rows []gateway.Row) ([]*harnessv1.Run, error) {
	var away runlog.Away
	for {
		runs, err := s.readRuns(ctx, rows)
		if err == nil || !errors.Is(err, runlog.ErrUnavailable) || ctx.Err() != nil {
			return runs, err
		}
		pause, ok := away.Again(time.Now(), s.patience)
		if !ok {
			return nil, s.lostRuns()
		}
		if err := s.attend(ctx, w, nil, time.After(pause)); err != nil {
			return nil, err
		}
	}
}

// attend waits for a token in wake, for due, or for the end of the watch.
func (s *Server) attend(ctx context.Context, w *runsWatcher, wake <-chan struct{}, due <-chan time.Time) error {
	select {
	case <-wake:
		return nil
	case <-due:
		return nil
	case <-w.lost:
		return s.lostRuns()
	case <-s.closing:
		return errClosing()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) lostRuns() error {
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
		fmt.Sprintf("the runs could not be followed for %v: %s; watch again", s.patience, s.whyUnavailable(nil)))
}
