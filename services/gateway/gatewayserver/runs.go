package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

const (
	// followPause is the wait before the runs are followed again after a failure.
	followPause = time.Second
	// batch is how many runs a watcher of runs is told of at a time: as long the
	// index is held.
	batch = 256
)

// runs is the index of all runs, shared by all calls, and those who watch it.
type runs struct {
	mu       sync.RWMutex
	index    gateway.Index
	complete bool
	// broken is why the runs are not being followed.
	broken   error
	watchers map[*lookout]struct{}
}

// lookout is a watcher of runs. Its watch changes under runs.mu: under the read
// lock by its own stream alone.
type lookout struct {
	watch *gateway.RunsWatch
	// wake has a token when there may be something to tell.
	wake chan struct{}
	// lost is closed when the runs were not followed for too long.
	lost chan struct{}
}

func (r *runs) apply(e runlog.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change, changed := r.index.Apply(e)
	if !changed {
		return
	}
	for w := range r.watchers {
		if w.watch.Change(change) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// heard notes a record that came on another way than by following the runs, so
// that what one client was shown of a run is not ahead of what another is told.
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

func (r *runs) set(complete bool, broken error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete, r.broken = complete, broken
}

func (r *runs) ready() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.complete:
		return nil
	case r.broken != nil:
		return because(r.broken, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"the list of runs cannot be made: the log cannot be reached; try again")
	}
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
		"the list of runs is still being made; try again in a moment")
}

// join adds a watcher of runs; leave takes it out.
func (r *runs) join(w *lookout) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = map[*lookout]struct{}{}
	}
	r.watchers[w] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}
}

// next is what a watcher of runs is to be told next.
func (r *runs) next(w *lookout) gateway.Told {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return w.watch.Next(&r.index, batch)
}

// lose ends all watches of runs: nobody knows what they miss.
func (r *runs) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.watchers {
		close(w.lost)
		delete(r.watchers, w)
	}
}

// follow keeps the index up to date until ctx ends. What changed while it was
// not followed comes when it is followed anew, to watchers too: the index then
// gets the newest steps of all runs, and takes in those that it does not have.
func (s *Server) follow(ctx context.Context) {
	var since time.Time // when the runs ceased to be followed
	for {
		err := s.log.Runs(ctx, func() {
			since = time.Time{}
			s.runs.set(true, nil)
		}, s.runs.apply)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the log ended the list of runs")
		}
		s.runs.set(false, err)
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

// WatchRuns lists runs and then tells of each that changes how it stands.
func (s *Server) WatchRuns(r *harnessv1.WatchRunsRequest, stream grpc.ServerStreamingServer[harnessv1.WatchRunsResponse]) error {
	watch, err := gateway.NewRunsWatch(r)
	if err != nil {
		return err
	}
	if err := s.runs.ready(); err != nil {
		return err
	}
	w := &lookout{watch: watch, wake: make(chan struct{}, 1), lost: make(chan struct{})}
	defer s.runs.join(w)()
	for {
		told := s.runs.next(w)
		for _, run := range told.Runs {
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
		select {
		case <-w.wake:
		case <-w.lost:
			return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
				fmt.Sprintf("the runs could not be followed for %v: the log cannot be reached; watch again", s.patience))
		case <-s.closing:
			return errClosing()
		case <-stream.Context().Done():
			return context.Cause(stream.Context())
		}
	}
}
