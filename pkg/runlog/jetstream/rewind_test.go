package jetstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// TestRewind cuts the newest steps off a stream, whose consumer has delivered them. Steps
// stored with their sequences are delivered after Rewind, in the process that had the lost
// steps and in one that never had them. A consumer that is in order is left alone.
func TestRewind(t *testing.T) {
	for name, knows := range map[string]bool{"seen": true, "unseen": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "now")
			s := &lone{dir: dir, listen: "127.0.0.1:0"}
			s.start(t)
			t.Cleanup(func() { s.server.Stop() })
			if err := Provision(t.Context(), Config{URL: s.url}, Layout{}); err != nil {
				t.Fatal(err)
			}
			l := s.open(t)
			other := first("kept") // to another executor: nothing that is kept was delivered
			other.GetStep().To = "repair"
			kept(t, l, other)
			for _, id := range []string{"b", "c", "d"} {
				kept(t, l, first(id))
			}
			receive(t, l, 3, false)
			s.server.Stop()
			if n, err := storetest.CutNewest(dir, runsStream(0), 3); n != 3 || err != nil {
				t.Fatal(n, err)
			}
			s.start(t)
			if !knows {
				l = s.open(t)
			}
			// A server that starts leaves the consumer past its stream now and then, and
			// always if the stream is replicated.
			for {
				_, err := l.js.ResetConsumerToSequence(t.Context(), runsStream(0), execConsumer("turn"), 5)
				if err == nil {
					break
				}
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
			}
			if knows {
				again := kept(t, l, first("again"))
				if again.Sequence != 2 {
					t.Fatalf("stored at %d", again.Sequence)
				}
			}
			for err := l.Rewind(t.Context()); err != nil; err = l.Rewind(t.Context()) {
				if !errors.Is(err, runlog.ErrUnavailable) { // the bus starts
					t.Fatal(err)
				}
			}
			if !knows {
				kept(t, l, first("again"))
			}
			if got := receive(t, l, 1, true); !got["again"] {
				t.Errorf("delivered: %v", got)
			}
			before := l.histories[0].rewound.Load()
			if err := l.Rewind(t.Context()); err != nil || l.histories[0].rewound.Load() != before {
				t.Error(err)
			}
			consumer, err := l.js.Consumer(t.Context(), runsStream(0), execConsumer("turn"))
			if err != nil {
				t.Fatal(err)
			}
			info := consumer.CachedInfo()
			for info.NumAckPending > 0 { // the server applies the acknowledgement after it has answered others
				if info, err = consumer.Info(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if info.AckFloor.Stream != 2 || info.NumPending != 0 {
				t.Errorf("a consumer that was in order was reset: %+v", info)
			}
		})
	}
}

// TestRewindOfABusyStream checks that consumers which keep up with a stream are not reset.
func TestRewindOfABusyStream(t *testing.T) {
	t.Parallel()
	s := &lone{dir: t.TempDir(), listen: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.server.Stop() })
	if err := Provision(t.Context(), Config{URL: s.url}, Layout{}); err != nil {
		t.Fatal(err)
	}
	writer, l := s.open(t), s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	consumed := make(chan error, 1)
	go func() {
		consumed <- l.Consume(ctx, "turn", 32, func(_ context.Context, d runlog.Delivery) {
			if d.Redelivered() {
				t.Errorf("%s is delivered again", d.Entry().Run)
			}
			if err := d.Ack(); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}()
	written := make(chan error, 1)
	go func() {
		for n := range 4000 {
			if _, err := writer.Append(ctx, first(fmt.Sprint("r", n))); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	rewinds := 0
	for done := false; !done; rewinds++ {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		past, err := l.consumersPast(t.Context(), 0, l.histories[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		for c, left := range past {
			t.Fatalf("%s has delivered %d, and the stream ends at %d", c.Name, c.Delivered.Stream, left)
		}
	}
	if rewinds < 20 {
		t.Fatalf("only %d looks while the stream grew", rewinds)
	}
	cancel()
	if err := <-consumed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// receive receives n steps and returns their runs. Without ack it leaves them unacknowledged.
func receive(t *testing.T, l *Log, n int, ack bool) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runs, consumed := make(chan string), make(chan error, 1)
	go func() {
		consumed <- l.Consume(ctx, "turn", 8, func(ctx context.Context, d runlog.Delivery) {
			if ack {
				if err := d.Ack(); err != nil {
					t.Error(err)
				}
			}
			select {
			case runs <- d.Entry().Run.ID:
			case <-ctx.Done():
			}
		})
	}()
	got := map[string]bool{}
	for len(got) < n {
		select {
		case id := <-runs:
			got[id] = true
		case err := <-consumed:
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-consumed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return got
}

// TestQueuedBeforeALoss checks that a process drops a message that it had queued when the bus lost
// it, although it has no mark of it and so sees no loss.
func TestQueuedBeforeALoss(t *testing.T) {
	onEachBus(t, func(t *testing.T, bus forgetful) {
		l := bus.open(t)
		kept(t, l, first("a"))
		receive(t, l, 1, true) // makes the consumer
		bus.save(t)
		lost := kept(t, bus.open(t), first("b"))
		queued := pulled(t, l, "turn")
		if m := metadata(t, queued); m.Sequence.Stream != lost.Sequence {
			t.Fatalf("%d was delivered", m.Sequence.Stream)
		}
		before := l.reconnects()
		bus.lose(t)
		rec := first("b")
		rec.Writer.Nonce = 77
		if again := kept(t, bus.open(t), rec); again.Sequence != lost.Sequence {
			t.Fatalf("%d is stored at %d", lost.Sequence, again.Sequence)
		}
		for l.reconnects() == before { // the connection ends with the server
			if _, err := l.Newest(t.Context(), lost.Run); err != nil && !errors.Is(err, runlog.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		d, err := l.delivered(t.Context(), queued, nil)
		if d != nil || err != nil {
			t.Errorf("a lost message is handled: %+v, %v", d, err)
		}
		e, err := l.Read(t.Context(), lost.Run, lost.Sequence)
		if err != nil || e.Record.GetWriter().GetNonce() != 77 {
			t.Errorf("a lost record is read: %v, %v", e.Record, err)
		}
		if _, err := l.Append(t.Context(), linked(lost, 5)); !errors.Is(err, runlog.ErrFenced) {
			t.Errorf("a record that follows a lost one: %v", err)
		}
		stored := kept(t, l, linked(e, 6))
		fresh, err := l.delivered(t.Context(), pulled(t, l, "turn"), nil)
		for err == nil && (fresh == nil || fresh.entry.Sequence != stored.Sequence) {
			fresh, err = l.delivered(t.Context(), pulled(t, l, "turn"), nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// pulled returns the next message of an executor's consumer as it arrives.
func pulled(t *testing.T, l *Log, executor string) *nats.Msg {
	t.Helper()
	inbox := l.nc.NewInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		request := fmt.Sprintf(`{"batch":1,"expires":%d}`, time.Second)
		if err := l.established(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := l.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+runsStream(0)+"."+execConsumer(executor), inbox, []byte(request))
		if errors.Is(err, nats.ErrReconnectBufExceeded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := sub.NextMsgWithContext(t.Context())
		if errors.Is(err, nats.ErrNoResponders) { // between two leaders
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get(natsStatus) == "" {
			return m
		}
	}
}

func metadata(t *testing.T, m *nats.Msg) *nats.MsgMetadata {
	t.Helper()
	meta, err := m.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}
