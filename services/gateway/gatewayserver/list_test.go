package gatewayserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// waiting returns the pending calls as RUN CALL, read in pages of size, and the number
// of pages.
func (b *bed) waiting(size uint32) (calls []string, pages int) {
	b.t.Helper()
	request := &harnessv1.ListPendingRequest{Namespace: b.namespace, PageSize: size}
	for {
		page, err := b.client.ListPending(b.ctx, request)
		b.must(err)
		pages++
		runs := map[string]bool{}
		for _, p := range page.GetPending() {
			calls = append(calls, p.GetRunId()+" "+p.GetCall().GetCallId())
			runs[p.GetRunId()] = true
		}
		if size > 0 && len(runs) > int(size) {
			b.t.Fatalf("%d runs on a page of %d", len(runs), size)
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return calls, pages
		}
	}
}

func TestListPendingPages(t *testing.T) {
	b := newBed(t)
	var want []string
	for i := range 5 {
		id := fmt.Sprintf("r%d", i)
		h := b.started(id)
		if i != 2 {
			h.park("approval", approvalCall("c"), approvalCall("d"))
			want = append(want, id+" c", id+" d")
		} else {
			h.park("interrupted")
		}
	}
	b.eventually("all parks are listed", func() bool {
		calls, _ := b.waiting(0)
		return slices.Equal(calls, want)
	})
	for size, pages := range map[uint32]int{1: 4, 2: 2, 3: 2, 4: 1, 1000: 1} {
		if calls, got := b.waiting(size); got != pages || !slices.Equal(calls, want) {
			t.Errorf("by %d: %v on %d pages, want %v on %d", size, calls, got, want, pages)
		}
	}
	for _, r := range []*harnessv1.ListPendingRequest{{PageToken: "x"}, {PageSize: 1001}, {Namespace: "a b"}} {
		_, err := b.client.ListPending(b.ctx, r)
		b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
	}
}

// A page of large calls has fewer calls, so that it fits into a message.
func TestListPendingOfLargeCalls(t *testing.T) {
	b := newBed(t)
	const runs, size = 50, 100_000
	for i := range runs {
		call := approvalCall("c")
		call.Arguments = content.Inline(strings.Repeat("x", size))
		b.started(fmt.Sprintf("r%02d", i)).park("approval", call)
	}
	b.eventually("all are listed, on several pages", func() bool {
		calls, pages := b.waiting(1000) // a client takes in 4 MiB
		return len(calls) == runs && pages >= runs*size/(3<<20)
	})
}

// readCounter is a log that counts its calls of Read.
type readCounter struct {
	runlog.Log
	reads atomic.Int64
}

func (l *readCounter) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	l.reads.Add(1)
	return l.Log.Read(ctx, run, sequence)
}

// A page costs one exact read for each of its runs, however many runs exist.
func TestAPageReadsOnlyItsRuns(t *testing.T) {
	log := &readCounter{Log: shared}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	for i := range 20 {
		b.started(fmt.Sprintf("r%02d", i)).park("approval", approvalCall("c"))
	}
	b.eventually("all parks are listed", func() bool {
		calls, _ := b.waiting(0)
		return len(calls) == 20
	})
	log.reads.Store(0)
	page, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace, PageSize: 3})
	b.must(err)
	if got := log.reads.Load(); len(page.GetRuns()) != 3 || got != 3 {
		t.Errorf("%d reads for %d runs", got, len(page.GetRuns()))
	}
	pending, err := b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace, PageSize: 4})
	b.must(err)
	if got := log.reads.Load() - 3; len(pending.GetPending()) != 4 || got != 4 {
		t.Errorf("%d reads for the calls of %d runs", got, len(pending.GetPending()))
	}
}

// deletion appends the step that deletes a run.
func (h *hand) deletion() *hand {
	return h.step(runlog.End, func(s *harnessv1.Step) {
		s.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_CANCELLED
		s.Snapshot.ExpireTime = timestamppb.Now()
	})
}

// A deleted run is in no list, not even of a gateway that starts later, and clients
// that watch runs receive the deletion.
func TestDeletedRunsAreNotListed(t *testing.T) {
	b := newBed(t)
	r1, r2 := b.started("r1"), b.started("r2").park("approval", approvalCall("c"))
	all := b.watchRuns(&harnessv1.WatchRunsRequest{})
	b.eventually("the park is listed", func() bool {
		calls, _ := b.waiting(0)
		return len(calls) == 1
	})
	parked := b.watchRuns(&harnessv1.WatchRunsRequest{Statuses: []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_PARKED}})
	parked.expect("r2 PARKED 2", "caught up")
	r2.deletion()
	parked.expect("r2 deleted 3")
	r1.end(harnessv1.RunStatus_RUN_STATUS_DONE).deletion()
	for {
		got, err := all.recv()
		b.must(err)
		if got == "r1 deleted 3" {
			break
		}
	}
	for range 2 {
		if n := b.listed(); n != 0 {
			t.Fatalf("%d runs are listed", n)
		}
		if calls, _ := b.waiting(0); len(calls) != 0 {
			t.Fatalf("%v wait", calls)
		}
		fresh := b.watchRuns(&harnessv1.WatchRunsRequest{})
		fresh.expect("caught up")
		b.restart()
		b.client = b.dial()
	}
}

// tight returns a gateway on a separate server, with a log that keeps next to
// nothing in memory, and a way to delete the stored records.
func tight(t *testing.T, decorate func(runlog.Log) runlog.Log) (b *bed, del func(sequences ...uint64)) {
	t.Helper()
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	log, err := server.Open(t.Context(), jetstream.Config{CacheBytes: 1}, jetstream.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	b = newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = decorate(log) })
	b.log = log
	nc, err := natsgo.Connect(server.URL())
	b.must(err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	b.must(err)
	return b, func(sequences ...uint64) {
		t.Helper()
		runs, err := js.Stream(b.ctx, "RUNS_0")
		b.must(err)
		for _, sequence := range sequences {
			b.must(runs.DeleteMsg(b.ctx, sequence))
		}
	}
}

// A run that is erased between the read of the index and the read of its step is left
// out of the page and of later lists.
func TestARunThatIsErasedWhileItIsListed(t *testing.T) {
	b, del := tight(t, func(log runlog.Log) runlog.Log { return log })
	old := b.started("r1")
	b.started("r2")
	b.started("r3")
	l := b.watchRuns(&harnessv1.WatchRunsRequest{ChangesOnly: true})
	l.expect("caught up")
	del(old.sequence)
	page, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace})
	b.must(err)
	if runs := page.GetRuns(); len(runs) != 2 || runs[0].GetRunId() != "r3" || runs[1].GetRunId() != "r2" {
		t.Fatalf("listed are %v", runs)
	}
	l.expect("r1 deleted 1")
	again, err := b.client.StartRun(b.ctx, b.start("r1", "another"))
	b.must(err)
	if again.GetExisted() {
		t.Fatal("the new run is taken for the old one")
	}
	l.expect("r1 RUNNING 1")
}

// Runs that are erased during a break in the feed leave the list after it.
func TestRunsThatAreErasedDuringABreak(t *testing.T) {
	var log *brokenFeed
	b, del := tight(t, func(l runlog.Log) runlog.Log {
		log = &brokenFeed{Log: l, tries: make(chan struct{}, 1)}
		return log
	})
	gone := b.started("r1")
	b.started("r2")
	l := b.watchRuns(&harnessv1.WatchRunsRequest{})
	l.expect("r2 RUNNING 1", "r1 RUNNING 1", "caught up")
	<-log.tries
	log.leave(true)
	<-log.tries // it tries in vain
	del(gone.sequence)
	log.leave(false)
	l.expect("r1 deleted 1")
	if n := b.listed(); n != 1 {
		t.Fatalf("%d runs are listed", n)
	}
	if _, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"}); err != nil {
		b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	} else {
		t.Fatal("an erased run is found")
	}
}

// unread is a log whose Read by sequence can be made to fail.
type unread struct {
	runlog.Log
	away    atomic.Bool
	refused chan struct{} // has room for one
}

func (l *unread) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	if l.away.Load() {
		select {
		case l.refused <- struct{}{}:
		default:
		}
		return runlog.Entry{}, runlog.ErrUnavailable
	}
	return l.Log.Read(ctx, run, sequence)
}

// While the log is unavailable, a list fails and a watch of runs waits up to
// Config.Patience.
func TestListsWhileTheLogIsUnavailable(t *testing.T) {
	log := &unread{Log: shared, refused: make(chan struct{}, 1)}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	h := b.started("r1").park("approval", approvalCall("c"))
	b.eventually("the park is listed", func() bool {
		calls, _ := b.waiting(0)
		return len(calls) == 1
	})
	l := b.watchRuns(&harnessv1.WatchRunsRequest{})
	l.expect("r1 PARKED 2", "caught up")
	log.away.Store(true)
	_, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace})
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	_, err = b.client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: b.namespace})
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	select {
	case <-log.refused: // of the lists
	default:
	}
	h.resume()
	<-log.refused
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	<-log.refused
	log.away.Store(false)
	l.expect("r1 RUNNING 3", "r1 DONE 4")

	log.away.Store(true)
	impatient := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log, cfg.Patience = log, 50*time.Millisecond })
	impatient.namespace = b.namespace
	_, err = impatient.watchRuns(&harnessv1.WatchRunsRequest{}).recv()
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
}
