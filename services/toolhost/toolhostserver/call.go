package toolhostserver

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
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

// result is the answer to a call: an ExecuteToolResponse, or a
// CheckCommandResponse for a check.
type result interface {
	proto.Message
	GetOutcome() harnessv1.ToolOutcome
}

// work is a call that may be run.
type work struct {
	// Names the call, and its run, in the ledger.
	key, run string
	// For the log.
	namespace, runID, id string

	facts toolhost.Call
	// refuse answers a call that is not to be run at all; nil from it lets it run.
	refuse func() result
	// perform runs it. The result is not used when it was interrupted: stopped
	// before it had reached its end.
	perform func(ctx context.Context) product
}

// product is what came of a call.
type product struct {
	result      result
	interrupted bool
	// Paths relative to the workspace.
	changed []string
}

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

// runKey names a run in the ledger. NUL separates; it is in no name.
func runKey(namespace, run string, firstSequence uint64) (string, error) {
	for field, value := range map[string]string{"namespace": namespace, "run_id": run} {
		if err := checkName(field, value); err != nil {
			return "", err
		}
	}
	key := make([]byte, 0, len(namespace)+len(run)+10)
	key = append(key, namespace...)
	key = append(key, 0)
	key = append(key, run...)
	key = append(key, 0)
	return string(binary.BigEndian.AppendUint64(key, firstSequence)), nil
}

func checkName(field, value string) error {
	if value == "" || len(value) > 1024 || strings.ContainsRune(value, 0) {
		return fault.Invalid(field, "has to be 1 to 1024 bytes without NUL")
	}
	return nil
}

// callKey names a call in the ledger: its run, NUL and its id.
func callKey(namespace, run string, firstSequence uint64, id string) (string, error) {
	key, err := runKey(namespace, run, firstSequence)
	if err != nil {
		return "", err
	}
	return key + "\x00" + id, checkName("call_id", id)
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

// toolWork is the work that a request asks for.
func (s *Server) toolWork(req *harnessv1.ExecuteToolRequest) (*work, error) {
	key, err := callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), req.GetCallId())
	if err != nil {
		return nil, err
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if err := checkTimeout(req.GetTimeout()); err != nil {
		return nil, err
	}
	spec := s.tools.Lookup(req.GetTool())
	return &work{
		key: key, run: strings.TrimSuffix(key, "\x00"+req.GetCallId()),
		namespace: req.GetNamespace(), runID: req.GetRunId(), id: req.GetCallId(),
		facts: toolhost.Call{
			// A tool that does not exist has no effect.
			Idempotent:    spec == nil || spec.GetAnnotations().GetIdempotent(),
			ForeignLedger: s.foreign(req.GetLedgerId()),
		},
		refuse: func() result {
			if err := s.tools.Validate(req.GetTool(), req.GetArguments()); err != nil {
				return done(failed(err.Error()), 0)
			}
			return nil
		},
		perform: func(ctx context.Context) product {
			begin := time.Now()
			e := s.perform(ctx, req)
			e.text = toolhost.Cut(e.text, s.config.Limits.ResultBytes, "Ask for less at a time.")
			return product{result: done(e, time.Since(begin)), interrupted: e.interrupted, changed: e.changed}
		},
	}, nil
}

func checkTimeout(t *durationpb.Duration) error {
	if t != nil && (t.CheckValid() != nil || t.AsDuration() < 0) {
		return fault.Invalid("timeout", "is not a positive duration")
	}
	return nil
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

func done(e effect, took time.Duration) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: e.text, IsError: e.isError,
		Duration: durationpb.New(took), ExitCode: e.exitCode, FilesChanged: e.changed,
	}
}

// unanswered is the answer to a call that has no result.
func unanswered(key string, o harnessv1.ToolOutcome, took time.Duration) result {
	if isCheck(key) {
		return &harnessv1.CheckCommandResponse{Outcome: o}
	}
	resp := &harnessv1.ExecuteToolResponse{Outcome: o}
	if o == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		resp.Duration = durationpb.New(took)
	}
	return resp
}
