package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// TestHooksReturnOrFail checks that a call of a hook returns an answer, or fails
// with the process that answers, whatever dies.
func TestHooksReturnOrFail(t *testing.T) {
	run := runlog.Run{Namespace: "default", ID: "r"}
	var mu sync.Mutex
	ends := map[string]int{}
	for seed := range uint64(20) {
		cfg := sim.Config{Seed: seed, Executors: []string{"count"}, Rates: sim.Everything()}
		try := func() sim.Result {
			return sim.Try(t, cfg, func(w *sim.World) {
				w.Client("patient", func(ctx context.Context) { // the faults end when all runs are parked or ended
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
				})
				w.Start("client", func(ctx context.Context, p *sim.Process) error {
					stop, err := p.Log().ServeHooks(run, func(ctx context.Context, r *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
						select {
						case <-time.After(300 * time.Millisecond):
						case <-ctx.Done():
							return nil, context.Cause(ctx)
						}
						return &harnessv1.HookAnswer{IdempotencyKey: r.GetIdempotencyKey(), Verdict: &harnessv1.HookVerdict{Reason: p.Instance}}, nil
					})
					if err != nil {
						return err
					}
					defer stop()
					<-ctx.Done()
					return nil
				})
				w.Start("caller", func(ctx context.Context, p *sim.Process) error {
					log := p.Log()
					for n := range 60 {
						key := fmt.Sprintf("%s-%d", p.Instance, n)
						within, cancel := context.WithTimeout(ctx, 2*time.Second)
						answer, err := log.CallHook(within, run, &harnessv1.HookRequest{IdempotencyKey: key})
						cancel()
						end := "answered"
						switch {
						case ctx.Err() != nil:
							return nil
						case errors.Is(err, runlog.ErrNoClient):
							end = "no client"
						case errors.Is(err, runlog.ErrUnavailable):
							end = "unavailable"
						case err != nil:
							end = "ended" // the world has
						case answer.GetError() != "":
							end = answer.GetError()
						case answer.GetIdempotencyKey() != key:
							t.Errorf("seed %d: %s was called, %v answered", seed, key, answer)
						}
						mu.Lock()
						ends[end]++
						mu.Unlock()
						select {
						case <-ctx.Done():
						case <-time.After(200 * time.Millisecond):
						}
					}
					<-ctx.Done()
					return nil
				})
			})
		}
		if one, other := try(), try(); one.Hash != other.Hash {
			t.Fatalf("seed %d does not repeat", seed)
		}
	}
	for _, end := range []string{"answered", "no client", "unavailable"} {
		if ends[end] == 0 {
			t.Errorf("no call ended %s: %v", end, ends)
		}
	}
}
