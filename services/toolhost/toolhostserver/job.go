package toolhostserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/files"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcp"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// ExecuteTool runs a call once. All requests for the same call share one response, which
// must not be changed.
func (s *Server) ExecuteTool(ctx context.Context, req *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
	failpoint.Hit(role, "received")
	j, err := s.toolJob(req)
	if err != nil {
		return nil, err
	}
	resp, err := s.calls.Run(ctx, j)
	if err != nil {
		return nil, err
	}
	return resp.(*harnessv1.ExecuteToolResponse), nil
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
func (s *Server) newJob(req callRequest, field, id string) (*calls.Job, error) {
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
	return &calls.Job{
		Key: ledger.CallKey(run, id), Run: run, Namespace: req.GetNamespace(), RunID: req.GetRunId(), ID: id,
		Pending: func() (note, changed string) { return s.servers.Pending(run) },
		Prepare: s.worktrees.Use, Workspace: req.GetWorkspace(), Output: calls.NewOutput(),
	}, nil
}

// toolJob returns the job for a call of a tool.
func (s *Server) toolJob(req *harnessv1.ExecuteToolRequest) (*calls.Job, error) {
	j, err := s.newJob(req, "call_id", req.GetCallId())
	if err != nil {
		return nil, err
	}
	j.Call = toolhost.Describe(req.GetCallId(), req.GetTool(), req.GetArguments())
	if req.KnownSequence != nil && !s.isForeign(req.GetLedgerId()) { // numbers are those of one ledger
		j.Numbered, j.Known, j.KnownCalls, j.Compared = true, req.GetKnownSequence(), req.GetKnownCalls(), req.GetCompared()
	}
	if req.GetMcp() != nil {
		s.serverJob(j, req)
		return j, nil
	}
	t, found := s.tools.Find(req.GetTool())
	j.Facts = toolhost.Call{
		// A call of an unknown tool has no effect.
		Idempotent:    !found || t.Spec.GetAnnotations().GetIdempotent(),
		ForeignLedger: s.isForeign(req.GetLedgerId()),
	}
	j.Reject = func() ledger.Response {
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
		j.Watch, j.CommandLine = s.watchFolders(req.GetConfinement()), commandOf(req.GetTool(), req.GetArguments())
		j.Restore = places.Restores(req.GetConfinement().GetConfig())
	case a.GetWrites() && !webtool.Is(req.GetTool()):
		j.Watch = s.guard.StartWrite
	}
	j.Execute = func(ctx context.Context, watch *guard.Watch) calls.Effect {
		begin := time.Now()
		r, below := s.runTool(ctx, t, req, j, watch)
		if r.Unknown {
			return calls.Effect{Response: &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}}
		}
		r.Text = toolhost.Cut(r.Text, s.config.Limits.ResultBytes, "Ask for less at a time.")
		if below != "" {
			r.Text = toolhost.AppendLine(r.Text, below)
		}
		return calls.Effect{Response: executed(r, time.Since(begin)), Interrupted: r.Interrupted, Changed: r.Changed}
	}
	return j, nil
}

// nestedText returns the instruction files below the workspace that follow the result of a call; empty for none.
func (s *Server) nestedText(ctx context.Context, req *harnessv1.ExecuteToolRequest, j *calls.Job, w *workspace.Workspace) string {
	if !req.GetInstructions() || ctx.Err() != nil || webtool.Is(req.GetTool()) {
		return ""
	}
	paths := toolhost.NamedPaths(req.GetArguments())
	if len(paths) == 0 {
		return ""
	}
	return toolhost.NestedText(s.files.Below(ctx, &s.nested, w, j.Run, j.Key, paths))
}

// watchFolders guards the workspace of a call, and where else it can write.
func (s *Server) watchFolders(c *harnessv1.Confinement) func(string) (*guard.Watch, error) {
	return func(workspace string) (*guard.Watch, error) {
		return s.guard.Start(workspace, guard.ReachOf(s.commands.Level(context.Background(), c), c.GetConfig()))
	}
}

// serverJob makes the job of a call of a server's tool.
func (s *Server) serverJob(j *calls.Job, req *harnessv1.ExecuteToolRequest) {
	c := req.GetMcp()
	j.Facts = toolhost.Call{Idempotent: mcp.Idempotent(c), ForeignLedger: s.isForeign(req.GetLedgerId())}
	j.Reject = func() ledger.Response { return nil }
	if c.GetServer().GetCommand() != "" && req.GetWorkspace() != "" {
		j.Watch, j.Restore = s.watchFolders(&harnessv1.Confinement{Config: c.GetSandbox()}), places.Restores(c.GetSandbox())
	}
	j.Execute = func(ctx context.Context, _ *guard.Watch) calls.Effect {
		resp, interrupted := s.servers.Call(ctx, mcp.Call{ExecuteToolRequest: req, Key: j.Key, Run: j.Run, Output: j.Output})
		return calls.Effect{Response: resp, Interrupted: interrupted}
	}
}

// runTool runs a tool in the workspace of the request.
func (s *Server) runTool(ctx context.Context, t tools.Tool, req *harnessv1.ExecuteToolRequest, j *calls.Job, watch *guard.Watch) (r tools.Result, below string) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("tool panicked", "tool", req.GetTool(), "panic", p, "stack", string(debug.Stack()))
			r, below = tools.Failed("The tool failed for a reason that lies with the tool host."), ""
		}
	}()
	w, err := s.files.OpenForCall(req.GetWorkspace(), watch, files.Right{Guarded: req.GetGuarded(), Approved: req.GetApproved()})
	if err != nil {
		return tools.Failed(fmt.Sprintf("The workspace cannot be used: %s.", disk.Reason(err))), ""
	}
	defer w.Close()
	if len(req.GetShown()) > 0 {
		if why := tools.ChangedSince(w, s.config.Limits, req); why != "" {
			return tools.Failed(why), ""
		}
	}
	r = t.Run(ctx, &tools.Environment{
		Workspace: w, Limits: s.config.Limits, Timeout: req.GetTimeout().AsDuration(), Sync: s.config.Sync,
		Command: func(ctx context.Context, line string, output io.Writer) (command.Exit, error) {
			return s.commands.Run(ctx, command.Request{Run: j.Run, Workspace: w.Dir, Folder: w.Folder(), Confinement: req.GetConfinement()}, process.Command{
				Line: line, Output: io.MultiWriter(output, j.Output),
			})
		},
		Start: func(ctx context.Context, line string, limit time.Duration) (background.Launch, error) {
			return s.backgrounds.Start(ctx, background.Call{
				Key: j.Key, Run: j.Run, ID: j.ID, Workspace: j.Workspace, Confinement: req.GetConfinement(),
			}, line, limit)
		},
		Read: func(ctx context.Context, q background.Query) (background.Output, error) {
			return s.backgrounds.Read(ctx, j.Run, q)
		},
		Stop: func(ctx context.Context, id string) (end string, known []string, err error) {
			return s.backgrounds.Stop(ctx, j.Run, id)
		},
		Skill: func(name, path string) tools.Result {
			text, done := s.files.Skill(w.Dir, files.SkillFolders{Named: req.GetSkillFolders(), Roots: req.GetRoots(), Own: req.GetUserSkills()}, name, path)
			return tools.Result{Text: text, IsError: !done}
		},
		Web: s.webClient(j.Run, req.GetWeb()),
		Merge: func(ctx context.Context, run string) tools.Result {
			return s.mergeWorktree(ctx, w, j, req.GetFirstSequence(), run)
		},
	}, req.GetArguments())
	return r, s.nestedText(ctx, req, j, w)
}

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

// isForeign reports whether a request names another ledger.
func (s *Server) isForeign(ledgerID string) bool {
	return ledgerID != "" && ledgerID != s.ledger.ID
}

// ReadCallOutput returns output of the command of a running call, and waits for more if there
// is none.
func (s *Server) ReadCallOutput(ctx context.Context, req *harnessv1.ReadCallOutputRequest) (*harnessv1.ReadCallOutputResponse, error) {
	return s.calls.ReadOutput(ctx, req)
}

// commandOf returns the command line of a call that executes; the tool's name if it has
// none.
func commandOf(name, arguments string) string {
	var a struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(arguments), &a) // a call without a command has its name
	return cmp.Or(a.Command, name)
}
