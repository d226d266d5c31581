package toolhostserver

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

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
	key        string
	idempotent bool
	// stop asks the effect to end; the first cause counts.
	stop context.CancelCauseFunc
	// done is closed when nothing of the call runs any more and its end is
	// stored. resp and err are set before.
	done chan struct{}
	resp *harnessv1.ExecuteToolResponse
	err  error
}

// effect is what became of a tool that was run.
type effect struct {
	// What the model reads.
	text    string
	isError bool
	// It was stopped before it had reached its end.
	interrupted bool
	exitCode    *int32
	// Paths relative to the workspace.
	changed []string
}

// failed is the effect of a tool that could not do what was asked.
func failed(text string) effect { return effect{text: text, isError: true} }

// callKey names a call in the ledger. NUL separates; it is in no name, and the
// call id stands last.
func callKey(namespace, run string, firstSequence uint64, id string) (string, error) {
	for field, value := range map[string]string{"namespace": namespace, "run_id": run, "call_id": id} {
		if value == "" || len(value) > 1024 || strings.ContainsRune(value, 0) {
			return "", fault.Invalid(field, "has to be 1 to 1024 bytes without NUL")
		}
	}
	key := make([]byte, 0, len(namespace)+len(run)+len(id)+11)
	key = append(key, namespace...)
	key = append(key, 0)
	key = append(key, run...)
	key = append(key, 0)
	key = binary.BigEndian.AppendUint64(key, firstSequence)
	key = append(key, 0)
	return string(append(key, id...)), nil
}

// ExecuteTool runs a call once. Responses are shared between those who ask for
// the same call and must not be changed.
func (s *Server) ExecuteTool(ctx context.Context, req *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
	failpoint.Hit(role, "received")
	key, err := callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), req.GetCallId())
	if err != nil {
		return nil, err
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if t := req.GetTimeout(); t != nil && (t.CheckValid() != nil || t.AsDuration() < 0) {
		return nil, fault.Invalid("timeout", "is not a positive duration")
	}
	c, resp, err := s.admit(ctx, key, req)
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
func (s *Server) admit(ctx context.Context, key string, req *harnessv1.ExecuteToolRequest) (*call, *harnessv1.ExecuteToolResponse, error) {
	spec := s.tools.Lookup(req.GetTool())
	facts := toolhost.Call{
		// A tool that does not exist has no effect.
		Idempotent:    spec == nil || spec.GetAnnotations().GetIdempotent(),
		ForeignLedger: s.foreign(req.GetLedgerId()),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.look(key)
	if err != nil {
		return nil, nil, err
	}
	switch toolhost.Admit(k.state, facts) {
	case toolhost.Join:
		return k.call, nil, nil
	case toolhost.Replay:
		return nil, k.resp, nil
	case toolhost.AnswerCancelled:
		return nil, cancelled(0), nil
	case toolhost.Start:
		if s.draining {
			return nil, nil, fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED, closingText)
		}
		if err := s.tools.Validate(req.GetTool(), req.GetArguments()); err != nil {
			return nil, done(failed(err.Error()), 0), nil
		}
		return s.start(ctx, key, facts.Idempotent, req), nil, nil
	}
	return nil, &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, nil
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
func (s *Server) start(ctx context.Context, key string, idempotent bool, req *harnessv1.ExecuteToolRequest) *call {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{key: key, idempotent: idempotent, stop: stop, done: make(chan struct{})}
	s.calls[key] = c
	s.running.Go(func() {
		defer stop(nil)
		s.run(ctx, c, req)
	})
	return c
}

// run marks, runs, stores and only then tells.
func (s *Server) run(ctx context.Context, c *call, req *harnessv1.ExecuteToolRequest) {
	defer func() {
		s.mu.Lock()
		delete(s.calls, c.key)
		s.mu.Unlock()
		close(c.done)
	}()
	if !c.idempotent {
		if err := s.ledger.mark(c.key); err != nil {
			s.log.Error("a call could not be marked as started; it was not run", "error", err,
				"namespace", req.GetNamespace(), "run", req.GetRunId(), "call", req.GetCallId())
			c.err = unavailable("the ledger cannot be written; nothing was run", err)
			return
		}
		failpoint.Hit(role, "marked")
	}
	begin := time.Now()
	e := effect{interrupted: true}
	if ctx.Err() == nil {
		e = s.perform(ctx, req)
		failpoint.Hit(role, "performed")
	}
	s.settle(c, e, context.Cause(ctx), time.Since(begin))
}

// settle decides and stores how a call ended.
func (s *Server) settle(c *call, e effect, cause error, took time.Duration) {
	if e.interrupted {
		switch {
		case errors.Is(cause, errClosing):
			// The mark stays: the next host says UNKNOWN.
			c.err = unavailable("the tool host closed while the call ran; send the request again", cause)
			return
		case errors.Is(cause, errCancelled):
			c.resp = cancelled(took)
			s.mu.Lock()
			s.buried[c.key] = toolhost.Killed
			s.mu.Unlock()
			_ = s.bury(c.key, toolhost.Killed) // CancelTools sees that it failed
			return
		}
	}
	e.text = toolhost.Cut(e.text, s.config.Limits.ResultBytes, "Ask for less at a time.")
	c.resp = done(e, took)
	if c.idempotent {
		s.remember(c)
	} else if err := s.ledger.finish(c.key, c.resp); err != nil {
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

func done(e effect, took time.Duration) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: e.text, IsError: e.isError,
		Duration: durationpb.New(took), ExitCode: e.exitCode, FilesChanged: e.changed,
	}
}

func cancelled(took time.Duration) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED, Duration: durationpb.New(took),
	}
}
