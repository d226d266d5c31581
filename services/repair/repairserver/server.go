// Package repairserver runs the repair executor: it fetches the observations of
// repair's decisions, and carries out the actions of repair's machines, which wake
// parked runs, turn fired timers into inbox items, erase deleted runs and recover
// lost steps. After a failure the message is delivered again, or the next sweep retries.
package repairserver

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
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
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// Log is what a Server needs of a run log.
type Log interface {
	interrupt.Log
	runlog.Appender
	runlog.Reader
	runlog.Viewer
	runlog.Leader
	runlog.InboxAppender
	runlog.BlobReader
	runlog.BlobWriter
	runlog.WakeConsumer
	runlog.TimerSetter
	runlog.TimerConsumer
	runlog.RunFollower
	runlog.PokeFeed
	runlog.Poker
	runlog.Consumers
	runlog.Eraser
}

// Server is the repair executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedRepairServiceServer
	log      Log
	toolHost harnessv1.ToolHostServiceClient
	logger   *slog.Logger
	now      func() time.Time
	hooks    *hookcaller.Caller
	remote   *remote.Pool

	keepDeleted   time.Duration
	sweepInterval time.Duration
	hurry         time.Duration
	erasures      chan struct{} // a token for each erasure in progress
	scope         *scope

	definitions   *agent.Cache
	conversations *conversationcache.Cache
	interrupts    *interrupt.Watch
	background    background.Killer
	jobs          *jobs.Observer
	profiles      *profile.Profiles
}

// Config of a repair worker.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// ToolHost describes workspaces and kills background commands. Required.
	ToolHost harnessv1.ToolHostServiceClient
	// Hooks calls hooks. Nil: agents can have only those with CEL expressions.
	Hooks *hookcaller.Caller
	// Jobs is where calls of models that classify and plan work are created. Nil: no model is called.
	Jobs jobs.Log
	// Profiles are what outlives runs. Nil: nothing does.
	Profiles *profile.Profiles
	// Inference reports whether a worker carries out jobs. Nil: none does.
	Inference func(ctx context.Context) bool
	// Remote connects to context providers. Nil: agents can have only those with a text.
	Remote *remote.Pool
	// Conversations is a cache that the roles of this process share. Nil: a separate one of
	// 64 MiB.
	Conversations *conversationcache.Cache
	// HostPatience is how long the tool host of background commands may be away, while
	// another one answers, before their ends count as not known. Default 2 min.
	HostPatience time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// KeepDeleted is how long the closing record of a deleted run is kept, so that a
	// late retry of its start is refused and does not repeat the work. Default 10 min.
	KeepDeleted time.Duration
	// Sweep is the time between two sweeps for lost steps. Default 1 min.
	Sweep time.Duration
	// Hurry is the time before each of the first two sweeps, at a start and after a loss. Default 5 s, at most Sweep.
	Hurry time.Duration
	// Scope limits the runs that this process wakes. Nil: all runs.
	Scope *Scope
}

// New returns a repair worker.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.KeepDeleted <= 0 {
		cfg.KeepDeleted = 10 * time.Minute
	}
	if cfg.Sweep <= 0 {
		cfg.Sweep = time.Minute
	}
	if cfg.Hurry <= 0 {
		cfg.Hurry = 5 * time.Second
	}
	if cfg.Conversations == nil {
		cfg.Conversations = conversationcache.New(cfg.Log, conversationcache.DefaultBytes)
	}
	return &Server{
		log: cfg.Log, toolHost: cfg.ToolHost, logger: cfg.Logger, now: cfg.Now, keepDeleted: cfg.KeepDeleted, sweepInterval: cfg.Sweep, hurry: cfg.Hurry,
		erasures: make(chan struct{}, maxErasures), scope: newScope(cfg.Scope),
		hooks: cfg.Hooks, remote: cfg.Remote, definitions: &agent.Cache{Blob: cfg.Log.Blob}, conversations: cfg.Conversations,
		interrupts: interrupt.New(cfg.Log, cfg.Logger, cfg.Now),
		background: background.Killer{Host: cfg.ToolHost, Patience: cfg.HostPatience, Logger: cfg.Logger},
		jobs:       jobs.New(jobs.Config{Executor: repair.Name, Log: cfg.Jobs, Available: cfg.Inference, Now: cfg.Now}), profiles: cfg.Profiles,
	}
}

func (s *Server) Register(r grpc.ServiceRegistrar) { harnessv1.RegisterRepairServiceServer(r, s) }

// Repair returns the outcome that repair would commit for a step, without
// committing it.
func (s *Server) Repair(_ context.Context, req *harnessv1.RepairRequest) (*harnessv1.RepairResponse, error) {
	out, err := repair.Decide(req.GetInput())
	if err != nil {
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.RepairResponse{Output: out}, nil
}

// Run executes repair, wakes runs, handles timers and sweeps until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	stop, err := s.log.OnPoke(s.interrupts.Poke)
	if err != nil {
		return err
	}
	defer stop()
	deaf, err := s.jobs.Listen()
	if err != nil {
		return err
	}
	defer deaf()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		bind := func(ctx context.Context, task *executor.Task) (executor.Decide, executor.ObserveNeeds, error) {
			if err := s.sendOrders(ctx, cfg, runlog.Entry{Run: task.Run, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: task.Step()}}}); err != nil {
				return nil, nil, err
			}
			return s.bind(ctx, task)
		}
		return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: repair.Name, Bind: bind, Changes: s.jobs.Ends.Changes(agent.KeyJob)})
	})
	g.Go(func() error {
		return unlessEnded(ctx, s.log.ConsumeWakes(ctx, wakeConcurrency, func(ctx context.Context, d runlog.Delivery) {
			s.wake(ctx, cfg, d)
		}))
	})
	g.Go(func() error { return unlessEnded(ctx, s.log.ConsumeTimers(ctx, s.fired)) })
	g.Go(func() error {
		s.sweep(ctx, cfg)
		return nil
	})
	return g.Wait()
}

// unlessEnded returns err, or nil if ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
