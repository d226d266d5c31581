package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// answerer answers hooks of a run in a process.
type answerer struct {
	run     runlog.Run
	handle  func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)
	ctx     context.Context //nolint:containedctx // ends with the answerer
	busy    int             // guarded by world.mu
	running sync.WaitGroup
}

// CallHook calls the first process on the bus that answers hooks of the run. The call
// ends if that process dies.
func (h *handle) CallHook(ctx context.Context, run runlog.Run, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
	w := h.p.world
	var answer *harnessv1.HookAnswer // read once the request is done
	r := &request{done: make(chan struct{})}
	o := &op{key: key{kind: onHook, run: run.ID, text: req.GetIdempotencyKey()}}
	o.do = func(fate) error {
		p, a := w.answererOf(run)
		if a == nil {
			return fmt.Errorf("%s: %w", o.key.kind, runlog.ErrNoClient)
		}
		o.note = "to " + p.Instance
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.busy >= runlog.MaxHookCalls {
			answer = runlog.HookRefusal(req, runlog.ErrTooManyHookCalls)
			r.fail(nil)
			return nil
		}
		a.busy++
		p.requests = append(p.requests, r)
		deadline, bounded := ctx.Deadline()
		a.running.Go(func() {
			within := a.ctx
			if bounded {
				var cancel context.CancelFunc
				within, cancel = context.WithDeadline(within, deadline)
				defer cancel()
			}
			w.serve(within, p, r, func(ctx context.Context) (func(), error) {
				given, err := a.handle(ctx, proto.CloneOf(req))
				if err != nil {
					given = runlog.HookRefusal(req, err)
				}
				return func() { answer = proto.CloneOf(given) }, nil
			})
			w.mu.Lock()
			defer w.mu.Unlock()
			a.busy--
		})
		return nil
	}
	if err := h.p.interact(ctx, o); err != nil {
		return nil, err
	}
	select {
	case <-r.done:
		if r.err != nil {
			return nil, unavailable(o, r.err)
		}
		return answer, nil
	case <-ctx.Done():
		return nil, unavailable(o, context.Cause(ctx))
	case <-w.over:
		return nil, errEnded
	}
}

// answererOf returns the process and the answerer that receive the hooks of a run.
func (w *World) answererOf(run runlog.Run) (*Process, *answerer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, p := range w.procs {
		if !p.onBus(now) {
			continue
		}
		for _, a := range p.answerers {
			if a.run == run {
				return p, a
			}
		}
	}
	return nil, nil
}

// ServeHooks answers the hooks of a run until the process dies.
func (h *handle) ServeHooks(run runlog.Run, handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (stop func(), err error) {
	p, w := h.p, h.p.world
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &answerer{run: run, handle: handle, ctx: ctx}
	w.mu.Lock()
	p.answerers = append(p.answerers, a)
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		p.answerers = without(p.answerers, a)
		w.mu.Unlock()
		cancel(runlog.ErrClientLeft)
		a.running.Wait()
	}, nil
}
