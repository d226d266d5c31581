// Package inferenceserver carries out jobs: it calls models, or custom services, and
// stores each result once. Package inference decides; it interprets no purpose. Apart from
// the turn workers, only this package has the credentials of model providers.
//
// # Order of effects
//
// A worker reads whether the job has a result, resolves the request, calls the model,
// stores the result under the job's key, and acknowledges the job last. So a job is
// delivered until it has a result or its run is deleted. Failures are results too.
//
// The first result of a key is the one that counts. A call is made again only if its
// worker dies during the call, or loses the bus for longer than the takeover time: the
// usage of a call whose result was not the first, or whose run was deleted meanwhile, is
// counted in the metrics of its worker and nowhere else.
//
// # Errors
//
// A worker that stops, or that cannot read the log, puts the job back. A result that
// cannot be stored because the log is away is kept until it can be. A panic puts the job
// back; after inference.MaxPanics of them in one process it becomes a failed result.
package inferenceserver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/inference"
)

// Log is what an inference worker needs of a run log.
type Log interface {
	runlog.BlobReader
	runlog.KeyedBlobReader
	runlog.KeyedBlobWriter
	runlog.JobConsumer
	runlog.Redelivery
}

// defaultConcurrency bounds the jobs in work at the same time.
const defaultConcurrency = 8

// Config of an inference worker.
type Config struct {
	// Log stores jobs and results. Required.
	Log Log
	// Open returns the provider of PROVIDER:NAME, and the provider's name of the model.
	// It is called once for each model. Required.
	Open func(ref string) (model.Provider, string, error)
	// Price returns the price of a response in millionths of a US dollar, 0 if it is
	// unknown. Nil: all are unknown.
	Price func(ref string, r *model.Response) uint64
	// Remote has the connections to custom services. Nil: a job that names one fails.
	Remote *remote.Pool
	// Concurrency bounds the jobs in work at the same time. Default 8.
	Concurrency int
	// Content adds the texts of requests and responses to spans.
	Content bool
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
	// Random is in [0, 1), for the jitter of retries. Default math/rand.
	Random func() float64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Server carries out jobs, and serves InferenceService.
type Server struct {
	harnessv1.UnimplementedInferenceServiceServer
	cfg Config

	mu        sync.Mutex
	providers map[string]*provider
}

// New returns an inference worker.
func New(cfg Config) *Server {
	if cfg.Price == nil {
		cfg.Price = func(string, *model.Response) uint64 { return 0 }
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
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
	return &Server{cfg: cfg, providers: map[string]*provider{}}
}

func (s *Server) Name() string { return inference.Name }

// Register adds InferenceService to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterInferenceServiceServer(r, s)
}

// Run carries out jobs until ctx ends, and returns once all work has ended. It uses
// Drain, Tracer and Metrics of cfg.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	work, cancel := executor.Draining(ctx, cfg.Drain)
	defer cancel()
	w := &worker{Server: s, tracer: cfg.Tracer, metrics: cfg.Metrics, panics: map[place]int{}, working: map[place]bool{}}
	err := s.cfg.Log.ConsumeJobs(ctx, s.cfg.Concurrency, func(_ context.Context, d runlog.JobDelivery) {
		w.handle(work, d)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// provider is an open connection to a model.
type provider struct {
	provider model.Provider
	name     string // of the model, at the provider
}

// provider returns the provider of a model, opened once.
func (s *Server) provider(ref string) (*provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.providers[ref]; p != nil {
		return p, nil
	}
	p, name, err := s.cfg.Open(ref)
	if err != nil {
		return nil, err
	}
	s.providers[ref] = &provider{provider: p, name: name}
	return s.providers[ref], nil
}
