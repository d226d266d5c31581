package gatewayserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// callbacks are the hook calls that the client of a Run stream answers. They are not
// stored: when the stream ends, pending calls fail.
type callbacks struct {
	// asked carries the calls to the stream, which receives none before its first message is carried out.
	asked chan *harnessv1.HookRequest

	mu   sync.Mutex
	open map[string]*callback // by idempotency key
	stop func()               // nil: no hooks are served
}

// callback is a call that waits for the client's answer.
type callback struct {
	callers  int
	answered chan struct{} // closed when answer is there
	answer   *harnessv1.HookAnswer
}

func newCallbacks() *callbacks {
	return &callbacks{asked: make(chan *harnessv1.HookRequest), open: map[string]*callback{}}
}

// end answers no more calls. Pending calls fail.
func (c *callbacks) end() {
	c.mu.Lock()
	stop := c.stop
	c.stop = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// serveHooks registers the client of a stream for the hooks of a run.
func (s *Server) serveHooks(run runlog.Run, c *callbacks) error {
	stop, err := s.log.ServeHooks(run, c.call)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	return nil
}

// serveNewHooks registers the client of a stream for the hooks of a run that it is about to store, because the first one
// may be called immediately. The hooks of a run that exists stay with its clients.
func (s *Server) serveNewHooks(ctx context.Context, run runlog.Run, c *callbacks) error {
	_, err := s.view(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return s.serveHooks(run, c)
	case err == nil || isExpired(err):
		return nil
	}
	return err
}

// startServing is start for a client that answers hooks: those of the run that it starts, or of one that the same request
// has started before, if it may.
func (s *Server) startServing(ctx context.Context, r *harnessv1.StartRunRequest, c *callbacks) (run runlog.Run, existed bool, err error) {
	if !slices.ContainsFunc(r.GetSpec().GetAgent().GetHooks(), (*harnessv1.Hook).GetCallback) {
		return s.start(ctx, r, nil)
	}
	if r.GetRunId() == "" && r.GetRequestId() == "" {
		r.RequestId = gateway.InputID(s.random()) // so that there is one id
	}
	if run, existed, err = s.start(ctx, r, c); err != nil {
		return run, existed, err
	}
	if existed {
		if err := s.mayAnswerHooks(ctx, run, "start"); err != nil {
			return run, existed, err
		}
	}
	if c.stop == nil {
		if err := s.serveHooks(run, c); err != nil {
			return run, existed, s.failure(ctx, "answer hooks of", run, err)
		}
	}
	return run, existed, nil
}

// mayAnswerHooks refuses a client that may not answer the hooks of a run. Only callers without the right to approve cost a read.
// field is the field of the request that asks for them.
func (s *Server) mayAnswerHooks(ctx context.Context, run runlog.Run, field string) error {
	if access.Approves(ctx) {
		return nil
	}
	v, err := s.view(ctx, run)
	if err != nil {
		return s.failure(ctx, "answer hooks of", run, err)
	}
	return access.MayAnswerHooks(ctx, field, v.Step.Record.GetStep().GetSnapshot().GetStartedBy())
}

// call sends a call to the client. A repeated call with the same key joins the pending
// one.
func (c *callbacks) call(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
	key := req.GetIdempotencyKey()
	c.mu.Lock()
	b := c.open[key]
	first := b == nil
	if first {
		b = &callback{answered: make(chan struct{})}
		c.open[key] = b
	}
	b.callers++
	c.mu.Unlock()
	defer c.leave(key, b)
	if first {
		select {
		case c.asked <- req:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case <-b.answered:
		return b.answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *callbacks) leave(key string, b *callback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.callers--; b.callers == 0 && c.open[key] == b {
		delete(c.open, key)
	}
}

// answer passes the client's answer to the call that it names.
func (c *callbacks) answer(a *harnessv1.HookAnswer) error {
	key := a.GetIdempotencyKey()
	switch {
	case key == "":
		return fault.Invalid("hook_answer.idempotency_key", "must not be empty: it names the call")
	case (a.GetVerdict() == nil) == (a.GetError() == ""):
		return fault.Invalid("hook_answer", "must have either a verdict or an error")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open[key]
	if b == nil {
		return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING,
			"no hook waits for an answer under "+strconv.Quote(key)+": it already has one, it has timed out, or another client received the call", "idempotency_key", key)
	}
	delete(c.open, key)
	b.answer = a
	close(b.answered)
	return nil
}
