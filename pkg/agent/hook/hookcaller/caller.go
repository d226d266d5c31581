// Package hookcaller calls the hooks of runs: HookServices over gRPC, commands on the
// tool host, and clients over their Run streams. Package hook decides what follows from
// their verdicts.
//
// No call outlasts its timeout. If the caller of a command goes away, the command
// continues until its timeout, so a worker that takes over the run joins it by its key.
// A context that ends with the cause ErrKill kills the command.
//
// A failure is an outcome, never an error: the policy of the hook decides what it means.
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

// ErrKill is the cause, possibly wrapped, of a context whose end kills commands, as an
// interrupt does.
var ErrKill = errors.New("what the run does is to be killed")

// reachTime is how long Reach waits for a server.
const reachTime = 2 * time.Second

// Config configures a Caller. Hooks fail if the field that their kind needs is nil.
type Config struct {
	// ToolHost runs commands.
	ToolHost harnessv1.ToolHostServiceClient
	// Log calls hooks that clients answer.
	Log runlog.HookCaller
	// Remote has the connections to HookServices.
	Remote *remote.Pool
	// Logger of failures. Default: discards.
	Logger *slog.Logger
	// DefaultTimeout applies if neither the hook nor the run sets a timeout. Default
	// hook.DefaultTimeout.
	DefaultTimeout time.Duration
}

// Caller calls hooks. It is safe for concurrent use.
type Caller struct{ cfg Config }

func New(cfg Config) *Caller {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DefaultTimeout <= 0 {
		cfg.DefaultTimeout = hook.DefaultTimeout
	}
	return &Caller{cfg: cfg}
}

// RunInfo is what a call needs to know of its run in addition to the request.
type RunInfo struct {
	// Workspace is the absolute path in which commands run.
	Workspace string
	// FirstSequence is that of the run. It distinguishes the run from an earlier one with
	// the same name.
	FirstSequence uint64
	// Timeout applies if the hook sets none. 0 means the default of the Caller.
	Timeout time.Duration
	// Sandbox is how commands are confined; nil means the defaults.
	Sandbox *harnessv1.SandboxConfig
}

// Call calls a hook and returns the outcome. It may be repeated with the same request.
// If ctx ends, so does the call, and the outcome is an error.
func (c *Caller) Call(ctx context.Context, h *harnessv1.Hook, req *harnessv1.HookRequest, info RunInfo) *harnessv1.HookOutcome {
	timeout := c.timeout(h, info)
	ctx, span := spans.Start(ctx, "hook "+req.GetHookId(), trace.SpanKindInternal, func() []attribute.KeyValue {
		return []attribute.KeyValue{
			spans.RunID.String(req.GetRunId()), spans.HookID.String(req.GetHookId()), spans.HookTopic.String(hook.TopicName(req.GetTopic())),
		}
	})
	defer span.End()
	verdict, err := c.dispatch(ctx, h, req, info, timeout)
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

func (c *Caller) timeout(h *harnessv1.Hook, info RunInfo) time.Duration {
	switch {
	case h.GetTimeout() != nil:
		return h.GetTimeout().AsDuration()
	case info.Timeout > 0:
		return info.Timeout
	}
	return c.cfg.DefaultTimeout
}

func (c *Caller) dispatch(ctx context.Context, h *harnessv1.Hook, req *harnessv1.HookRequest, info RunInfo, timeout time.Duration) (*harnessv1.HookVerdict, error) {
	switch {
	case h.GetCommand() != "":
		return c.command(ctx, h, req, info, timeout)
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

// remote calls a HookService.
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

// callback calls a client of the run.
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

// Fire calls the hooks of a point, one after another. If ctx ends the remaining hooks
// fail, so check ctx before using the result.
func (c *Caller) Fire(ctx context.Context, s *hook.Set, p hook.Point, info RunInfo) hook.Result {
	observed := map[string]*harnessv1.HookOutcome{}
	for {
		result, need := s.Fire(p, func(key string) *harnessv1.HookOutcome { return observed[key] })
		if need == nil {
			return result
		}
		observed[need.GetIdempotencyKey()] = c.Call(ctx, s.Hook(need.GetHookId()), need, info)
	}
}

// Reach connects to every HookService of hooks, at the same time, for up to 2 s. A
// service that cannot be reached is a warning; for a hook that fails closed it is a
// *fault.FieldError. Hooks must be valid.
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
			return warnings, fault.Invalid(at, "%v; start the service, or set on_failure to open", err)
		}
		warnings = append(warnings, at+": "+err.Error()+"; the hook is skipped while it cannot be reached")
	}
	return warnings, nil
}

// reachAll returns, for the targets of hooks, why they cannot be reached; nil if they can.
func reachAll(ctx context.Context, pool *remote.Pool, hooks []*harnessv1.Hook) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var targets []string
	for _, h := range hooks {
		if t := h.GetGrpc(); t != "" && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	type result struct {
		target string
		err    error
	}
	results := make(chan result, len(targets))
	for _, t := range targets {
		go func() { results <- result{t, pool.Reach(ctx, t)} }()
	}
	reached := map[string]error{}
	for range targets {
		r := <-results
		reached[r.target] = r.err
	}
	return reached
}
