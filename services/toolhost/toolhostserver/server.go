// Package toolhostserver is the tool host: it serves ToolHostService over
// workspaces of this machine and is the only place where tools have effects.
//
// A call is one entry of a durable ledger, named by namespace, run, first
// sequence of the run and call id. What holds, also over crashes:
//
//   - A call of a tool that is not idempotent has its effect at most once: its
//     mark is stored before the effect begins, its result before it is returned.
//     A mark that an earlier process left behind is answered with UNKNOWN.
//   - A second request for a call joins the running one or gets its result. The
//     end of a request never ends the call; its time limit, CancelTools and
//     Close do.
//   - CancelTools returns when nothing of the calls runs any more, and none of
//     them can start later. It says of which nobody knows what they did.
//   - What an earlier host at this place had begun is dead before a host serves,
//     also when the ledger was lost in between.
//   - No file outside the workspace is read or written by a file tool, whatever
//     links are put into its way: every access goes through os.Root.
//   - A check, which is a command of the harness itself, is an entry of the same
//     ledger and runs as commands do; no model can ask for one.
//   - A repository's own configuration runs nothing: git sees another one.
//   - A command dies with everything that it started, also when this process
//     is killed (see Supervise for how and for what that does not cover).
//
// Failures: what a model can do wrong is a result with is_error. Errors are
// INVALID_ARGUMENT for a request that no caller should make and UNAVAILABLE when
// the ledger cannot be written (then nothing ran), when what an earlier host had
// begun cannot be killed, and when the host is draining or closing.
package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// role is this role's name for failpoints.
const role = workflow.ToolHost

const closingText = "the tool host is closing; send the request again"

// Config configures a Server. Only Dir is required.
type Config struct {
	// Folder of the ledger; made when it is missing. One host at a time.
	Dir string
	// Store for a loss of power, not only of the process: the ledger and written
	// files are synced to disk. Costs some milliseconds for each effect.
	Sync bool
	// Time for which results in the ledger are kept; older ones are forgotten
	// when the host starts and then answered with UNKNOWN. Default 30 days.
	KeepResults time.Duration
	// Names of environment variables that commands get although they look like
	// credentials.
	PassEnvironment []string
	// What calls may take; zero fields mean defaults.
	Limits toolhost.Limits
	// Default: discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.KeepResults == 0 {
		c.KeepResults = 30 * 24 * time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.WithDefaults()
	return c
}

// Validate names the first field that is wrong.
func (c Config) Validate() error {
	c = c.withDefaults()
	if c.Dir == "" {
		return errors.New("dir: the folder of the ledger is required")
	}
	if c.KeepResults < 0 {
		return fmt.Errorf("keep_results: %v is negative", c.KeepResults)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	return nil
}

// Server is a tool host. It may be used by many goroutines.
type Server struct {
	harnessv1.UnimplementedToolHostServiceServer

	config Config
	log    *slog.Logger
	tools  *tool.Set
	ledger *ledger
	life   life

	// running counts the goroutines of calls; Close waits for them.
	running sync.WaitGroup

	// mu guards what follows. It is never held while something is written or run.
	mu sync.Mutex
	// draining: no call starts. closing: nothing is answered either.
	draining, closing bool
	// calls that run in this process.
	calls map[string]*call
	// remembered are results that the ledger does not hold.
	remembered *memory
	// buried are calls whose tombstones are on their way to the ledger.
	buried map[string]toolhost.Fate
}

// New opens the ledger, sees to it that no command of an earlier process on it,
// or on one that was lost in its place, is still running, and serves. It fails
// when another host has the ledger or its folder open.
func New(config Config) (*Server, error) {
	if !supervisable.Load() {
		return nil, errors.New("tool host: the program did not call toolhostserver.Supervise first in main, so each command would start the program itself")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	config = config.withDefaults()
	tools, err := tool.NewSet(toolhost.Catalogue())
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	l, err := openLedger(config.Dir, config.Sync, config.KeepResults, config.Logger)
	if err != nil {
		return nil, fmt.Errorf("tool host: %w", err)
	}
	s := &Server{
		config:     config,
		log:        config.Logger,
		tools:      tools,
		ledger:     l,
		life:       newLife(l),
		calls:      make(map[string]*call),
		remembered: newMemory(config.Limits.RememberedBytes),
		buried:     make(map[string]toolhost.Fate),
	}
	removeStandIns(config.Dir)
	_ = s.endFormerLife() // CancelTools tries again before it says anything of a call
	return s, nil
}

// LedgerID names the ledger, as DescribeHost does.
func (s *Server) LedgerID() string { return s.ledger.id }

// Drain starts no more calls, which is UNAVAILABLE to those who ask, and returns
// when none runs. Requests for calls that run, ran or are to be cancelled are
// answered as before, also after it has returned. When ctx ends first, it
// returns the cause and goes on to start nothing; Close kills what still runs.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	running := slices.Collect(maps.Values(s.calls))
	s.mu.Unlock()
	for _, c := range running {
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("tool host: calls still run: %w", context.Cause(ctx))
		}
	}
	return nil
}

// Close takes no more calls, kills those that run with everything that they
// started, waits for them and closes the ledger. When ctx ends first, the
// ledger stays open and what still runs is killed as the process ends. The
// killed calls that are not idempotent are UNKNOWN to the next host.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	already := s.closing
	s.closing = true
	for _, c := range s.calls {
		c.stop(errClosing)
	}
	s.mu.Unlock()
	if already {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return s.ledger.close()
	case <-ctx.Done():
		return fmt.Errorf("tool host: calls still end: %w", context.Cause(ctx))
	}
}

// DescribeHost says which tools there are and under which ledger.
func (s *Server) DescribeHost(context.Context, *harnessv1.DescribeHostRequest) (*harnessv1.DescribeHostResponse, error) {
	return &harnessv1.DescribeHostResponse{Tools: s.tools.Specs(), LedgerId: s.ledger.id}, nil
}

// unavailable says that the same request may be sent again.
func unavailable(message string, cause error) error {
	e := fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, message)
	e.Err = cause
	return e
}
