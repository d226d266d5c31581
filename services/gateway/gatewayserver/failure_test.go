package gatewayserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// away is a log that cannot be read.
type away struct {
	runlog.Log
	err error
}

func (l away) View(context.Context, runlog.Run, uint64) (runlog.View, error) {
	return runlog.View{}, l.err
}

func TestLogUnavailable(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   codes.Code
		reason string
	}{
		{runlog.ErrUnavailable, codes.Unavailable, "LOG_UNAVAILABLE"},
		{context.DeadlineExceeded, codes.Unavailable, "LOG_UNAVAILABLE"},
		{runlog.ErrSchemaTooNew, codes.FailedPrecondition, "SCHEMA_TOO_NEW"},
		{runlog.ErrTooLarge, codes.ResourceExhausted, "TOO_LARGE"},
		{errors.New("disk on fire"), codes.Internal, ""},
	} {
		b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = away{shared, c.err} })
		_, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: "r1"})
		b.refused(err, c.code, c.reason)
		if strings.Contains(err.Error(), "disk") {
			t.Errorf("the error has the internal cause: %v", err)
		}
		_, err = b.sendMessage("r1", "m1", "hello")
		b.refused(err, c.code, c.reason)
		_, err = b.watched(&harnessv1.WatchRunRequest{RunId: "r1"})
		b.refused(err, c.code, c.reason)
	}
}

// stallingLog is a log that can be read and stores nothing.
type stallingLog struct{ runlog.Log }

func (stallingLog) why() error {
	return fmt.Errorf("write: %w: %w", runlog.ErrUnavailable, &runlog.Stall{Text: "nothing is stored: make room"})
}

func (l stallingLog) Append(context.Context, *harnessv1.Record) (uint64, error) { return 0, l.why() }

func (l stallingLog) AppendInbox(context.Context, runlog.Run, *harnessv1.InboxItem, uint64) (uint64, bool, error) {
	return 0, false, l.why()
}

// TestLogStoresNothing checks that a client receives why its request cannot be stored.
func TestLogStoresNothing(t *testing.T) {
	b := newBed(t)
	run := b.started("r1").run
	namespace := b.namespace
	b = newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = stallingLog{shared} })
	b.namespace = namespace
	_, err := b.sendMessage(run.ID, "m1", "hello")
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	if text := "nothing is stored: make room; send the same request again"; !strings.Contains(err.Error(), text) {
		t.Errorf("%v lacks %q", err, text)
	}
	// Its replicas may not answer reads either.
	b = newBed(t, func(cfg *gatewayserver.Config) {
		cfg.Log, cfg.Stalled = away{shared, runlog.ErrUnavailable}, stallingLog{}.why
	})
	b.namespace = namespace
	_, err = b.watched(&harnessv1.WatchRunRequest{RunId: run.ID})
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	if text := "nothing is stored: make room; attach again"; !strings.Contains(err.Error(), text) {
		t.Errorf("%v lacks %q", err, text)
	}
}

// A record of a newer schema is refused as newer, not as damaged.
func TestNewerSchema(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	_, err := b.log.Append(b.ctx, &harnessv1.Record{
		Namespace: h.run.Namespace, RunId: h.run.ID, Version: 2, PrevSequence: h.sequence, Schema: runlog.Schema + 1,
		Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: runlog.End, Snapshot: h.snapshot}},
	})
	b.must(err)
	fresh, err := nats.Open(b.ctx, jetstream.Config{}, jetstream.Layout{}) // has nothing in memory
	b.must(err)
	defer fresh.Close()
	run, namespace := h.run.ID, b.namespace
	t.Run("refused", func(t *testing.T) {
		b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = fresh })
		b.namespace = namespace
		_, err = b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: namespace, RunId: run})
		b.refused(err, codes.FailedPrecondition, "SCHEMA_TOO_NEW")
		_, err = b.watched(&harnessv1.WatchRunRequest{RunId: run})
		b.refused(err, codes.FailedPrecondition, "SCHEMA_TOO_NEW")
		_, err = b.sendMessage(run, "m1", "hello")
		b.refused(err, codes.FailedPrecondition, "SCHEMA_TOO_NEW")
		_, err = b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: namespace})
		b.must(err)
	})
}

// broken is a log whose runs cannot be followed at first.
type broken struct {
	runlog.Log
	tries *atomic.Int64
}

func (l broken) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	if l.tries.Add(1) == 1 {
		return runlog.ErrUnavailable
	}
	return l.Log.Runs(ctx, caughtUp, handle)
}

func TestReady(t *testing.T) {
	var tries atomic.Int64
	s := gatewayserver.New(gatewayserver.Config{Log: broken{shared, &tries}})
	if s.Ready() == nil {
		t.Fatal("ready before it was started")
	}
	if _, err := s.ListRuns(context.Background(), &harnessv1.ListRunsRequest{}); err == nil {
		t.Fatal("lists runs before it knows them")
	}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = broken{shared, &tries} }) // waits until it is ready
	if tries.Load() != 2 {
		t.Fatalf("%d tries", tries.Load())
	}
	b.started("r1")
	s.Close()
	s.Close()
	s.Start(b.ctx) // too late: starts nothing
	if s.Ready() == nil {
		t.Fatal("ready after it was closed")
	}
}
