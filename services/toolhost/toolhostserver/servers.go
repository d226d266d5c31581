package toolhostserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient"
)

// maxServerWait bounds how long DescribeServers waits.
const maxServerWait = 30 * time.Second

// defaultServerCall is the time of a call of a server's tool whose request has none.
const defaultServerCall = 120 * time.Second

// newServers returns the servers of runs.
func (s *Server) newServers() *mcpclient.Servers {
	return mcpclient.New(mcpclient.Config{
		Process: s.runServer, Transport: s.serverTransport, Dial: s.dialService, Variable: s.serverVariable, SignIns: s.signIns, Logger: s.log,
		Approvals: mcpclient.NewApprovals(filepath.Join(s.config.Dir, "servers"), s.log), Idle: s.config.ServerIdle,
	})
}

// DescribeServers starts the servers of a run that are not running, waits for them, and
// returns the tools that they list.
func (s *Server) DescribeServers(ctx context.Context, req *harnessv1.DescribeServersRequest) (*harnessv1.DescribeServersResponse, error) {
	key, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if req.GetWorkspace() != "" {
		if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
			return nil, err
		}
	}
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > maxServerWait {
		return nil, fault.Invalid("wait", "must be 0 to %v", maxServerWait)
	}
	run := mcpclient.Run{Namespace: req.GetNamespace(), Key: key, Workspace: req.GetWorkspace(), Sandbox: req.GetSandbox(), Local: req.GetLocal()}
	described, err := s.servers.Describe(ctx, run, req.GetServers(), wait)
	if err != nil {
		return nil, toolhost.Unavailable(toolhost.Closing, err)
	}
	return &harnessv1.DescribeServersResponse{Servers: described}, nil
}

// serverJob makes the job of a call of a server's tool.
func (s *Server) serverJob(j *job, req *harnessv1.ExecuteToolRequest) {
	c := req.GetMcp()
	j.facts = toolhost.Call{
		Idempotent:    c.GetQuestion().GetLedgerId() == "" && (c.GetRemembered() || slices.Contains(c.GetServer().GetIdempotent(), c.GetTool())),
		ForeignLedger: s.isForeign(req.GetLedgerId()),
	}
	j.reject = func() ledger.Response { return nil }
	if c.GetServer().GetCommand() != "" && req.GetWorkspace() != "" {
		j.watch = s.guard.Start
	}
	j.execute = func(ctx context.Context, _ *guard.Watch) effect {
		begin := time.Now()
		r := s.servers.Call(ctx, mcpclient.Call{
			Run:     mcpclient.Run{Namespace: req.GetNamespace(), Key: j.run, Workspace: req.GetWorkspace(), Sandbox: c.GetSandbox(), Local: c.GetLocal()},
			McpCall: c, Arguments: req.GetArguments(), Token: j.id, RunID: j.runID, Key: content.Digest([]byte(j.key)), Output: j.output,
			Timeout: cmp.Or(req.GetTimeout().AsDuration(), defaultServerCall),
		})
		if r.Unknown {
			return effect{response: noResult(j.key, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, 0)}
		}
		if r.Question != nil {
			if r.Question.GetValid() != nil { // the call still runs here
				r.Question.LedgerId = s.ledger.ID
			}
			return effect{response: &harnessv1.ExecuteToolResponse{
				Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED, Question: r.Question, Duration: durationpb.New(time.Since(begin)),
			}}
		}
		text := toolhost.Cut(r.Text, s.config.Limits.ResultBytes, "Ask for less at a time.")
		return effect{interrupted: r.Interrupted, response: &harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: text, IsError: r.IsError, Media: r.Media, Duration: durationpb.New(time.Since(begin)),
		}}
	}
}

// runServer runs the process of a server, confined as the commands of its run are.
func (s *Server) runServer(ctx context.Context, p mcpclient.Process) error {
	defer func() { _ = p.Input.Close() }()
	dir := p.Run.Workspace
	if dir == "" {
		dir = filepath.Join(s.config.Dir, "servers", "empty")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	w, err := s.openWorkspace(dir)
	if err != nil {
		return fmt.Errorf("the workspace cannot be used: %s", disk.Reason(err))
	}
	defer w.Close()
	cfg := proto.CloneOf(p.Run.Sandbox)
	if cfg == nil {
		cfg = &harnessv1.SandboxConfig{}
	}
	if p.Server.GetNetwork() != nil {
		cfg.Network = p.Server.GetNetwork()
	}
	if program, err := exec.LookPath(p.Server.GetCommand()); err == nil && p.Run.Local && filepath.IsAbs(program) {
		if program, err = filepath.EvalSymlinks(program); err == nil {
			cfg.Read = append(cfg.Read, program) // a local person has named it
		}
	}
	_, support := s.commands.Find(ctx)
	level, err := sandbox.Choose(support, cfg)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be confined: %w", err)
	case level == sandbox.Off && !p.Run.Local:
		return errors.New("it would not be confined, and no local person has named it: use a tool host with a sandbox")
	case level == sandbox.Off:
		p.Notice("its process is not confined: the sandbox is off")
	}
	exit, err := s.commands.Run(ctx, command.Request{Run: p.Run.Key, Workspace: w.Dir, Confinement: &harnessv1.Confinement{Level: level, Config: cfg}}, process.Command{
		Line: p.Line, Stdin: p.Input, Output: p.Output, Errors: p.Errors, Environ: p.Environ,
	})
	switch {
	case err != nil:
		return err
	case exit.Unconfined:
		return fmt.Errorf("it cannot be confined: %s", exit.Error)
	case exit.Error != "":
		return errors.New(exit.Error)
	case exit.Code == 127:
		return fmt.Errorf("the program %s was not found: install it, or write its path", p.Server.GetCommand())
	}
	return nil
}

// hostServices returns the tool services that each run has, without their addresses.
func (s *Server) hostServices() []*harnessv1.McpServer {
	services := make([]*harnessv1.McpServer, len(s.config.Services))
	for i, service := range s.config.Services {
		services[i] = proto.CloneOf(service)
		services[i].Grpc, services[i].Host = "", true
	}
	return services
}

// dialService returns a connection to a ToolService: that of the operator, or one that the agent
// names. It sends nothing.
func (s *Server) dialService(server *harnessv1.McpServer) (*grpc.ClientConn, error) {
	target := server.GetGrpc()
	if server.GetHost() {
		i := slices.IndexFunc(s.config.Services, func(own *harnessv1.McpServer) bool { return own.GetName() == server.GetName() })
		if i < 0 {
			return nil, fmt.Errorf("the tool host has no tool service %s: name it with --tool-service %s=HOST:PORT", server.GetName(), server.GetName())
		}
		target = s.config.Services[i].GetGrpc()
	}
	return s.config.Remote.Open(target)
}

// serverVariable returns the value of a variable that the settings of a server or of web tools
// name: that of the client that drives the run, else, for a local person, that of this process.
// The holder of a token gets none of this process: the servers that it names would receive it.
func (s *Server) serverVariable(run mcpclient.Run, name string) (string, bool) {
	if slices.Contains(s.config.Withheld, name) {
		return "", false
	}
	environ := s.config.environ(run.Key)
	if environ == nil && run.Local {
		environ = os.Environ()
	}
	return variable(environ, name)
}

// variable returns the value of a variable among NAME=VALUE.
func variable(environ []string, name string) (string, bool) {
	for _, pair := range environ {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// serverDialer returns what connects to the address of a server, which a local person allows by
// naming it, and to others that its sign-in needs.
func (s *Server) serverDialer(address string, local bool) *dial.Dialer {
	dialer := &dial.Dialer{Allowed: s.private}
	if _, site, err := webtool.ParseURL(address); err == nil && local {
		dialer.Allowed = append(slices.Clone(dialer.Allowed), sandbox.Host{Name: site.Name, Port: site.Port})
	}
	return dialer
}

// serverTransport returns what carries out the requests to a server.
func (s *Server) serverTransport(_ *harnessv1.McpServer, address string, local bool) http.RoundTripper {
	return &http.Transport{
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: time.Minute, DialContext: s.serverDialer(address, local).DialContext,
	}
}
