// Package hookcaller calls the subscribers of runs: HookServices over gRPC, commands
// on the tool host, and clients over their Run streams. What they say is judged by
// package hook.
//
// A call has its time and does not outlast it, but for a command, whose process may
// be cut off from its caller: it goes on until its own time is over, so that whoever
// takes the run over joins it by its key. A context that ends for the cause ErrKill
// has it killed.
//
// A failure is an outcome, never an error: what it amounts to is the hook's policy.
package hookcaller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

// ErrKill is the cause, or wrapped by it, of a context whose end has commands killed,
// as an interrupt does.
var ErrKill = errors.New("what the run does is to be killed")

// reachTime is how long Reach waits for a server.
const reachTime = 2 * time.Second

// Config configures a Caller. A kind of hook whose way is nil fails.
type Config struct {
	// ToolHost runs commands.
	ToolHost harnessv1.ToolHostServiceClient
	// Log calls hooks that clients answer.
	Log runlog.HookCaller
	// Remote has the connections to HookServices.
	Remote *remote.Pool
	// Logger; nil discards.
	Logger *slog.Logger
	// DefaultTimeout is the time that a call has when neither its hook nor the run says
	// otherwise. Default hook.DefaultTimeout.
	DefaultTimeout time.Duration
}

// Caller calls subscribers. It is safe for concurrent use.
type Caller struct{ cfg Config }

// New makes a Caller.
func New(cfg Config) *Caller {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DefaultTimeout <= 0 {
		cfg.DefaultTimeout = hook.DefaultTimeout
	}
	return &Caller{cfg: cfg}
}

// RunInfo is what a call has to know of a run beside its request.
type RunInfo struct {
	// Workspace is the absolute path in which commands run.
	Workspace string
	// FirstSequence is that of the run: tells it from an earlier one of the same name.
	FirstSequence uint64
	// Timeout is the time that a call has unless its hook says otherwise; 0 means the
	// Caller's default.
	Timeout time.Duration
}

// Call calls one subscriber and says how that went. It may be called again with the
// same request. The end of ctx ends it, with an error in the outcome.
func (c *Caller) Call(ctx context.Context, h *harnessv1.Hook, req *harnessv1.HookRequest, where RunInfo) *harnessv1.HookOutcome {
	timeout := c.timeout(h, where)
	ctx, span := spans.Start(ctx, "hook "+req.GetHookId(), trace.SpanKindInternal, func() []attribute.KeyValue {
		return []attribute.KeyValue{
			spans.RunID.String(req.GetRunId()), spans.HookID.String(req.GetHookId()), spans.HookTopic.String(hook.TopicName(req.GetTopic())),
		}
	})
	defer span.End()
	verdict, err := c.ask(ctx, h, req, where, timeout)
	if err == nil {
		return hook.Limit(&harnessv1.HookOutcome{Verdict: verdict})
	}
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("the call was broken off: %w", context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %v", timeout)
	}
	spans.Fail(span, "hook_error", err.Error())
	c.cfg.Logger.WarnContext(ctx, "hook failed", "namespace", req.GetNamespace(), "run", req.GetRunId(), "turn", req.GetTurnNumber(),
		"hook", req.GetHookId(), "topic", hook.TopicName(req.GetTopic()), "error", err)
	return hook.Limit(&harnessv1.HookOutcome{Error: err.Error()})
}

func (c *Caller) timeout(h *harnessv1.Hook, where RunInfo) time.Duration {
	switch {
	case h.GetTimeout() != nil:
		return h.GetTimeout().AsDuration()
	case where.Timeout > 0:
		return where.Timeout
	}
	return c.cfg.DefaultTimeout
}

func (c *Caller) ask(ctx context.Context, h *harnessv1.Hook, req *harnessv1.HookRequest, where RunInfo, timeout time.Duration) (*harnessv1.HookVerdict, error) {
	switch {
	case h.GetCommand() != "":
		return c.command(ctx, h.GetCommand(), req, where, timeout)
	case h.GetGrpc() != "":
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return c.remote(ctx, h.GetGrpc(), req)
	case h.GetCallback():
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return c.callback(ctx, req)
	}
	return nil, errors.New("this hook is none that is called")
}

// remote asks a HookService.
func (c *Caller) remote(ctx context.Context, target string, req *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
	if c.cfg.Remote == nil {
		return nil, errors.New("no HookService can be called from here")
	}
	conn, err := c.cfg.Remote.Dial(target)
	if err != nil {
		return nil, err
	}
	resp, err := harnessv1.NewHookServiceClient(conn).HandleHook(ctx, &harnessv1.HandleHookRequest{Hook: req})
	switch {
	case err == nil:
		return resp.GetVerdict(), nil
	case ctx.Err() != nil || remote.DeadlinePassed(ctx, err):
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%s: %s", target, remote.Reason(err))
}

// callback asks a client of the run.
func (c *Caller) callback(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
	if c.cfg.Log == nil {
		return nil, errors.New("no client can be called from here")
	}
	run := runlog.Run{Namespace: req.GetNamespace(), ID: req.GetRunId()}
	answer, err := c.cfg.Log.CallHook(ctx, run, req)
	switch {
	case errors.Is(err, runlog.ErrNoClient):
		return nil, runlog.ErrNoClient
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case answer.GetError() != "":
		return nil, errors.New(answer.GetError())
	}
	return answer.GetVerdict(), nil
}

// Fire calls the subscribers of a point, one after another. When ctx ends, those that
// are left fail: look at ctx before the result counts for anything.
func (c *Caller) Fire(ctx context.Context, s *hook.Set, p hook.Point, where RunInfo) hook.Result {
	observed := map[string]*harnessv1.HookOutcome{}
	for {
		result, need := s.Fire(p, func(key string) *harnessv1.HookOutcome { return observed[key] })
		if need == nil {
			return result
		}
		observed[need.GetIdempotencyKey()] = c.Call(ctx, s.Hook(need.GetHookId()), need, where)
	}
}

// Reach tries to reach every HookService of hooks, each for 2 s at most. One that
// cannot be reached is a warning, or an error of type *fault.FieldError for a hook that
// fails closed. Hooks are valid.
func (c *Caller) Reach(ctx context.Context, hooks []*harnessv1.Hook) (warnings []string, err error) {
	pool := c.cfg.Remote
	if pool == nil {
		pool = &remote.Pool{}
		defer pool.Close()
	}
	reached := reachAll(ctx, pool, hooks)
	for i, h := range hooks {
		err := reached[h.GetGrpc()]
		if err == nil {
			continue
		}
		at := "hooks[" + strconv.Itoa(i) + "].grpc"
		if hook.FailsClosed(h) {
			return warnings, fault.Invalid(at, "%v; start it, or set on_failure to open", err)
		}
		warnings = append(warnings, at+": "+err.Error()+"; it is passed over for as long as it is away")
	}
	return warnings, nil
}

// reachAll is what came of trying to reach the targets of hooks, at the same time.
func reachAll(ctx context.Context, pool *remote.Pool, hooks []*harnessv1.Hook) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var targets []string
	for _, h := range hooks {
		if t := h.GetGrpc(); t != "" && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	type tried struct {
		target string
		err    error
	}
	results := make(chan tried, len(targets))
	for _, t := range targets {
		go func() { results <- tried{t, pool.Reach(ctx, t)} }()
	}
	reached := map[string]error{}
	for range targets {
		r := <-results
		reached[r.target] = r.err
	}
	return reached
}
