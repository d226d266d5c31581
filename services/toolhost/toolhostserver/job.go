package toolhostserver

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcp"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// job is a call that a request wants to run.
type job struct {
	// Keys of the call and of its run in the ledger.
	key, run string
	// For the log.
	namespace, runID, id string

	// watch starts to guard the repositories of the workspace; nil for a call that writes
	// nothing.
	watch func(workspace string) (*guard.Watch, error)
	// workspace of the call.
	workspace string

	facts toolhost.Call
	// reject returns the response to a call that must not run, nil for others.
	reject func() ledger.Response
	// commandLine is what a job that runs a command runs; empty for others.
	commandLine string
	// output is what its command prints.
	output *callOutput
	// execute runs the call.
	execute func(ctx context.Context, w *guard.Watch) effect
}

// effect is what a job did.
type effect struct {
	// response is not used if interrupted is set and the call was cancelled.
	response ledger.Response
	// interrupted reports that the call was stopped before its end.
	interrupted bool
	// changed has the changed paths, relative to the workspace.
	changed []string
}

// callRequest is the common part of requests to run a call or a check.
type callRequest interface {
	GetNamespace() string
	GetRunId() string
	GetFirstSequence() uint64
	GetWorkspace() string
	GetTimeout() *durationpb.Duration
}

// newJob checks the common part of a request and returns a job with it. field is the name
// of the field with the id.
func newJob(req callRequest, field, id string) (*job, error) {
	run, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if err := ledger.CheckName(field, id); err != nil {
		return nil, err
	}
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if t := req.GetTimeout(); t != nil && (t.CheckValid() != nil || t.AsDuration() < 0) {
		return nil, fault.Invalid("timeout", "must be a duration of at least 0")
	}
	return &job{key: ledger.CallKey(run, id), run: run, namespace: req.GetNamespace(), runID: req.GetRunId(), id: id, workspace: req.GetWorkspace(), output: newCallOutput()}, nil
}

// toolJob returns the job for a call of a tool.
func (s *Server) toolJob(req *harnessv1.ExecuteToolRequest) (*job, error) {
	j, err := newJob(req, "call_id", req.GetCallId())
	if err != nil {
		return nil, err
	}
	if req.GetMcp() != nil {
		s.serverJob(j, req)
		return j, nil
	}
	t, found := s.tools.Find(req.GetTool())
	j.facts = toolhost.Call{
		// A call of an unknown tool has no effect.
		Idempotent:    !found || t.Spec.GetAnnotations().GetIdempotent(),
		ForeignLedger: s.isForeign(req.GetLedgerId()),
	}
	j.reject = func() ledger.Response {
		if err := s.tools.Validate(req.GetTool(), req.GetArguments()); err != nil {
			return executed(tools.Failed(err.Error()), 0)
		}
		if webtool.Is(req.GetTool()) && !webtool.Has(req.GetWeb().GetWeb(), req.GetTool()) {
			return executed(tools.Failed("The agent does not have the tool "+req.GetTool()+"."), 0)
		}
		return nil
	}
	switch a := t.Spec.GetAnnotations(); {
	case a.GetExecutes():
		j.watch, j.commandLine = s.guard.Start, commandOf(req.GetTool(), req.GetArguments())
	case a.GetWrites() && !webtool.Is(req.GetTool()):
		j.watch = s.guard.StartWrite
	}
	j.execute = func(ctx context.Context, watch *guard.Watch) effect {
		begin := time.Now()
		r := s.runTool(ctx, t, req, j, watch)
		if r.Unknown {
			return effect{response: noResult(j.key, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, 0)}
		}
		r.Text = toolhost.Cut(r.Text, s.config.Limits.ResultBytes, "Ask for less at a time.")
		return effect{response: executed(r, time.Since(begin)), interrupted: r.Interrupted, changed: r.Changed}
	}
	return j, nil
}

// serverJob makes the job of a call of a server's tool.
func (s *Server) serverJob(j *job, req *harnessv1.ExecuteToolRequest) {
	c := req.GetMcp()
	j.facts = toolhost.Call{Idempotent: mcp.Idempotent(c), ForeignLedger: s.isForeign(req.GetLedgerId())}
	j.reject = func() ledger.Response { return nil }
	if c.GetServer().GetCommand() != "" && req.GetWorkspace() != "" {
		j.watch = s.guard.Start
	}
	j.execute = func(ctx context.Context, _ *guard.Watch) effect {
		resp, interrupted := s.servers.Call(ctx, mcp.Call{ExecuteToolRequest: req, Key: j.key, Run: j.run, Output: j.output})
		return effect{response: resp, interrupted: interrupted}
	}
}

// runTool runs a tool in the workspace of the request.
func (s *Server) runTool(ctx context.Context, t tools.Tool, req *harnessv1.ExecuteToolRequest, j *job, watch *guard.Watch) (r tools.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("tool panicked", "tool", req.GetTool(), "panic", p, "stack", string(debug.Stack()))
			r = tools.Failed("The tool failed for a reason that lies with the tool host.")
		}
	}()
	w, err := s.files.OpenForCall(req.GetWorkspace(), watch, req.GetGuarded())
	if err != nil {
		return tools.Failed(fmt.Sprintf("The workspace cannot be used: %s.", disk.Reason(err)))
	}
	defer w.Close()
	if len(req.GetShown()) > 0 {
		if why := tools.ChangedSince(w, s.config.Limits, req); why != "" {
			return tools.Failed(why)
		}
	}
	return t.Run(ctx, &tools.Environment{
		Workspace: w, Limits: s.config.Limits, Timeout: req.GetTimeout().AsDuration(), Sync: s.config.Sync,
		Command: func(ctx context.Context, line string, output io.Writer) (command.Exit, error) {
			return s.commands.Run(ctx, command.Request{Run: j.run, Workspace: w.Dir, Confinement: req.GetConfinement()}, process.Command{Line: line, Output: io.MultiWriter(output, j.output)})
		},
		Start: func(ctx context.Context, line string, limit time.Duration) (background.Launch, error) {
			return s.backgrounds.Start(ctx, background.Call{
				Key: j.key, Run: j.run, ID: j.id, Workspace: j.workspace, Confinement: req.GetConfinement(),
			}, line, limit)
		},
		Read: func(ctx context.Context, q background.Query) (background.Output, error) {
			return s.backgrounds.Read(ctx, j.run, q)
		},
		Stop: func(ctx context.Context, id string) (end string, known []string, err error) {
			return s.backgrounds.Stop(ctx, j.run, id)
		},
		Skill: func(name, path string) tools.Result {
			text, done := s.files.Skill(w.Dir, req.GetSkillFolders(), req.GetUserSkills(), name, path)
			return tools.Result{Text: text, IsError: !done}
		},
		Web: s.webClient(j.run, req.GetWeb()),
		Merge: func(ctx context.Context, run string) tools.Result {
			return s.mergeWorktree(ctx, w, j, req.GetFirstSequence(), run)
		},
	}, req.GetArguments())
}

// executed returns the response for the result of a tool.
func executed(r tools.Result, duration time.Duration) *harnessv1.ExecuteToolResponse {
	outcome := harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	if r.Unconfined {
		outcome = harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED
	}
	return &harnessv1.ExecuteToolResponse{
		Outcome: outcome, SandboxLevel: r.Level, Result: r.Text, IsError: r.IsError,
		Duration: durationpb.New(duration), ExitCode: r.ExitCode, FilesChanged: r.Changed, Media: r.Media,
		Background: r.Background,
	}
}

// noResult returns the response to a call that has no result.
func noResult(key string, o harnessv1.ToolOutcome, duration time.Duration) ledger.Response {
	if ledger.IsCheck(key) {
		return &harnessv1.CheckCommandResponse{Outcome: o}
	}
	resp := &harnessv1.ExecuteToolResponse{Outcome: o}
	if o == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		resp.Duration = durationpb.New(duration)
	}
	return resp
}
