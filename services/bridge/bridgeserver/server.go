// Package bridgeserver runs a custom executor that is served over gRPC. It consumes the
// steps that are addressed to the executor, calls harness.v1.ExecutorService.Execute
// for each, and commits the outcome that package bridge derives from the answer.
//
// While the target cannot be reached, its steps are put back and their runs wait. A
// rejected answer, an error and a call that takes too long are failures: after
// executor.MaxFailures of them at one step the run fails. An interrupt or a cancel ends
// the call, and the step is passed on unchanged.
package bridgeserver

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/bridge"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 5 * time.Minute

// Log is what a bridge needs of a run log.
type Log interface {
	interrupt.Log
	runlog.PokeFeed
}

// Config of a bridge.
type Config struct {
	// Name is the executor's name in workflows. Required.
	Name string
	// Target is where it is served, HOST:PORT. Required.
	Target string
	// Timeout bounds a call. Default DefaultTimeout.
	Timeout time.Duration
	// Log stores the runs. Required.
	Log Log
	// Remote keeps the connection. Required.
	Remote *remote.Pool
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server is the bridge as an executor, and its gRPC form.
type Server struct {
	harnessv1.UnimplementedExecutorServiceServer
	cfg        Config
	target     harnessv1.ExecutorServiceClient
	interrupts *interrupt.Watch
}

// New makes a bridge. Its error names the fault of the name or the target.
func New(cfg Config) (*Server, error) {
	if err := bridge.CheckName(cfg.Name); err != nil {
		return nil, fmt.Errorf("--executor: %w", err)
	}
	way, err := cfg.Remote.Dial(cfg.Target)
	if err != nil {
		return nil, fmt.Errorf("--target: %w", err)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{cfg: cfg, target: harnessv1.NewExecutorServiceClient(way), interrupts: interrupt.New(cfg.Log, cfg.Logger, cfg.Now)}, nil
}

// Register adds the gRPC form to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) { harnessv1.RegisterExecutorServiceServer(r, s) }

// Execute calls the target for a step and returns the outcome that the bridge would
// commit. It commits nothing.
func (s *Server) Execute(ctx context.Context, req *harnessv1.ExecuteRequest) (*harnessv1.ExecuteResponse, error) {
	if req.GetInput().GetStep().GetSnapshot() == nil {
		return nil, fault.Invalid("input.step.snapshot", "is required")
	}
	out, err := s.call(ctx, req.GetInput())
	if err != nil {
		return nil, err
	}
	outcome, err := bridge.Resolve(s.cfg.Name, req.GetInput(), out)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &harnessv1.ExecuteResponse{Output: &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: outcome}}}, nil
}

// Reach returns an error if the executor cannot be called now.
func (s *Server) Reach(ctx context.Context) error {
	if err := s.cfg.Remote.Reach(ctx, s.cfg.Target); err != nil {
		return fmt.Errorf("executor %s at %w; start it, or pass another --target", s.cfg.Name, err)
	}
	return nil
}

// Run executes steps until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	stop, err := s.cfg.Log.OnPoke(s.interrupts.Poke)
	if err != nil {
		return err
	}
	defer stop()
	return executor.Run(ctx, cfg, loopExecutor{s})
}

// loopExecutor is the executor that the loop runs.
type loopExecutor struct{ s *Server }

func (b loopExecutor) Name() string { return b.s.cfg.Name }

// Execute calls the target for one step.
func (b loopExecutor) Execute(ctx context.Context, task *executor.Task) (*harnessv1.Outcome, error) {
	in := task.Input()
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lookout, stop := b.s.interrupts.Inbox(calling, cancel, task.Run, in.GetStep().GetSnapshot())
	defer stop()
	task.OnHeartbeat(func(ctx context.Context, _ runlog.View) { _ = lookout.Check(ctx) })
	out, err := b.s.call(calling, in)
	if err == nil {
		return bridge.Resolve(b.s.cfg.Name, in, out)
	}
	if ctx.Err() == nil {
		// A target that cannot be reached fails before the inbox has been read.
		if lerr := lookout.Checked(ctx); lerr != nil && ctx.Err() == nil {
			return nil, executor.Retry("inbox", lerr)
		}
	}
	switch {
	case interrupt.Stopped(calling):
		return bridge.PassOn(b.s.cfg.Name, in), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted:
		return nil, executor.Retry("executor "+b.s.cfg.Name+" at "+b.s.cfg.Target, err)
	case codes.DeadlineExceeded:
		return nil, fmt.Errorf("executor %s at %s did not answer within %s", b.s.cfg.Name, b.s.cfg.Target, b.s.cfg.Timeout)
	case codes.Unimplemented:
		return nil, fmt.Errorf("the server at %s does not serve harness.v1.ExecutorService: %s", b.s.cfg.Target, remote.Reason(err))
	}
	return nil, fmt.Errorf("executor %s: %s: %s", b.s.cfg.Name, status.Code(err), remote.Reason(err))
}

func (s *Server) call(ctx context.Context, in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	over := executor.Waits(ctx)
	answer, err := s.target.Execute(ctx, &harnessv1.ExecuteRequest{Input: in})
	over()
	return answer.GetOutput(), err
}
