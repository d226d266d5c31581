// Package turnserver performs turns: it claims them in the run's log, sends requests to
// the model, runs tools on the tool host and commits the outcome. Only this package
// has the credentials of model providers.
//
// Package turn decides; Execute performs its actions in one loop, one function each.
//
// # Order of effects
//
// Each effect is between two records: TurnStarted is stored before the model is
// called, ModelResponded after; ToolsStarted before a call is sent to the tool host,
// ToolFinished after. A worker that cannot append has no further effect.
//
// # Errors
//
// A provider that cannot be reached ends the turn with provider_unavailable, one that
// refuses with provider_error. Malformed output of a model becomes an error that the
// model reads. An error of the log fails the execution, and the step is delivered
// again.
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
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
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
	// ToolHost runs tools. Required.
	ToolHost harnessv1.ToolHostServiceClient
	// Open returns the provider of PROVIDER:NAME, and the provider's name of the model.
	// It is called once for each model. Required.
	Open func(ref string) (model.Provider, string, error)
	// Price returns the price of a response in millionths of a US dollar, 0 if it is
	// unknown. Nil: all are unknown.
	Price func(ref string, r *model.Response) uint64
	// Window returns the largest prompt that a model takes, in tokens, 0 if it is
	// unknown. Nil: all are unknown. A fallback model with a smaller window is skipped.
	Window func(ref string) uint32
	// Catalogue has the images and documents that models take. Nil: the embedded one.
	Catalogue *catalogue.Catalogue
	// Reasons reports whether a model is known to reason, so that it may be silent for
	// longer. Nil: none is.
	Reasons func(ref string) bool
	// Hooks calls subscribers. Nil: only CEL rules can subscribe.
	Hooks *hookcaller.Caller
	// HostPatience is how long the tool host of a started call may be unreachable while
	// another host answers. Then the end of the call is unknown. Default 2 min.
	HostPatience time.Duration
	// Conversations is a cache that the roles of this process share. Nil: a separate one.
	Conversations *conversationcache.Cache
	// CacheBytes bounds the folded conversations in memory. Default 256 MiB.
	CacheBytes uint64
	// Content adds the texts of requests, responses, arguments and results to spans.
	Content bool
	// Logger receives warnings. Nil discards them.
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
	shown         *shown.Texts
	digests       *shown.Digests
	views         *conversationcache.Views
	blobs         *blobCache
	definitions   *agent.Cache

	mu          sync.Mutex
	providers   map[string]*provider
	host        *host
	toolWeights map[toolsKey]uint32
}

var _ executor.Executor = (*Server)(nil)

// New returns a turn worker.
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
	if cfg.Reasons == nil {
		cfg.Reasons = func(string) bool { return false }
	}
	if cfg.Window == nil {
		cfg.Window = func(string) uint32 { return 0 }
	}
	cached := conversations(cfg)
	return &Server{
		cfg:           cfg,
		conversations: cached,
		active:        interrupt.New(cfg.Log, cfg.Logger, cfg.Now),
		shown:         shown.New(cfg.Log.Blob, maxShown),
		digests:       shown.NewDigests(maxDigested),
		toolWeights:   map[toolsKey]uint32{},
		views:         conversationcache.NewViews(maxViewed*conversationcache.IndexBytes + cached.Limit()),
		blobs:         newBlobCache(cfg.Log, maxBlobs),
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
