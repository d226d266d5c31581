// Package mcp has the servers of tools of a host's runs: it describes them, calls their tools, and
// signs persons in at them. Package mcpclient speaks their protocols; this package decides what
// they may have of this machine.
//
// These promises hold:
//
//   - The process of a server is confined as the commands of its run are. It runs without a
//     sandbox only if a local person has named it.
//   - What changes in its workspace while it is alive is the change of its run, as that of a command: the
//     next result of the run names it.
//   - A connection leads to public addresses, to hosts that the operator permits, and to the
//     address of a server that a local person has named.
//   - A server gets no variable that the operator withholds, and of this process's environment
//     only what a local person has named.
//   - A tool service of the operator is called at the address of the operator, whatever a
//     request says.
//
// A server that fails is a result with is_error, or a description with the reason. Errors are
// INVALID_ARGUMENT for a caller's mistake, FAILED_PRECONDITION for a sign-in that failed, and
// UNAVAILABLE while the host is closing.
package mcp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

const (
	// maxWait bounds how long Describe waits.
	maxWait = 30 * time.Second
	// defaultCall is the time of a call of a server's tool whose request has none.
	defaultCall = 120 * time.Second
)

// Config configures Servers. Dir, Tokens, LedgerID, Remote, Environ, Commands, Open, ResultBytes
// and Logger are required.
type Config struct {
	// Dir is the folder of the host, Tokens that of the tokens of servers at which persons have
	// signed in.
	Dir, Tokens string
	// LedgerID is the id of the ledger of the host.
	LedgerID string
	// Withheld are names of variables that servers never get.
	Withheld []string
	// Services are the tool services that each run has, with their addresses.
	Services []*harnessv1.McpServer
	// Remote has the options of connections to tool services.
	Remote *remote.Pool
	// Idle is after how long without a call the process of a server is stopped; 0: the default.
	Idle time.Duration
	// Private are the hosts whose addresses need not be public.
	Private []sandbox.Host
	// Environ returns the environment of the commands of a run, by its key, as NAME=VALUE; nil:
	// that of this process.
	Environ func(run string) []string
	// Commands run the processes of servers.
	Commands *command.Commands
	// Open opens a workspace.
	Open func(dir string) (*workspace.Workspace, error)
	// Guard guards the repositories of the workspaces in which the processes work, and Places compares their guarded
	// places.
	Guard  *guard.Guard
	Places *places.Places
	// ResultBytes is the maximum size of a result.
	ResultBytes int
	Logger      *slog.Logger
}

// Servers are the servers of all runs of a host. Many goroutines may use it: the locks are those
// of the client and the sign-ins.
type Servers struct {
	config  Config
	client  *mcpclient.Servers
	signIns *signin.SignIns
	alive   alive
}

// New returns Servers. It starts none.
func New(c Config) *Servers {
	s := &Servers{config: c}
	s.signIns = signin.New(signin.Config{Dir: c.Tokens, Dialer: s.dialer, Logger: c.Logger})
	s.client = mcpclient.New(mcpclient.Config{
		Process: s.run, Transport: s.transport, Dial: s.dial, Variable: s.variable, SignIns: s.signIns, Logger: c.Logger,
		Approvals: mcpclient.NewApprovals(filepath.Join(c.Dir, "servers"), c.Logger), Idle: c.Idle,
	})
	return s
}

// Close stops all servers, and returns when their processes are dead.
func (s *Servers) Close() {
	s.client.Close()
	s.signIns.Close()
}

// EndRun stops the servers of a run.
func (s *Servers) EndRun(run string) {
	s.client.EndRun(run)
	s.alive.forget(run)
}

// Pending returns the changes of a run's processes since its last result: of files by which git runs programs, which are
// put back, and of guarded places.
func (s *Servers) Pending(run string) (note, changed string) { return s.alive.take(run) }

// EndQuestions ends the calls of a run that wait for an answer: those whose next part would be one of
// the calls, or all if none is named.
func (s *Servers) EndQuestions(run string, calls ...string) { s.client.EndQuestions(run, calls...) }

// Held returns the calls that wait for an answer.
func (s *Servers) Held() []string { return s.client.Held() }

// Services returns the tool services that each run has, without their addresses.
func (s *Servers) Services() []*harnessv1.McpServer {
	services := make([]*harnessv1.McpServer, len(s.config.Services))
	for i, service := range s.config.Services {
		services[i] = proto.CloneOf(service)
		services[i].Grpc, services[i].Host = "", true
	}
	return services
}

// Describe starts the servers of a run that are not running, waits for them, and
// returns the tools that they list.
func (s *Servers) Describe(ctx context.Context, req *harnessv1.DescribeServersRequest) (*harnessv1.DescribeServersResponse, error) {
	key, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if req.GetWorkspace() != "" {
		if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
			return nil, err
		}
	}
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > maxWait {
		return nil, fault.Invalid("wait", "must be 0 to %v", maxWait)
	}
	run := mcpclient.Run{Namespace: req.GetNamespace(), Key: key, Workspace: req.GetWorkspace(), Sandbox: req.GetSandbox(), Local: req.GetLocal()}
	described, err := s.client.Describe(ctx, run, req.GetServers(), wait)
	if err != nil {
		return nil, toolhost.Unavailable(toolhost.Closing, err)
	}
	return &harnessv1.DescribeServersResponse{Servers: described}, nil
}

// Call is a call of a tool of a server.
type Call struct {
	*harnessv1.ExecuteToolRequest
	// Key is that of the call, and Run that of its run in the ledger.
	Key, Run string
	// Output receives the progress, for people who watch.
	Output io.Writer
}

// Idempotent reports whether running a call twice has the effect of running it once.
func Idempotent(c *harnessv1.McpCall) bool {
	return c.GetQuestion().GetLedgerId() == "" && (c.GetRemembered() || slices.Contains(c.GetServer().GetIdempotent(), c.GetTool()))
}

// Call calls a tool. interrupted reports that ctx ended the call before its end.
func (s *Servers) Call(ctx context.Context, call Call) (resp *harnessv1.ExecuteToolResponse, interrupted bool) {
	begin, c := time.Now(), call.GetMcp()
	r := s.client.Call(ctx, mcpclient.Call{
		Run:     mcpclient.Run{Namespace: call.GetNamespace(), Key: call.Run, Workspace: call.GetWorkspace(), Sandbox: c.GetSandbox(), Local: c.GetLocal()},
		McpCall: c, Arguments: call.GetArguments(), Token: call.GetCallId(), RunID: call.GetRunId(), Key: content.Digest([]byte(call.Key)), Output: call.Output,
		Timeout: cmp.Or(call.GetTimeout().AsDuration(), defaultCall),
	})
	if r.Unknown {
		return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, false
	}
	if r.Question != nil {
		if r.Question.GetValid() != nil { // the call still runs here
			r.Question.LedgerId = s.config.LedgerID
		}
		return &harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED, Question: r.Question, Duration: durationpb.New(time.Since(begin)),
		}, false
	}
	text := toolhost.Cut(r.Text, s.config.ResultBytes, "Ask for less at a time.")
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: text, IsError: r.IsError, Media: r.Media, Duration: durationpb.New(time.Since(begin)),
	}, r.Interrupted
}
