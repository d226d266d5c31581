package toolhostserver

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// Why a call is stopped.
var (
	errCancelled = errors.New("the call was cancelled")
	errClosing   = errors.New("the tool host is closing")
	errTimedOut  = errors.New("the call took too long")
)

// call is a call that runs in this process.
type call struct {
	*work
	// stop asks the effect to end; the first cause counts.
	stop context.CancelCauseFunc
	// done is closed when nothing of the call runs any more and its end is
	// stored. resp and err are set before.
	done chan struct{}
	resp result
	err  error
}

// ExecuteTool runs a call once. Responses are shared between those who ask for
// the same call and must not be changed.
func (s *Server) ExecuteTool(ctx context.Context, req *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
	failpoint.Hit(role, "received")
	w, err := s.toolWork(req)
	if err != nil {
		return nil, err
	}
	resp, err := s.answer(ctx, w)
	if err != nil {
		return nil, err
	}
	return resp.(*harnessv1.ExecuteToolResponse), nil
}

// answer runs the work once and waits for its end. The end of ctx ends only the
// waiting.
func (s *Server) answer(ctx context.Context, w *work) (result, error) {
	c, resp, err := s.admit(ctx, w)
	if c == nil {
		return resp, err
	}
	select {
	case <-c.done:
		return c.resp, c.err
	case <-ctx.Done():
		return nil, ctx.Err() // the call goes on
	}
}

// admit answers from what is known, or returns the call to wait for.
func (s *Server) admit(ctx context.Context, w *work) (*call, result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.lookBefore(w.key)
	if err != nil {
		return nil, nil, err
	}
	switch toolhost.Admit(k.state, w.facts) {
	case toolhost.Join:
		return k.call, nil, nil
	case toolhost.Replay:
		return nil, k.resp, nil
	case toolhost.AnswerCancelled:
		return nil, unanswered(w.key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, 0), nil
	case toolhost.Start:
		if s.draining {
			return nil, nil, fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED, closingText)
		}
		if resp := w.refuse(); resp != nil {
			return nil, resp, nil
		}
		return s.start(ctx, w), nil, nil
	}
	return nil, unanswered(w.key, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, 0), nil
}

// foreign says that a request names another ledger.
func (s *Server) foreign(ledgerID string) bool {
	return ledgerID != "" && ledgerID != s.ledger.id
}

// look says what is known of a call; mu is held.
func (s *Server) look(key string) (known, error) {
	if s.closing {
		return known{}, unavailable(closingText, nil)
	}
	if f, has := s.buried[key]; has {
		return known{state: toolhost.Cancelled, fate: f}, nil
	}
	if c := s.calls[key]; c != nil {
		return known{state: toolhost.Running, call: c}, nil
	}
	if resp := s.remembered.recall(key); resp != nil {
		return known{state: toolhost.Done, resp: resp}, nil
	}
	k, err := s.ledger.read(key)
	if err != nil {
		return known{}, unavailable("the ledger cannot be read", err)
	}
	return k, nil
}

// start runs the call in a goroutine of its own; mu is held.
func (s *Server) start(ctx context.Context, w *work) *call {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{work: w, stop: stop, done: make(chan struct{})}
	s.calls[w.key] = c
	s.running.Go(func() {
		defer stop(nil)
		s.run(ctx, c)
	})
	return c
}

// run marks, runs, stores and only then tells.
func (s *Server) run(ctx context.Context, c *call) {
	defer func() {
		s.mu.Lock()
		delete(s.calls, c.key)
		s.mu.Unlock()
		close(c.done)
	}()
	if !c.facts.Idempotent {
		if err := s.ledger.mark(c.key); err != nil {
			s.log.Error("a call could not be marked as started; it was not run", "error", err,
				"namespace", c.namespace, "run", c.runID, "call", c.id)
			c.err = unavailable("the ledger cannot be written; nothing was run", err)
			return
		}
		failpoint.Hit(role, "marked")
	}
	begin := time.Now()
	p := product{interrupted: true}
	if ctx.Err() == nil {
		p = c.perform(ctx)
		failpoint.Hit(role, "performed")
	}
	s.settle(c, p, context.Cause(ctx), time.Since(begin))
}

// settle decides and stores how a call ended.
func (s *Server) settle(c *call, p product, cause error, took time.Duration) {
	if p.interrupted {
		switch {
		case errors.Is(cause, errClosing):
			// The mark stays: the next host says UNKNOWN.
			c.err = unavailable("the tool host closed while the call ran; send the request again", cause)
			return
		case errors.Is(cause, errCancelled):
			c.resp = unanswered(c.key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, took)
			s.mu.Lock()
			s.buried[c.key] = toolhost.Killed
			s.mu.Unlock()
			_ = s.bury(c.key, toolhost.Killed) // CancelTools sees that it failed
			return
		}
	}
	c.resp = p.result
	if c.facts.Idempotent {
		s.remember(c)
		if err := s.ledger.note(c.run, p.changed); err != nil {
			s.log.Error("what a call changed could not be stored", "error", err, "namespace", c.namespace, "run", c.runID, "call", c.id)
		}
	} else if err := s.ledger.finish(c.key, c.resp, c.run, p.changed); err != nil {
		// The effect is there and this process knows of it. A later one finds
		// the mark without an end, which is UNKNOWN: never run again.
		s.log.Error("the end of a call could not be stored", "error", err, "outcome", c.resp.GetOutcome())
		s.remember(c)
		return
	}
	failpoint.Hit(role, "stored")
}

func (s *Server) remember(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered.keep(c.key, c.resp)
}
