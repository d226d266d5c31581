// Package turnserver carries out turns: it claims them in the run's log, asks
// the model, runs tools through the tool host and commits what came of it. It
// is the only place that holds the credentials of model providers.
//
// # Order of effects
//
// Every effect stands between two records: TurnStarted before the model is
// asked, ModelResponded after; ToolsStarted before a call is sent to the tool
// host, ToolFinished after. A worker that cannot append has no effect.
//
// # Failing
//
// A provider that cannot be reached ends the turn with provider_unavailable,
// one that refuses with provider_error; a model's garbage is answered to the
// model. An error of the log ends the work here; the step is delivered again.
package turnserver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Log is what a turn worker needs of a run log.
type Log interface {
	interrupt.Log
	runlog.Reader
	runlog.BlobWriter
	runlog.BlobReader
	runlog.DeltaPublisher
	runlog.PokeFeed
}

// Config of a turn worker.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// ToolHost runs tools.
	ToolHost harnessv1.ToolHostServiceClient
	// Open resolves PROVIDER:NAME to a provider and the provider's name of the
	// model. It is called once per model.
	Open func(ref string) (model.Provider, string, error)
	// Price returns the price of an answer in millionths of a US dollar; nil or 0
	// where it is not known.
	Price func(ref string, r *model.Response) uint64
	// Window is the most input that a model takes, in tokens; nil or 0 where it is
	// not known. A fallback model with less than the prompt has is passed over.
	Window func(ref string) uint32
	// Hooks calls subscribers. Nil: agents cannot have any but CEL rules.
	Hooks *hookcaller.Caller
	// HostPatience is how long the tool host that has a started call may be away
	// while another one answers. Then the call is unknown. Default 2 min.
	HostPatience time.Duration
	// Conversations are folded conversations that others in this process share; nil: a
	// cache of its own.
	Conversations *conversationcache.Cache
	// CacheBytes bounds the folded conversations in memory. Default 256 MiB.
	CacheBytes uint64
	// Content puts what models and tools are told and say into spans.
	Content bool
	// Logger; nil discards.
	Logger *slog.Logger
	// Random is in [0, 1), for the jitter of retries. Default math/rand.
	Random func() float64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server is the turn executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedTurnServiceServer
	cfg           Config
	conversations *conversationcache.Cache
	active        *interrupt.Watch
	shown         *shownCache
	definitions   *agent.Cache

	mu        sync.Mutex
	providers map[string]*provider
	host      *host
}

var _ executor.Executor = (*Server)(nil)

// New makes a turn worker.
func New(cfg Config) *Server {
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 256 << 20
	}
	if cfg.HostPatience == 0 {
		cfg.HostPatience = 2 * time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Price == nil {
		cfg.Price = func(string, *model.Response) uint64 { return 0 }
	}
	if cfg.Window == nil {
		cfg.Window = func(string) uint32 { return 0 }
	}
	return &Server{
		cfg:           cfg,
		conversations: conversations(cfg),
		active:        interrupt.New(cfg.Log, cfg.Logger, cfg.Now),
		shown:         &shownCache{entries: map[shownKey]string{}},
		definitions:   &agent.Cache{Blob: cfg.Log.Blob},
		providers:     map[string]*provider{},
	}
}

func conversations(cfg Config) *conversationcache.Cache {
	if cfg.Conversations != nil {
		return cfg.Conversations
	}
	return conversationcache.New(cfg.Log, cfg.CacheBytes)
}

// Name is turn.
func (w *Server) Name() string { return turn.Name }

// Run executes turns until ctx ends and all work has ended.
func (w *Server) Run(ctx context.Context, cfg executor.Config) error {
	stop, err := w.cfg.Log.OnPoke(w.active.Poke)
	if err != nil {
		return err
	}
	defer stop()
	return executor.Run(ctx, cfg, w)
}

// Register adds the gRPC form to a server.
func (w *Server) Register(s grpc.ServiceRegistrar) { harnessv1.RegisterTurnServiceServer(s, w) }
