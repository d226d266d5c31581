package gatewayserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// runsWatch is a WatchRuns stream.
type runsWatch struct {
	b      *bed
	stream harnessv1.GatewayService_WatchRunsClient
}

func (b *bed) watchRuns(r *harnessv1.WatchRunsRequest) runsWatch {
	b.t.Helper()
	if r.GetNamespace() == "" {
		r.Namespace = b.namespace
	}
	stream, err := b.client.WatchRuns(b.ctx, r)
	b.must(err)
	return runsWatch{b, stream}
}

func (l runsWatch) recv() (string, error) {
	resp, err := l.stream.Recv()
	if err != nil {
		return "", err
	}
	if resp.GetCaughtUp() != nil {
		return "caught up", nil
	}
	r := resp.GetRun()
	if r.GetReason().GetKind() == "deleted" {
		return fmt.Sprintf("%s deleted %d", r.GetRunId(), r.GetVersion()), nil
	}
	return fmt.Sprintf("%s %s %d", r.GetRunId(), r.GetStatus().String()[len("RUN_STATUS_"):], r.GetVersion()), nil
}

func (l runsWatch) expect(want ...string) {
	l.b.t.Helper()
	for i, w := range want {
		if got, err := l.recv(); err != nil || got != w {
			l.b.t.Fatalf("%d: got %q, %v; want %q", i, got, err, w)
		}
	}
}

func TestWatchRuns(t *testing.T) {
	b := newBed(t)
	empty := b.watchRuns(&harnessv1.WatchRunsRequest{})
	empty.expect("caught up")
	r1 := b.started("r1")
	empty.expect("r1 RUNNING 1")
	r2 := b.started("r2")
	r2.park("interrupted")
	empty.expect("r2 RUNNING 1", "r2 PARKED 2")

	all := b.watchRuns(&harnessv1.WatchRunsRequest{})
	all.expect("r2 PARKED 2", "r1 RUNNING 1", "caught up")
	runs := b.watchRuns(&harnessv1.WatchRunsRequest{Statuses: []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_RUNNING}})
	runs.expect("r1 RUNNING 1", "caught up")
	news := b.watchRuns(&harnessv1.WatchRunsRequest{ChangesOnly: true})
	news.expect("caught up")

	r1.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	r2.resume()
	all.expect("r1 DONE 2", "r2 RUNNING 3")
	runs.expect("r1 DONE 2", "r2 RUNNING 3")
	news.expect("r1 DONE 2", "r2 RUNNING 3")

	for _, r := range []*harnessv1.WatchRunsRequest{{Namespace: "a b"}, {Namespace: "n", Statuses: []harnessv1.RunStatus{0}}} {
		_, err := b.watchRuns(r).recv()
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	}
	b.server.Close()
	_, err := all.recv()
	b.refused(err, codes.Unavailable, "SHUTTING_DOWN")
}

// A watcher of runs receives at least the version and the status that a watcher of the
// run has received.
func TestWatchRunsKnowsTheNewestVersion(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	w.expect("attached 1")
	h.aTurn(1)
	w.expect("3-0 step_start", "4-0 model_response text 1", "5-0 tool_result")
	h.step("repair", nil, &harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}})
	h.journal(&harnessv1.Journal{}, nil, &harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}})
	w.expect("7-0 executor_error", "8-0 executor_error")
	b.watchRuns(&harnessv1.WatchRunsRequest{}).expect("r1 RUNNING 8", "caught up")
}

// A list of thousands of runs is sent in batches, with what changes meanwhile. A client
// that does not read receives only the newest state of each run.
func TestWatchRunsSlowClient(t *testing.T) {
	b := newBed(t)
	const n, rounds = 2000, 5
	hands := make([]*hand, n)
	var starting sync.WaitGroup
	for k := range 8 {
		starting.Go(func() {
			for i := k; i < n; i += 8 {
				run := runlog.Run{Namespace: b.namespace, ID: fmt.Sprintf("r%d", i)}
				hands[i] = (&hand{b: b, run: run, snapshot: &harnessv1.Snapshot{GoalPreview: strings.Repeat("x", 500), Status: harnessv1.RunStatus_RUN_STATUS_RUNNING}}).step("repair", nil)
			}
		})
	}
	starting.Wait()
	l := b.watchRuns(&harnessv1.WatchRunsRequest{})
	for range rounds {
		for _, h := range hands[:n/10] {
			h.step("repair", nil)
		}
	}
	last := b.started("last").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	newest := map[string]uint64{}
	caughtUp, told := 0, 0
	// States of other runs may follow that of the last one: only those of one run are in order.
	waits := func() bool {
		return newest["last"] != last.version || slices.ContainsFunc(hands, func(h *hand) bool { return newest[h.run.ID] != h.version })
	}
	for waits() {
		resp, err := l.stream.Recv()
		b.must(err)
		if resp.GetCaughtUp() != nil {
			if caughtUp++; len(newest) < n {
				t.Fatalf("caught up after %d runs", len(newest))
			}
			continue
		}
		told++
		r := resp.GetRun()
		if r.GetVersion() <= newest[r.GetRunId()] {
			t.Fatalf("%s: version %d after %d", r.GetRunId(), r.GetVersion(), newest[r.GetRunId()])
		}
		newest[r.GetRunId()] = r.GetVersion()
	}
	if caughtUp != 1 {
		t.Errorf("caught up %d times", caughtUp)
	}
	t.Logf("%d changes of %d runs were sent as %d states", n+rounds*n/10+2, n+1, told)
}

// brokenFeed is a log whose feed of runs can be broken off and kept broken.
type brokenFeed struct {
	runlog.Log
	mu    sync.Mutex
	cut   context.CancelFunc
	away  bool
	tries chan struct{}
}

func (l *brokenFeed) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	select {
	case l.tries <- struct{}{}:
	default:
	}
	l.mu.Lock()
	if l.away {
		l.mu.Unlock()
		return runlog.ErrUnavailable
	}
	followed, cut := context.WithCancel(ctx)
	l.cut = cut
	l.mu.Unlock()
	defer cut()
	if err := l.Log.Runs(followed, caughtUp, handle); ctx.Err() != nil {
		return err
	}
	return runlog.ErrUnavailable
}

func (l *brokenFeed) leave(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	l.cut()
}

// After a break in the feed of runs, a watcher receives the newest state of each run
// that has changed, and no state a second time.
func TestWatchRunsAcrossABreak(t *testing.T) {
	log := &brokenFeed{Log: shared, tries: make(chan struct{}, 1)}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	other := newBed(t) // starts runs that the first gateway knows only from the feed
	other.namespace = b.namespace
	r1, r2 := other.started("r1"), other.started("r2")
	l := b.watchRuns(&harnessv1.WatchRunsRequest{ChangesOnly: true})
	l.expect("caught up")
	b.eventually("it follows the runs", func() bool { return b.listed() == 2 })
	r1.park("interrupted")
	for {
		if got, err := l.recv(); err != nil || got == "r1 PARKED 2" {
			b.must(err)
			break
		}
	}
	<-log.tries
	log.leave(true)
	<-log.tries // it tries in vain
	r1.resume()
	r1.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	r2.park("interrupted")
	other.started("r3")
	log.leave(false)
	r2.resume()
	// The log sends the newest step of each kind, so a run may be sent more than
	// once, but its versions only grow.
	versions := map[string]uint64{"r1": 2, "r2": 1}
	for versions["r1"] != 4 || versions["r2"] != 3 || versions["r3"] != 1 {
		resp, err := l.stream.Recv()
		b.must(err)
		r := resp.GetRun()
		if r.GetVersion() <= versions[r.GetRunId()] {
			t.Fatalf("%v after version %d", r, versions[r.GetRunId()])
		}
		versions[r.GetRunId()] = r.GetVersion()
	}
	r1.resume()
	l.expect("r1 RUNNING 5")
}

func (b *bed) listed() int {
	resp, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace})
	if err != nil {
		return -1
	}
	return len(resp.GetRuns())
}

// If the feed of runs stays broken for too long, their watchers receive an error.
func TestWatchRunsGivesUp(t *testing.T) {
	log := &brokenFeed{Log: shared, tries: make(chan struct{}, 1)}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log, cfg.Patience = log, 10*time.Millisecond })
	l := b.watchRuns(&harnessv1.WatchRunsRequest{})
	l.expect("caught up")
	log.leave(true)
	_, err := l.recv()
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	_, err = b.watchRuns(&harnessv1.WatchRunsRequest{}).recv()
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
}
