package jetstream

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestRunsCatchUpWithAnErasure checks that a follower of all runs catches up if the
// message that it waits for is erased while it starts.
func TestRunsCatchUpWithAnErasure(t *testing.T) {
	for name, runs := range map[string][]string{"the only run": {"r"}, "the newest run": {"before", "r"}} {
		t.Run(name, func(t *testing.T) {
			l, n, sound := overNetwork(t, 0)
			for _, id := range runs {
				rec := first(id)
				rec.GetStep().To = runlog.End
				if _, err := sound.Append(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
			var once sync.Once
			erased := false
			f := func(p []byte) bool {
				if bytes.Contains(p, []byte("$JS.API.CONSUMER.CREATE.RUNS_0")) {
					once.Do(func() {
						if err := sound.Erase(t.Context(), runlog.Run{Namespace: "default", ID: "r"}, 0, runlog.Everything); err != nil {
							t.Error(err)
						}
						erased = true
					})
				}
				return false
			}
			n.loseRequests.Store(&f)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			seen, caughtUp := map[string]bool{}, false
			err := l.Runs(ctx, func() {
				caughtUp = true
				cancel()
			}, func(e runlog.Entry) { seen[e.Run.ID] = true })
			if !errors.Is(err, context.Canceled) || !caughtUp || !erased {
				t.Fatalf("ended with %v, caught up is %v", err, caughtUp)
			}
			if len(seen) != len(runs)-1 || seen["r"] {
				t.Errorf("saw %v", seen)
			}
		})
	}
}
