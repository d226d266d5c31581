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
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
)

// Causes for stopping a call.
var (
	errCancelled = errors.New("the call was cancelled")
	errClosing   = toolhost.ErrHostCloses
	errTimeout   = errors.New("the call took too long")
)

// call is a job that is running in this process.
type call struct {
	*job
	// stop interrupts the job; the first cause counts.
	stop context.CancelCauseFunc
	// done is closed when nothing of the call is running and its end is stored. resp
	// and err are set before.
	done chan struct{}
	resp ledger.Response
	err  error
}

// ExecuteTool runs a call once. All requests for the same call share one response, which
// must not be changed.
func (s *Server) ExecuteTool(ctx context.Context, req *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
	failpoint.Hit(role, "received")
	j, err := s.toolJob(req)
	if err != nil {
		return nil, err
	}
	resp, err := s.runOnce(ctx, j)
	if err != nil {
		return nil, err
	}
	return resp.(*harnessv1.ExecuteToolResponse), nil
}

// runOnce runs the job, unless it ran before, and waits for its end. The end of ctx ends
// only the waiting.
func (s *Server) runOnce(ctx context.Context, j *job) (ledger.Response, error) {
	c, resp, err := s.admit(ctx, j)
	if c == nil {
		return resp, err
	}
	select {
	case <-c.done:
		return c.resp, c.err
	case <-ctx.Done():
		return nil, ctx.Err() // the call continues
	}
}

// admit returns the running call to wait for, or the response if there is no need to wait.
func (s *Server) admit(ctx context.Context, j *job) (*call, ledger.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.statusToStart(j.key)
	if err != nil {
		return nil, nil, err
	}
	switch toolhost.Admit(known.State, j.facts) {
	case toolhost.Join:
		return known.call, nil, nil
	case toolhost.Replay:
		return nil, known.Response, nil
	case toolhost.ReturnCancelled:
		return nil, noResult(j.key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, 0), nil
	case toolhost.Start:
		if s.draining {
			return nil, nil, fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED, toolhost.Closing)
		}
		if resp := j.reject(); resp != nil {
			return nil, resp, nil
		}
		return s.start(ctx, j), nil, nil
	case toolhost.ReturnUnknown:
	}
	return nil, noResult(j.key, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, 0), nil
}

// isForeign reports whether a request names another ledger.
func (s *Server) isForeign(ledgerID string) bool {
	return ledgerID != "" && ledgerID != s.ledger.ID
}

// status is what this host knows about a call.
type status struct {
	ledger.Entry
	// call is the Running call.
	call *call
}

// status returns the status of a call. The caller has locked mu.
func (s *Server) status(key string) (status, error) {
	if s.closing {
		return status{}, toolhost.Unavailable(toolhost.Closing, nil)
	}
	if f, pending := s.ledger.Pending(key); pending {
		return status{Entry: ledger.Entry{State: toolhost.Cancelled, Fate: f}}, nil
	}
	if c := s.calls[key]; c != nil {
		return status{Entry: ledger.Entry{State: toolhost.Running}, call: c}, nil
	}
	stored, err := s.ledger.ReadEnd(key)
	return status{Entry: stored}, err
}

// start runs the job in a goroutine. The caller has locked mu.
func (s *Server) start(ctx context.Context, j *job) *call {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{job: j, stop: stop, done: make(chan struct{})}
	s.calls[j.key] = c
	s.running.Go(func() {
		defer stop(nil)
		s.run(ctx, c)
	})
	return c
}

// run stores the mark of a call, runs it, stores its end and then closes done.
func (s *Server) run(ctx context.Context, c *call) {
	defer func() {
		s.mu.Lock()
		delete(s.calls, c.key)
		s.mu.Unlock()
		close(c.done)
	}()
	s.worktrees.Use(ctx, c.workspace)
	watch, err := s.watch(c)
	if err != nil {
		c.err = toolhost.NotStarted("the tool host cannot store what git runs programs by; nothing was run", err)
		return
	}
	if !c.facts.Idempotent {
		if err := s.ledger.StoreRunning(c.key); err != nil {
			s.log.Error("call not run: its mark could not be stored", "error", err,
				"namespace", c.namespace, "run", c.runID, "call", c.id)
			c.err = toolhost.NotStarted("the ledger cannot be written; nothing was run", err)
			_ = watch.End()
			return
		}
		failpoint.Hit(role, "marked")
	}
	begin := time.Now()
	e := effect{interrupted: true}
	if ctx.Err() == nil {
		e = c.execute(ctx, watch)
		failpoint.Hit(role, "performed")
	}
	addNote(e.response, watch.End())
	s.end(c, e, context.Cause(ctx), time.Since(begin))
}

// end decides and stores how a call ended.
func (s *Server) end(c *call, e effect, cause error, duration time.Duration) {
	if e.interrupted {
		switch {
		case errors.Is(cause, errClosing):
			// The mark remains, so the next host returns UNKNOWN.
			c.err = toolhost.Unavailable("the tool host closed while the call ran; send the request again", cause)
			return
		case errors.Is(cause, errCancelled):
			c.resp = noResult(c.key, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, duration)
			s.ledger.SetPending(c.key, toolhost.Killed)
			_ = s.ledger.StoreTombstone(c.key, toolhost.Killed) // CancelTools tries again
			return
		}
	}
	c.resp = e.response
	if c.facts.Idempotent {
		s.ledger.KeepResult(c.key, c.resp)
		if err := s.ledger.StoreChanges(c.run, e.changed); err != nil {
			s.log.Error("changes of a call could not be stored", "error", err, "namespace", c.namespace, "run", c.runID, "call", c.id)
		}
	} else if err := s.ledger.StoreResult(c.key, c.resp, c.run, e.changed); err != nil {
		// This process still returns the result. A later one finds the mark without
		// a result and returns UNKNOWN, so the call never runs again.
		s.log.Error("result of a call could not be stored", "error", err, "outcome", c.resp.GetOutcome())
		s.ledger.KeepResult(c.key, c.resp)
		return
	}
	failpoint.Hit(role, "stored")
}

// watch starts to guard the repositories of a call's workspace. A workspace that cannot be
// opened has none; the call finds that out. The error means that the snapshot cannot be
// stored.
func (s *Server) watch(c *call) (*guard.Watch, error) {
	if c.job.watch == nil {
		return nil, nil //nolint:nilnil // a nil Watch guards nothing
	}
	w, err := c.job.watch(c.workspace)
	if errors.Is(err, guard.ErrWorkspace) {
		return nil, nil //nolint:nilnil // as above
	}
	return w, err
}

// addNote adds what was put back to the response of a call.
func addNote(r ledger.Response, note string) {
	if note == "" {
		return
	}
	switch r := r.(type) {
	case *harnessv1.ExecuteToolResponse:
		r.Result = toolhost.AppendLine(r.GetResult(), note)
	case *harnessv1.CheckCommandResponse:
		r.ErrorOutput = toolhost.AppendLine(r.GetErrorOutput(), note)
	}
}
