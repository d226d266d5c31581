package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestRestart checks that everything outlives its server: records, inputs, blobs,
// timers, and unacknowledged deliveries.
func TestRestart(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	session := func(do func(l *Log)) {
		t.Helper()
		e, err := StartEmbedded(EmbeddedConfig{Dir: dir, SyncAlways: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Stop()
		l, err := e.Open(ctx, Config{}, Layout{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		do(l)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := runlog.Run{Namespace: "default", ID: "r"}
	records := map[uint64]*harnessv1.Record{}
	var newest, item uint64
	data := bytes.Repeat([]byte("x"), 2*chunkSize+1)
	fired := time.Now().Add(time.Second)
	session(func(l *Log) {
		rec := first("r")
		for v := range uint64(20) {
			sequence, err := l.Append(ctx, rec)
			must(err)
			records[sequence], newest = rec, sequence
			rec = after(rec, sequence, v+2)
		}
		var err error
		item, _, err = l.AppendInbox(ctx, run, &harnessv1.InboxItem{Id: "i"}, 0)
		must(err)
		_, err = l.PutBlob(ctx, run, data)
		must(err)
		must(l.SetTimer(ctx, run, 7, fired))
		// Half of the steps are acknowledged, all of them are delivered.
		deliveries(t, l, 20, func(d runlog.Delivery) {
			if d.Entry().Header.Version%2 == 0 {
				must(d.Ack())
			}
		})
		must(l.Flush(ctx))
	})
	session(func(l *Log) {
		view, err := l.View(ctx, run, newest)
		must(err)
		entries, err := runlog.Back(ctx, l, view.Newest, 0)
		must(err)
		if len(entries) != len(records) || view.InboxSequence != item {
			t.Fatalf("%d records, inbox at %d", len(entries), view.InboxSequence)
		}
		for _, e := range entries {
			if !proto.Equal(e.Record, records[e.Sequence]) {
				t.Errorf("%d holds %v", e.Sequence, e.Record)
			}
		}
		if items, err := l.Inbox(ctx, run, 0, item); err != nil || len(items) != 1 {
			t.Errorf("%d inputs, %v", len(items), err)
		}
		if got, err := l.Blob(ctx, run, content.Digest(data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		versions := map[uint64]bool{}
		deliveries(t, l, 10, func(d runlog.Delivery) {
			versions[d.Entry().Header.Version] = true
			must(d.Ack())
		})
		for v := uint64(1); v <= 20; v++ {
			if versions[v] != (v%2 == 1) {
				t.Errorf("version %d was delivered again: %v", v, versions[v])
			}
		}
		timers, cancel := context.WithCancel(ctx)
		err = l.ConsumeTimers(timers, func(_ context.Context, r runlog.Run, version uint64) error {
			if r != run || version != 7 {
				t.Errorf("timer %d of %v", version, r)
			}
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// The fences continue from the stored records.
		last := records[newest]
		if _, err := l.Append(ctx, after(records[newest-1], newest-1, 99)); !errors.Is(err, runlog.ErrFenced) {
			t.Errorf("after a record that is not the newest: %v", err)
		}
		if _, err := l.Append(ctx, after(last, newest, 100)); err != nil {
			t.Error(err)
		}
	})
}

// deliveries consumes n different steps to turn, one at a time.
func deliveries(t *testing.T, l *Log, n int, handle func(runlog.Delivery)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := map[uint64]bool{}
	err := l.Consume(ctx, "turn", 1, func(_ context.Context, d runlog.Delivery) {
		if seen[d.Entry().Sequence] || len(seen) == n {
			return
		}
		seen[d.Entry().Sequence] = true
		handle(d)
		if len(seen) == n {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestReconnect checks that a log continues after a restart of its server, for
// consumers and writers.
func TestReconnect(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	e, err := StartEmbedded(EmbeddedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{server: e.server}
	if err := Provision(ctx, Config{InProcess: n}, Layout{}); err != nil {
		t.Fatal(err)
	}
	l, err := Open(ctx, Config{InProcess: n})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	versions := make(chan uint64, 10)
	consuming, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- l.Consume(consuming, "turn", 4, func(_ context.Context, d runlog.Delivery) {
			_ = d.Ack()
			versions <- d.Entry().Header.Version
		})
	}()
	rec := first("r")
	sequence, err := l.Append(ctx, rec)
	if err != nil {
		t.Fatal(err)
	}
	if v := <-versions; v != 1 {
		t.Fatalf("version %d", v)
	}
	e.Stop()
	if e, err = StartEmbedded(EmbeddedConfig{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	n.moveTo(e)
	rec = after(rec, sequence, 2)
	for {
		if _, err = l.Append(ctx, rec); !errors.Is(err, runlog.ErrUnavailable) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(0); v != 2; { // the first acknowledgement may have been lost
		v = <-versions
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestConsumersThatEnd checks that a worker whose consumer is deleted, or whose
// connection ends permanently, gets an error instead of waiting forever.
func TestConsumersThatEnd(t *testing.T) {
	t.Parallel()
	consumers := map[string]func(context.Context, *Log) error{
		"Consume": func(ctx context.Context, l *Log) error {
			return l.Consume(ctx, "turn", 1, func(context.Context, runlog.Delivery) {})
		},
		"ConsumeWakes": func(ctx context.Context, l *Log) error {
			return l.ConsumeWakes(ctx, 1, func(context.Context, runlog.Delivery) {})
		},
		"ConsumeTimers": func(ctx context.Context, l *Log) error {
			return l.ConsumeTimers(ctx, func(context.Context, runlog.Run, uint64) error { return nil })
		},
		"Runs": func(ctx context.Context, l *Log) error { return l.Runs(ctx, nil, func(runlog.Entry) {}) },
	}
	durable := map[string][2]string{
		"Consume": {runsStream(0), "exec-turn"}, "ConsumeWakes": {runsStream(0), wakeConsumer}, "ConsumeTimers": {timersStream(0), timerConsumer},
	}
	for name, consume := range consumers {
		for _, end := range []string{"deleted", "closed"} {
			if end == "deleted" && name == "Runs" {
				continue // re-creates its consumer
			}
			t.Run(fmt.Sprint(name, "/", end), func(t *testing.T) {
				t.Parallel()
				e := start(t, EmbeddedConfig{})
				l := open(t, e, Config{}, Layout{})
				ended := make(chan error, 1)
				go func() { ended <- consume(t.Context(), l) }()
				if end == "deleted" {
					at := durable[name]
					js := admin(t, e)
					awaitPull(t, func() bool {
						c, err := js.Consumer(t.Context(), at[0], at[1])
						return err == nil && c.CachedInfo().NumWaiting > 0
					})
					if err := js.DeleteConsumer(t.Context(), at[0], at[1]); err != nil {
						t.Fatal(err)
					}
				} else {
					awaitPull(t, func() bool { return l.nc.NumSubscriptions() > 2 })
					l.Close()
				}
				if err := <-ended; !errors.Is(err, runlog.ErrUnavailable) {
					t.Fatalf("got %v", err)
				}
			})
		}
	}
}

// awaitPull waits until a consumer has started.
func awaitPull(t *testing.T, begun func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !begun() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("there is no consumer")
		}
	}
}
