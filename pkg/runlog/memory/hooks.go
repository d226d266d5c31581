package memory

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// answerer answers hooks of a run. Its fields are guarded by the log's mutex.
type answerer struct {
	handle  func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)
	ctx     context.Context //nolint:containedctx // ends with the answerer
	busy    int
	running sync.WaitGroup
}

// CallHook asks the client that has answered hooks of the run for longest.
func (l *Log) CallHook(ctx context.Context, run runlog.Run, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
	op := "call hook " + req.GetHookId() + " of " + run.String()
	if err := l.enter(ctx, op); err != nil {
		return nil, err
	}
	if len(l.answerers[run]) == 0 {
		l.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", op, runlog.ErrNobody)
	}
	a := l.answerers[run][0]
	if a.busy >= runlog.MaxHookCalls {
		l.mu.Unlock()
		return runlog.HookRefusal(req, runlog.ErrTooManyHookCalls), nil
	}
	answers := make(chan *harnessv1.HookAnswer, 1)
	a.busy++
	a.running.Add(1)
	l.mu.Unlock()
	go func() {
		defer a.running.Done()
		answers <- l.answered(ctx, a, proto.CloneOf(req))
	}()
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, unavailable(op, context.Cause(ctx))
	case <-l.closed:
		return nil, unavailable(op, errClosed)
	}
}

// answered has a answer within the caller's time. Of the caller's context nothing
// else is taken over: over a network nothing else would be.
func (l *Log) answered(caller context.Context, a *answerer, req *harnessv1.HookRequest) *harnessv1.HookAnswer {
	ctx := a.ctx
	if deadline, ok := caller.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	answer, err := a.handle(ctx, req)
	if err != nil {
		answer = runlog.HookRefusal(req, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.busy--
	return proto.CloneOf(answer)
}

// ServeHooks answers the hooks of a run.
func (l *Log) ServeHooks(run runlog.Run, handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (stop func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, unavailable("answer hooks of "+run.String(), errClosed)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &answerer{handle: handle, ctx: ctx}
	l.answerers[run] = append(l.answerers[run], a)
	return func() {
		l.mu.Lock()
		if l.answerers[run] = without(l.answerers[run], a); len(l.answerers[run]) == 0 {
			delete(l.answerers, run)
		}
		l.mu.Unlock()
		cancel(runlog.ErrClientLeft)
		a.running.Wait()
	}, nil
}
