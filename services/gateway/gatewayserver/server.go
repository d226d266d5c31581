// Package gatewayserver is the shell of the gateway: it reads from the log what package
// gateway decides on, carries out the decision, and sends records to watchers. Its only
// state about runs is a list that can be rebuilt from the logs, so any number of
// gateways may serve the same runs.
//
// # Streams
//
// A watcher's stream has one sender, its handler. It takes records from a goroutine that
// follows the log, which waits for it, and deltas from a bounded queue, which does not:
// a slow client receives every record and may lose text, which it gets complete with the
// model's response.
//
// A watch that ends when the run is parked or ended does so only if the run's inbox is
// empty, so that a watch after a resume or a message does not end at the step that the
// input is about to leave.
//
// A Run stream ends with the result of a run that ended while it was attached. A stream
// that attaches to an ended run receives the result and stays open for a message until
// the client closes its side.
//
// Watchers of runs are served from the list of runs, which one follower of the log keeps
// up to date: a watcher costs nothing on the bus.
//
// A watch survives an unavailable log for up to Config.Patience.
//
// # Errors
//
// Methods return *fault.Error, *fault.FieldError, errors of the context, or others,
// which an interceptor converts to INTERNAL. If the log is unavailable, the code is
// UNAVAILABLE and the same request may be retried.
package gatewayserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// Log is the part of a run log that a Server uses.
type Log interface {
	runlog.Appender
	runlog.Reader
	runlog.Viewer
	runlog.Leader
	runlog.InboxAppender
	runlog.InboxReader
	runlog.BlobWriter
	runlog.BlobReader
	runlog.Feed
	runlog.RunFollower
	runlog.DeltaFeed
	runlog.Poker
	runlog.HookServer
	runlog.Consumers
}

// Config configures a Server.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// Workspaces has the tool host describe the workspace of a run that is to start. It returns an error
	// for one that cannot be used, and a problem if commands cannot be confined there. The run works in
	// the folder of the response. Nil disables the check; the tool host follows the links of the
	// workspace then when the run begins.
	Workspaces func(context.Context, *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error)
	// Tools lists the tools of the tool host. Nil disables the check of names.
	Tools func(ctx context.Context) ([]*harnessv1.ToolSpec, error)
	// SignIns is the tool host at which persons sign in at servers of tools. Nil: there is none.
	SignIns SignIns
	// ToolHosts returns the tool hosts of the mesh with their names, each of which has its own
	// sign-ins. Nil: SignIns is the only one.
	ToolHosts func(context.Context) ([]*harnessv1.SignInHost, error)
	// Services lists the tool services that the operator of the tool host has set up. Nil: none.
	Services func(ctx context.Context) ([]*harnessv1.McpServer, error)
	// Hooks connects to the HookServices of an agent; its error refuses the start. Nil
	// disables the check.
	Hooks func(ctx context.Context, hooks []*harnessv1.Hook) error
	// Window is the input window of a model in tokens, if this process knows it and
	// others may not; 0 otherwise. It is added to a spec that does not set it. Nil means
	// that no window is known.
	Window func(model string) uint32
	// Catalogue has the images and documents that models take. Nil: the embedded one.
	Catalogue *catalogue.Catalogue
	// Effort returns an error if a model is known not to take an effort; its text names
	// those that the model takes. Nil disables the check.
	Effort func(model string, effort harnessv1.Effort) error
	// Model returns an error if a run is known to be unable to use a model: its provider or
	// key is missing. Nil disables the check.
	Model func(model string) error
	// TokenLeast is the level below which nothing of a run that is started with a token runs.
	// Default KERNEL; OFF demands nothing.
	TokenLeast harnessv1.SandboxLevel
	// Quality is how the installation judges work; see RepairTrigger.quality. Nil: it sets nothing.
	Quality *harnessv1.QualityConfig
	// Profiles has profiles and prompts. Nil: there are none.
	Profiles *profile.Profiles
	// Features are those that some runs have; gateway.CheckFeatures accepts them.
	Features []*harnessv1.Feature
	// Priced reports whether the price of a model is known. A budget in US dollars of a run
	// with other models is refused. Nil disables the check.
	Priced func(model string) bool
	// Logger; nil discards.
	Logger *slog.Logger
	// Instance is this process's name in the records that it writes; unique across
	// restarts. Default: the process id and a random number.
	Instance string
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random returns random numbers for ids and nonces; they need not be secret. Default
	// rand.Uint64.
	Random func() uint64
	// Timeout bounds what a unary call does before its commit, and the commit. Default 5
	// s.
	Timeout time.Duration
	// Patience is how long a watch survives an unavailable log. Default 60 s.
	Patience time.Duration
	// Stalled returns why the log stores nothing at the moment, as a *runlog.Stall; nil if
	// it stores or nothing is known. Nil disables that.
	Stalled func() error
	// Tracer creates the traces of runs; nil: runs that are started here are not traced.
	Tracer trace.Tracer
}

// Server implements harness.v1.GatewayService. New creates one.
type Server struct {
	harnessv1.UnimplementedGatewayServiceServer

	log        Log
	workspaces func(context.Context, *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error)
	tools      func(ctx context.Context) ([]*harnessv1.ToolSpec, error)
	services   func(ctx context.Context) ([]*harnessv1.McpServer, error)
	hooks      func(context.Context, []*harnessv1.Hook) error
	signIns    SignIns
	toolHosts  func(context.Context) ([]*harnessv1.SignInHost, error)
	window     func(model string) uint32
	catalogue  *catalogue.Catalogue
	effort     func(model string, effort harnessv1.Effort) error
	model      func(model string) error
	priced     func(model string) bool
	tokenLeast harnessv1.SandboxLevel
	quality    *harnessv1.QualityConfig
	features   []*harnessv1.Feature
	logger     *slog.Logger
	instance   string
	now        func() time.Time
	random     func() uint64
	timeout    time.Duration
	patience   time.Duration
	tracer     trace.Tracer
	stalled    func() error

	mu      sync.Mutex // guards closed, stop, and that nothing is spawned after it
	closed  bool
	stop    context.CancelFunc
	closing chan struct{}
	running sync.WaitGroup

	runs      runs
	executors executors
	profiles  *profile.Profiles

	conversations *conversationcache.Cache
	texts         *shown.Texts
	definitions   agent.Cache
}

// New returns a server. Call Start before it serves.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	if cfg.Instance == "" {
		cfg.Instance = fmt.Sprintf("%s-%d-%08x", gateway.Writer, os.Getpid(), uint32(cfg.Random())) //nolint:gosec // cut on purpose
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Stalled == nil {
		cfg.Stalled = func() error { return nil }
	}
	if cfg.Patience <= 0 {
		cfg.Patience = time.Minute
	}
	return &Server{
		log:        cfg.Log,
		workspaces: cfg.Workspaces,
		tools:      cfg.Tools,
		signIns:    cfg.SignIns,
		toolHosts:  cfg.ToolHosts,
		services:   cfg.Services,
		window:     cfg.Window,
		catalogue:  cfg.Catalogue,
		effort:     cfg.Effort,
		model:      cfg.Model,
		priced:     cfg.Priced,
		tokenLeast: cmp.Or(cfg.TokenLeast, sandbox.Kernel),
		quality:    cfg.Quality,
		features:   cfg.Features,
		hooks:      cfg.Hooks,
		logger:     cfg.Logger,
		instance:   cfg.Instance,
		now:        cfg.Now,
		random:     cfg.Random,
		timeout:    cfg.Timeout,
		patience:   cfg.Patience,
		tracer:     cfg.Tracer,
		stalled:    cfg.Stalled,
		closing:    make(chan struct{}),
		stop:       func() {},
		executors:  executors{log: cfg.Log, now: cfg.Now},
		profiles:   cfg.Profiles,

		conversations: conversationcache.New(cfg.Log, maxConversations),
		texts:         shown.New(cfg.Log.Blob, maxShown),
		definitions:   agent.Cache{Blob: cfg.Log.Blob},
	}
}

// Start starts to list the runs of the log, until ctx ends or Close is called. It
// returns immediately; Ready reports when the list is complete.
func (s *Server) Start(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	if !s.spawn(func() { s.follow(ctx) }) {
		stop()
	}
}

// spawn runs f in a goroutine that Close waits for, unless the server is closed.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// Ready returns nil once the list of runs is complete and followed, otherwise an error with
// the reason.
func (s *Server) Ready() error { return s.runs.ready() }

// Close ends all streams and waits for the server's goroutines. Later calls may still
// succeed.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		s.stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// errClosing returns the error that ends streams when the server closes.
func errClosing() error {
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_SHUTTING_DOWN,
		"this gateway is shutting down; attach again after the last version that you have seen")
}

// bounded applies Timeout to a call that only reads.
func (s *Server) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// committing applies Timeout to a write, whether or not its caller stays connected.
func (s *Server) committing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
}

// view returns a view of a run that is at least as new as this gateway has seen. A
// deleted run is refused.
func (s *Server) view(ctx context.Context, run runlog.Run) (runlog.View, error) {
	v, err := s.viewOf(ctx, run, s.runs.seen(run))
	if !errors.Is(err, runlog.ErrNotFound) {
		return v, err
	}
	if v, newer, lerr := s.fresher(ctx, run, v); newer || lerr != nil {
		return v, lerr
	}
	return v, err
}

// fresher reads a run again if the leader has stored more than a view shows: a stale
// replica may have returned the view. Repair re-validates every accepted input, so a
// stale accept is harmless. A refusal is final and needs a fresh view.
func (s *Server) fresher(ctx context.Context, run runlog.Run, than runlog.View) (v runlog.View, newer bool, err error) {
	newest, err := s.log.Newest(ctx, run)
	if err != nil || newest <= max(than.Newest.Sequence, than.InboxSequence) {
		return than, false, err
	}
	v, err = s.viewOf(ctx, run, newest)
	return v, err == nil, err
}

// viewOf returns a view of a run that includes at least the message with sequence
// contains.
func (s *Server) viewOf(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	v, err := s.log.View(ctx, run, contains)
	if errors.Is(err, runlog.ErrLost) { // the sequence known to the list of runs, or to the caller
		if contains, err = s.log.Newest(ctx, run); err != nil {
			return v, err
		}
		v, err = s.log.View(ctx, run, contains)
	}
	if err != nil {
		return v, err
	}
	for _, e := range []runlog.Entry{v.Step, v.Newest} {
		if e.Record == nil {
			return v, unreadable(e)
		}
		s.runs.heard(e)
	}
	if runstate.Expired(v.Step.Record.GetStep().GetSnapshot()) {
		return v, input.Expired(run)
	}
	return v, nil
}

func unreadable(e runlog.Entry) error {
	err := e.Err
	if err == nil {
		err = errors.New("no record")
	}
	return fmt.Errorf("version %d of %s: %w", e.Header.Version, e.Run, err)
}

// failure returns err as the caller of an operation on run sees it. ctx is the caller's:
// errors that its end caused are not the log's.
func (s *Server) failure(ctx context.Context, operation string, run runlog.Run, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, runlog.ErrNotFound):
		return gateway.NotFound(run)
	case errors.Is(err, runlog.ErrTooLarge):
		return because(err, codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE,
			operation+" "+run.String()+": larger than a record may be", "limit", fmt.Sprint(runlog.MaxRecord))
	case errors.Is(err, runlog.ErrSchemaTooNew):
		return because(err, codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_SCHEMA_TOO_NEW,
			"run "+run.String()+" was written by a newer version of this program; update this one")
	case errors.Is(err, runlog.ErrLost):
		return because(err, codes.DataLoss, harnessv1.ErrorReason_ERROR_REASON_NOT_STORED,
			operation+" "+run.String()+": the bus has lost the newest versions of the run; read it again")
	case errors.Is(err, runlog.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			operation+" "+run.String()+": "+s.whyUnavailable(err)+"; send the same request again")
	}
	return fmt.Errorf("%s %s: %w", operation, run, err)
}

// whyUnavailable returns why the log cannot be used, for the caller.
func (s *Server) whyUnavailable(err error) string {
	var stall *runlog.Stall
	if errors.As(err, &stall) || errors.As(s.stalled(), &stall) {
		return stall.Text
	}
	return "the log cannot be reached"
}

func because(cause error, code codes.Code, reason harnessv1.ErrorReason, message string, metadata ...string) error {
	e := fault.New(code, reason, message, metadata...)
	e.Err = cause
	return e
}
