// Package gatewayserver is the shell of the gateway: it fetches what package
// gateway decides on from the log, does what was decided, and carries records
// to watchers. It keeps nothing of a run but a list that can be made again from
// the logs, so any number of gateways may serve the same runs.
//
// # Streams
//
// A watcher's stream has one sender, its handler. It takes records from a
// goroutine that follows the log, which waits for it, and deltas from a bounded
// queue, which does not: a slow client is sent every record and loses text,
// which it gets whole with the model's response.
//
// A watch that is to end when the run rests ends only when nothing waits in the
// run's inbox, so that a watch after a resume or a message does not end at the
// rest that it has just left.
//
// A Run stream ends with the result of a run that ended while it was attached.
// One that attaches to a run that has ended already is told its result and
// stays open for a message, until the client closes its side.
//
// A watcher of runs is served from the list of runs, which one follower of the
// log keeps up to date: there is nothing on the bus for each of them.
//
// A watch outlives a log that cannot be reached, up to Config.Patience.
//
// # Failing
//
// Methods return *fault.Error, errors of the context, or others, which an
// interceptor is to hide as INTERNAL. A log that cannot be reached is
// UNAVAILABLE: the same request may be sent again.
package gatewayserver

import (
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

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// Log is what a Server needs of a run log.
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
	// Workspaces asks the tool host whether a workspace can be used. Nil means
	// that it is not asked.
	Workspaces func(ctx context.Context, workspace string) error
	// Tools lists the names of the tools that a policy can speak of. Nil means
	// that names are not checked.
	Tools func(ctx context.Context) ([]string, error)
	// Hooks calls at the HookServices of an agent; its error refuses the start. Nil
	// means that nobody calls.
	Hooks func(ctx context.Context, hooks []*harnessv1.Hook) error
	// Window is the most input that a model takes, in tokens, where this process
	// knows it and the others may not; 0 else. It goes into the spec of a run that says
	// nothing of it. Nil means that nothing is known.
	Window func(model string) uint32
	// Logger; nil discards.
	Logger *slog.Logger
	// Instance names this process in the records that it writes; unique over
	// restarts. Default: made of the process id and a random number.
	Instance string
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random makes ids and nonces; it need not be secret. Default rand.Uint64.
	Random func() uint64
	// Timeout bounds what a unary call does before its commit, and the commit.
	// Default 5 s.
	Timeout time.Duration
	// Patience is how long a watch outlives a log that cannot be reached.
	// Default 60 s.
	Patience time.Duration
	// Tracer makes the traces of runs; nil: runs that are started here are not traced.
	Tracer trace.Tracer
}

// Server serves harness.v1.GatewayService. Make it with New.
type Server struct {
	harnessv1.UnimplementedGatewayServiceServer

	log        Log
	workspaces func(ctx context.Context, workspace string) error
	tools      func(ctx context.Context) ([]string, error)
	hooks      func(context.Context, []*harnessv1.Hook) error
	window     func(model string) uint32
	logger     *slog.Logger
	instance   string
	now        func() time.Time
	random     func() uint64
	timeout    time.Duration
	patience   time.Duration
	tracer     trace.Tracer

	mu      sync.Mutex // guards closed, stop, and that nothing is spawned after it
	closed  bool
	stop    context.CancelFunc
	closing chan struct{}
	running sync.WaitGroup

	runs      runs
	executors executors
}

// New makes a server. Start it before it serves.
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
	if cfg.Patience <= 0 {
		cfg.Patience = time.Minute
	}
	return &Server{
		log:        cfg.Log,
		workspaces: cfg.Workspaces,
		tools:      cfg.Tools,
		window:     cfg.Window,
		hooks:      cfg.Hooks,
		logger:     cfg.Logger,
		instance:   cfg.Instance,
		now:        cfg.Now,
		random:     cfg.Random,
		timeout:    cfg.Timeout,
		patience:   cfg.Patience,
		tracer:     cfg.Tracer,
		closing:    make(chan struct{}),
		stop:       func() {},
		executors:  executors{log: cfg.Log, now: cfg.Now},
	}
}

// Start begins to list the runs of the log, until ctx ends or Close is called.
// It returns at once; Ready says when the list is complete.
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

// Ready is nil once the list of runs is complete and being followed, else it
// says what is missing.
func (s *Server) Ready() error { return s.runs.ready() }

// Close ends all streams and waits for what the server has started. Calls that
// come in later may still be answered.
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

// errClosing ends streams when the server closes.
func errClosing() error {
	return fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_SHUTTING_DOWN,
		"this gateway is shutting down; attach again after the last version that you have seen")
}

// bounded gives a call that only reads its time.
func (s *Server) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// committing gives a write its time, whether or not its caller stays.
func (s *Server) committing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
}

// view looks at a run, at least as far as this gateway has seen it. One that was
// deleted is refused.
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

// fresher looks at a run once more when the leader knows of something that a view
// does not show: a replica that is behind has answered. What is stored is judged
// again by who takes it in; a refusal is judged by nobody.
func (s *Server) fresher(ctx context.Context, run runlog.Run, than runlog.View) (v runlog.View, newer bool, err error) {
	newest, err := s.log.Newest(ctx, run)
	if err != nil || newest <= max(than.Newest.Sequence, than.InboxSequence) {
		return than, false, err
	}
	v, err = s.viewOf(ctx, run, newest)
	return v, err == nil, err
}

// viewOf looks at a run as far as the message with sequence contains at least.
func (s *Server) viewOf(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	v, err := s.log.View(ctx, run, contains)
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
		return v, gateway.Expired(run)
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

// failure is err as the caller of an operation on run is told. ctx is the
// caller's own: what ended with it is not the log's fault.
func failure(ctx context.Context, operation string, run runlog.Run, err error) error {
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
	case errors.Is(err, runlog.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			operation+" "+run.String()+": the log cannot be reached; send the same request again")
	}
	return fmt.Errorf("%s %s: %w", operation, run, err)
}

func because(cause error, code codes.Code, reason harnessv1.ErrorReason, message string, metadata ...string) error {
	e := fault.New(code, reason, message, metadata...)
	e.Err = cause
	return e
}
