// Package stopdecisionserver runs the stop decision as an executor and serves it
// over gRPC. It makes the observations that the decision needs: it checks outputs of
// the contract and calls subscribers. The tool host reads files and runs commands. A
// command runs under a key, so a worker that takes over the step joins it.
//
// An interrupt or a cancel ends the observations: what runs is killed, and the decision
// gets an observation under stopdecision.KeyStop.
package stopdecisionserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/background"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/executor/jobs"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// Log is what a stop decision worker needs of a run log.
type Log interface {
	interrupt.Log
	runlog.Reader
	runlog.BlobReader
	runlog.PokeFeed
}

// Config of a stop decision worker.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// ToolHost reads files and runs commands. Required.
	ToolHost harnessv1.ToolHostServiceClient
	// Hooks calls subscribers. Required.
	Hooks *hookcaller.Caller
	// Jobs is where calls of models that judge work are created. Nil: no model is called.
	Jobs jobs.Log
	// Profiles are what outlives runs. Nil: nothing does.
	Profiles *profile.Profiles
	// Inference reports whether a worker carries out jobs. Nil: none does.
	Inference func(ctx context.Context) bool
	// Remote has the connections to CheckServices. Required.
	Remote *remote.Pool
	// Conversations is the cache of folded conversations. Default: a separate cache of
	// 64 MiB.
	Conversations *conversationcache.Cache
	// HostPatience is how long the tool host of background commands may be away, while
	// another one answers, before their ends count as not known. Default 2 min.
	HostPatience time.Duration
	// Logger of the worker. Default: discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server is the stop decision executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedStopDecisionServiceServer
	cfg         Config
	definitions *agent.Cache
	interrupts  *interrupt.Watch
	background  background.Killer
	jobs        *jobs.Observer
}

// New returns a stop decision worker.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Conversations == nil {
		cfg.Conversations = conversationcache.New(cfg.Log, conversationcache.DefaultBytes)
	}
	return &Server{
		cfg: cfg, definitions: &agent.Cache{Blob: cfg.Log.Blob},
		interrupts: interrupt.New(cfg.Log, cfg.Logger, cfg.Now),
		background: background.Killer{Host: cfg.ToolHost, Patience: cfg.HostPatience, Logger: cfg.Logger},
		jobs:       jobs.New(jobs.Config{Executor: stopdecision.Name, Log: cfg.Jobs, Available: cfg.Inference, Now: cfg.Now}),
	}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterStopDecisionServiceServer(r, s)
}

// Decide returns the outcome that the stop decision would commit for a step, and commits nothing.
// The step must hold its contract and definition itself, not as references.
func (s *Server) Decide(_ context.Context, req *harnessv1.DecideRequest) (*harnessv1.DecideResponse, error) {
	out, err := stopdecision.Decide(req.GetInput())
	switch {
	case errors.Is(err, stopdecision.ErrOver):
		return nil, fault.Invalid("input.step.snapshot.phase", "%v", err)
	case err != nil:
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.DecideResponse{Output: out}, nil
}

// Run executes the stop decision until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	stop, err := s.cfg.Log.OnPoke(s.interrupts.Poke)
	if err != nil {
		return err
	}
	defer stop()
	deaf, err := s.jobs.Listen()
	if err != nil {
		return err
	}
	defer deaf()
	return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: stopdecision.Name, Bind: s.bind, Changes: s.jobs.Ends.Changes(agent.KeyJob)})
}

// bind returns the decision and the observations for one task.
func (s *Server) bind(ctx context.Context, task *executor.Task) (executor.Decide, executor.ObserveNeeds, error) {
	definition, err := s.definitions.Load(ctx, task.Run, task.Step().GetSnapshot())
	if err != nil {
		return nil, nil, err
	}
	decide := func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		return stopdecision.DecideWith(in, definition)
	}
	o := &observer{s: s, task: task, definition: definition}
	return decide, o.observe, nil
}
