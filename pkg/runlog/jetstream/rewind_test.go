package jetstream

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// TestRewind cuts the newest steps off a stream, whose consumer has delivered them. What is stored with their sequences is delivered after Rewind, in the
// process that had the lost steps and in one that never had them, and only once more.
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
			if info := consumer.CachedInfo(); info.AckFloor.Stream != 2 || info.NumPending != 0 {
				t.Errorf("a consumer that was in order was reset: %+v", info)
			}
		})
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
