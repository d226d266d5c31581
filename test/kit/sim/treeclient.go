package sim

import (
	"context"
	"math/rand/v2"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// follow watches the run of a sub-agent and answers its questions, as clients of its root do. Some
// of them interrupt, resume, cancel or delete it.
func (c *Clients) follow(run runlog.Run) {
	c.mu.Lock()
	before := c.followed[run]
	if c.followed == nil {
		c.followed = map[runlog.Run]bool{}
	}
	c.followed[run] = true
	c.mu.Unlock()
	if before {
		return
	}
	c.w.watcher(run.ID+" watcher", func(ctx context.Context) { c.watch(ctx, run, c.w.Random(run.ID+" watch")) })
	random := c.w.Random(run.ID)
	if c.Stops || random.IntN(3) > 0 {
		return
	}
	c.w.Client(run.ID+" owner", func(ctx context.Context) {
		if !sleep(ctx, time.Duration(random.IntN(10_000))*time.Millisecond) || c.w.Healing() {
			return
		}
		id := run.ID + "-alone"
		switch random.IntN(8) {
		case 0, 1, 2:
			c.interrupt(ctx, run, random, id)
			if random.IntN(4) > 0 && sleep(ctx, time.Duration(random.IntN(10_000))*time.Millisecond) {
				c.resume(ctx, run, random, id+"-resume")
			}
		case 3:
			c.resume(ctx, run, random, id)
		case 4, 5:
			c.cancel(ctx, run, random, id)
		case 6:
			c.Send(ctx, run, random, id)
		default:
			_ = c.delete(ctx, run, random)
		}
	})
}

// remove cancels a run and deletes it, with all that is below it.
func (c *Clients) remove(ctx context.Context, run runlog.Run, random *rand.Rand) {
	c.cancel(ctx, run, random, run.ID+"-removed")
	for range 5 {
		if !sleep(ctx, time.Duration(random.IntN(5_000))*time.Millisecond) || c.w.Healing() || c.delete(ctx, run, random) == nil {
			return
		}
	}
}

func (c *Clients) cancel(ctx context.Context, run runlog.Run, random *rand.Rand, id string) {
	_, _ = ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.CancelRunResponse, error) {
		return g.CancelRun(ctx, &harnessv1.CancelRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: id, Reason: "enough"})
	})
}

func (c *Clients) delete(ctx context.Context, run runlog.Run, random *rand.Rand) error {
	_, err := ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.DeleteRunResponse, error) {
		return g.DeleteRun(ctx, &harnessv1.DeleteRunRequest{Namespace: run.Namespace, RunId: run.ID})
	})
	return err
}
