package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Clients drive runs over gateways, as people and programs do: they repeat a request
// when its answer is lost, and continue a watch from the last version.
type Clients struct {
	// Trees has the clients act as those of runs that delegate do: half of the resumes give
	// more tokens, and some runs are deleted with all that is below them.
	Trees bool
	// Stops has them interrupt and resume roots time and again, and not act in another way.
	Stops bool

	w        *World
	gateways []string

	mu       sync.Mutex
	followed map[runlog.Run]bool // sub-agents, guarded by mu
}

// Clients returns clients of the named processes, which serve a gateway.
func (w *World) Clients(gateways ...string) *Clients { return &Clients{w: w, gateways: gateways} }

// again reports whether the request is repeated after an error.
func again(err error) bool {
	st, _ := fault.Status(err)
	switch st.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Canceled:
		return true
	}
	return false
}

// ask repeats a request until a gateway answers it.
func ask[T any](ctx context.Context, c *Clients, random *rand.Rand, f func(context.Context, harnessv1.GatewayServiceServer) (T, error)) (T, error) {
	for {
		name := c.gateways[random.IntN(len(c.gateways))]
		r, err := Call(ctx, c.w, name, func(ctx context.Context, p *Process) (T, error) {
			var zero T
			c.w.mu.Lock()
			g := p.gateway
			c.w.mu.Unlock()
			if g == nil {
				return zero, away(name)
			}
			return f(ctx, g)
		})
		if err == nil || !again(err) || ctx.Err() != nil {
			return r, err
		}
		if !sleep(ctx, time.Duration(100+random.IntN(1500))*time.Millisecond) {
			return r, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Drive starts a run and lets clients act on it: watch it, answer its questions, send
// messages, interrupt, resume and cancel it.
func (c *Clients) Drive(name string, spec *harnessv1.RunSpec) {
	run := runlog.Run{Namespace: "default", ID: name}
	c.w.Client(name+" owner", func(ctx context.Context) {
		random := c.w.Random(name)
		_, err := ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.StartRunResponse, error) {
			return g.StartRun(ctx, &harnessv1.StartRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: "start-" + name, Spec: spec})
		})
		if err != nil {
			if ctx.Err() == nil {
				c.fail(run, "start", err)
			}
			return
		}
		c.w.Acknowledged(run, "")
		c.w.watcher(name+" watcher", func(ctx context.Context) { c.watch(ctx, run, c.w.Random(name+" watch")) })
		if c.Stops {
			c.stops(ctx, run, random)
			return
		}
		for n := range random.IntN(5) {
			if !sleep(ctx, time.Duration(random.IntN(20_000))*time.Millisecond) || c.w.Healing() {
				return
			}
			c.steer(ctx, run, random, n)
		}
		if c.Trees && random.IntN(3) == 0 {
			c.remove(ctx, run, random)
		}
	})
}

func (c *Clients) fail(run runlog.Run, what string, err error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.broken("clients are answered", fmt.Sprintf("%s: %s: %v", run, what, err))
}

// steer does one thing to a run.
func (c *Clients) steer(ctx context.Context, run runlog.Run, random *rand.Rand, n int) {
	id := fmt.Sprintf("%s-%d", run.ID, n)
	switch random.IntN(13) {
	case 0, 1, 2, 3:
		c.Send(ctx, run, random, id)
	case 4, 5:
		c.interrupt(ctx, run, random, id)
		if random.IntN(3) > 0 && sleep(ctx, time.Duration(random.IntN(10_000))*time.Millisecond) {
			c.resume(ctx, run, random, id+"-resume")
		}
	case 6, 7:
		c.resume(ctx, run, random, id)
	case 8:
		_, _ = ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.GetConversationResponse, error) {
			return g.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: run.Namespace, RunId: run.ID})
		})
	case 11, 12:
		c.Attach(ctx, run, random, id)
	case 9:
		_, _ = ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.DeleteRunResponse, error) {
			return g.DeleteRun(ctx, &harnessv1.DeleteRunRequest{Namespace: run.Namespace, RunId: run.ID})
		})
	default:
		_, _ = ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.CancelRunResponse, error) {
			return g.CancelRun(ctx, &harnessv1.CancelRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: id, Reason: "enough"})
		})
	}
}

// stops interrupts and resumes a run for as long as there are faults.
func (c *Clients) stops(ctx context.Context, run runlog.Run, random *rand.Rand) {
	for n := 0; sleep(ctx, time.Duration(random.IntN(5_000))*time.Millisecond) && !c.w.Healing(); n++ {
		id := fmt.Sprintf("%s-%d", run.ID, n)
		c.interrupt(ctx, run, random, id)
		if !sleep(ctx, time.Duration(random.IntN(5_000))*time.Millisecond) {
			return
		}
		c.resume(ctx, run, random, id+"-resume")
	}
}

func (c *Clients) interrupt(ctx context.Context, run runlog.Run, random *rand.Rand, id string) {
	_, _ = ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.InterruptRunResponse, error) {
		return g.InterruptRun(ctx, &harnessv1.InterruptRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: id, Reason: "stop"})
	})
}

// Send sends a message to a run, once.
func (c *Clients) Send(ctx context.Context, run runlog.Run, random *rand.Rand, id string) {
	text := uniqueText + id
	if random.IntN(6) == 0 {
		text += strings.Repeat(" and so on", 1000) // too long to travel inline
	}
	_, err := ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.SendInputResponse, error) {
		return g.SendInput(ctx, &harnessv1.SendInputRequest{
			Namespace: run.Namespace, RunId: run.ID, RequestId: id,
			Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)}},
		})
	})
	if err == nil {
		c.w.Acknowledged(run, id)
	}
}

// resume resumes a run with a larger budget.
func (c *Clients) resume(ctx context.Context, run runlog.Run, random *rand.Rand, id string) {
	r := &harnessv1.ResumeRunRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: id}
	if random.IntN(2) == 0 {
		calls := uint32(100)
		r.Budgets = &harnessv1.Budgets{ToolCalls: &calls}
		if c.Trees && !strings.HasPrefix(run.ID, "a-") { // a root
			tokens := uint64(200_000)
			r.Budgets.Tokens = &tokens
		}
	}
	answer, err := ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.ResumeRunResponse, error) {
		return g.ResumeRun(ctx, r)
	})
	if err == nil && !answer.GetAlreadyRunning() {
		c.w.Acknowledged(run, id)
	}
}

// Answer answers a call that waits: it approves or denies it, or sends its result.
func (c *Clients) Answer(ctx context.Context, run runlog.Run, random *rand.Rand, id string, call pendingCall) {
	r := &harnessv1.SendInputRequest{Namespace: run.Namespace, RunId: run.ID, RequestId: id}
	if call.Kind == runstate.KindApproval {
		decision := harnessv1.ApprovalDecision(1 + random.IntN(3))
		r.Input = &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{CallId: call.ID, Decision: decision}}
	} else {
		r.Input = &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: call.ID, Result: content.Inline("answer " + id)}}
	}
	_, err := ask(ctx, c, random, func(ctx context.Context, g harnessv1.GatewayServiceServer) (*harnessv1.SendInputResponse, error) {
		return g.SendInput(ctx, r)
	})
	if err == nil {
		c.w.Acknowledged(run, id)
	}
}
