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
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
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
	providers map[string]*opened
	host      *host
}

type opened struct {
	provider model.Provider
	name     string
}

// host is a tool host: its ledger, and what it offers.
type host struct {
	tools    []*harnessv1.ToolSpec
	ledgerID string

	mu      sync.Mutex
	offered map[offer]*offered
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
		cfg.Random = rand.Float64 //nolint:gosec // jitter
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
		providers:     map[string]*opened{},
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

// Prepare shows what the model would be sent.
func (w *Server) Prepare(ctx context.Context, req *harnessv1.PrepareRequest) (*harnessv1.PrepareResponse, error) {
	if req.GetInput().GetStep().GetSnapshot() == nil {
		return nil, fault.Invalid("input.step.snapshot", "is required: the state that the turn stands on")
	}
	h, err := w.toolHost(ctx, false)
	if err != nil {
		return nil, err
	}
	s := proto.CloneOf(req.GetInput().GetStep().GetSnapshot())
	runstate.FillDefaults(s, harnessv1.Phase_PHASE_EXECUTING)
	run := runlog.Run{Namespace: req.GetInput().GetNamespace(), ID: req.GetInput().GetRunId()}
	made, err := w.definitions.Load(ctx, run, s)
	if err != nil {
		return nil, err
	}
	o, err := w.offer(ctx, run, s, made, h)
	if err != nil {
		return nil, err
	}
	messages := req.GetConversation()
	if p := turn.Begin(&harnessv1.Step{Snapshot: s}); p.NeedsModel() {
		t := &working{w: w, run: run, s: s, p: p, made: made}
		messages = append(messages[:len(messages):len(messages)], turn.Open(s, p, made, t.facts(ctx), false).Appended...)
	}
	request := turn.Prepare(s, messages, o.tools.Specs())
	if request.Messages, err = w.inline(ctx, run, s.GetModel(), s.GetConfig().GetTools().GetShownTokens(), request.GetMessages()); err != nil {
		return nil, err
	}
	return &harnessv1.PrepareResponse{Request: request}, nil
}

// provider resolves a model reference, once.
func (w *Server) provider(ref string) (*opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.providers[ref]; p != nil {
		return p, nil
	}
	p, name, err := w.cfg.Open(ref)
	if err != nil {
		return nil, err
	}
	w.providers[ref] = &opened{provider: p, name: name}
	return w.providers[ref], nil
}

// toolHost returns what the tool host offers, asking it once and again when anew.
func (w *Server) toolHost(ctx context.Context, anew bool) (*host, error) {
	w.mu.Lock()
	have := w.host
	w.mu.Unlock()
	if have != nil && !anew {
		return have, nil
	}
	r, err := w.cfg.ToolHost.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
	if err != nil {
		return nil, executor.Retry("tool host", err)
	}
	h := &host{tools: r.GetTools(), ledgerID: r.GetLedgerId(), offered: map[offer]*offered{}}
	w.mu.Lock()
	w.host = h
	w.mu.Unlock()
	return h, nil
}

// inline puts texts in place of references, and shows tool results no longer
// than the model is to be shown them.
func (w *Server) inline(ctx context.Context, run runlog.Run, model string, shown uint32, messages []*harnessv1.Message) ([]*harnessv1.Message, error) {
	out := messages
	copied := false
	for i, m := range messages {
		long := m.GetRole() == harnessv1.Role_ROLE_TOOL && len(m.GetContent().GetInline()) > int(shown)
		if m.GetContent().GetBlob() == nil && !long && !hasBlobArguments(m) {
			continue
		}
		if !copied {
			out, copied = append([]*harnessv1.Message(nil), messages...), true
		}
		m = proto.CloneOf(m)
		var err error
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			m.Content, err = w.result(ctx, run, model, shown, m.GetContent())
		} else {
			m.Content, err = w.text(ctx, run, m.GetContent())
		}
		if err != nil {
			return nil, err
		}
		for _, c := range m.GetToolCalls() {
			if c.Arguments, err = w.text(ctx, run, c.GetArguments()); err != nil {
				return nil, err
			}
		}
		out[i] = m
	}
	return out, nil
}

// result is the text of a tool result as the model is shown it.
func (w *Server) result(ctx context.Context, run runlog.Run, model string, shown uint32, c *harnessv1.Content) (*harnessv1.Content, error) {
	key := shownKey{digest: c.GetBlob().GetDigest(), limit: shown}
	if key.digest != "" {
		if text, ok := w.shown.get(key); ok {
			return content.Inline(text), nil
		}
	}
	whole, err := w.text(ctx, run, c)
	if err != nil {
		return nil, err
	}
	text := shorten(model, whole.GetInline(), shown)
	if key.digest != "" {
		w.shown.put(key, text)
	}
	return content.Inline(text), nil
}

func hasBlobArguments(m *harnessv1.Message) bool {
	for _, c := range m.GetToolCalls() {
		if c.GetArguments().GetBlob() != nil {
			return true
		}
	}
	return false
}

func (w *Server) text(ctx context.Context, run runlog.Run, c *harnessv1.Content) (*harnessv1.Content, error) {
	if c.GetBlob() == nil {
		return c, nil
	}
	data, err := w.cfg.Log.Blob(ctx, run, c.GetBlob().GetDigest())
	if err != nil {
		return nil, err
	}
	return content.Inline(string(data)), nil
}
