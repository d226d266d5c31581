package toolhostserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// response is the response to a call: an ExecuteToolResponse, or a CheckCommandResponse
// for a check.
type response interface {
	proto.Message
	GetOutcome() harnessv1.ToolOutcome
}

// job is a call that a request wants to run.
type job struct {
	// Keys of the call and of its run in the ledger.
	key, run string
	// For the log.
	namespace, runID, id string

	facts toolhost.Call
	// reject returns the response to a call that must not run, nil for others.
	reject func() response
	// execute runs the call.
	execute func(ctx context.Context) effect
}

// effect is what a job did.
type effect struct {
	// response is not used if interrupted is set and the call was cancelled.
	response response
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
	run, err := runKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if err := checkName(field, id); err != nil {
		return nil, err
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if t := req.GetTimeout(); t != nil && (t.CheckValid() != nil || t.AsDuration() < 0) {
		return nil, fault.Invalid("timeout", "must be a duration of at least 0")
	}
	return &job{key: callKey(run, id), run: run, namespace: req.GetNamespace(), runID: req.GetRunId(), id: id}, nil
}

// toolJob returns the job for a call of a tool.
func (s *Server) toolJob(req *harnessv1.ExecuteToolRequest) (*job, error) {
	j, err := newJob(req, "call_id", req.GetCallId())
	if err != nil {
		return nil, err
	}
	t, found := s.tools.Find(req.GetTool())
	j.facts = toolhost.Call{
		// A call of an unknown tool has no effect.
		Idempotent:    !found || t.Spec.GetAnnotations().GetIdempotent(),
		ForeignLedger: s.isForeign(req.GetLedgerId()),
	}
	j.reject = func() response {
		if err := s.tools.Validate(req.GetTool(), req.GetArguments()); err != nil {
			return executed(tools.Failed(err.Error()), 0)
		}
		return nil
	}
	j.execute = func(ctx context.Context) effect {
		begin := time.Now()
		r := s.runTool(ctx, t, req)
		r.Text = toolhost.Cut(r.Text, s.config.Limits.ResultBytes, "Ask for less at a time.")
		return effect{response: executed(r, time.Since(begin)), interrupted: r.Interrupted, changed: r.Changed}
	}
	return j, nil
}

// runTool runs a tool in the workspace of the request.
func (s *Server) runTool(ctx context.Context, t tools.Tool, req *harnessv1.ExecuteToolRequest) (r tools.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("tool panicked", "tool", req.GetTool(), "panic", p, "stack", string(debug.Stack()))
			r = tools.Failed("The tool failed for a reason that lies with the tool host.")
		}
	}()
	w, err := workspace.Open(req.GetWorkspace())
	if err != nil {
		return tools.Failed(fmt.Sprintf("The workspace cannot be used: %s.", workspace.Reason(err)))
	}
	defer w.Close()
	return t.Run(ctx, &tools.Environment{
		Workspace: w, Limits: s.config.Limits, Timeout: req.GetTimeout().AsDuration(), Sync: s.config.Sync,
		Command: func(ctx context.Context, line string, output io.Writer) (command.Exit, error) {
			return s.runCommand(ctx, w, command.Command{Line: line, Output: output})
		},
	}, req.GetArguments())
}

// runCommand runs a command in a workspace, with the environment and the mark of this
// host's commands.
func (s *Server) runCommand(ctx context.Context, w *workspace.Workspace, c command.Command) (command.Exit, error) {
	c.Dir, c.Mark = w.Dir, s.instance.newMark()
	c.Environ = append(toolhost.CommandEnvironment(os.Environ(), s.config.PassEnvironment), "PWD="+w.Dir)
	exit, err := command.Run(ctx, c)
	if err != nil {
		s.log.Error("supervisor of a command failed", "error", err)
	}
	return exit, err
}

// executed returns the response for the result of a tool.
func executed(r tools.Result, duration time.Duration) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: r.Text, IsError: r.IsError,
		Duration: durationpb.New(duration), ExitCode: r.ExitCode, FilesChanged: r.Changed, Media: r.Media,
	}
}

// noResult returns the response to a call that has no result.
func noResult(key string, o harnessv1.ToolOutcome, duration time.Duration) response {
	if isCheck(key) {
		return &harnessv1.CheckCommandResponse{Outcome: o}
	}
	resp := &harnessv1.ExecuteToolResponse{Outcome: o}
	if o == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		resp.Duration = durationpb.New(duration)
	}
	return resp
}

// runKey returns the key of a run in the ledger. NUL separates its parts; no name has one.
func runKey(namespace, run string, firstSequence uint64) (string, error) {
	for field, value := range map[string]string{"namespace": namespace, "run_id": run} {
		if err := checkName(field, value); err != nil {
			return "", err
		}
	}
	key := make([]byte, 0, len(namespace)+len(run)+10)
	key = append(key, namespace...)
	key = append(key, 0)
	key = append(key, run...)
	key = append(key, 0)
	return string(binary.BigEndian.AppendUint64(key, firstSequence)), nil
}

// callKey returns the key of a call in the ledger, given the key of its run.
func callKey(run, id string) string { return run + "\x00" + id }

func checkName(field, value string) error {
	if value == "" || len(value) > 1024 || strings.ContainsRune(value, 0) {
		return fault.Invalid(field, "must be 1 to 1024 bytes without NUL")
	}
	return nil
}

var errNotAbsolute = errors.New("it is not an absolute path")

// checkWorkspacePath returns an error for a path that no workspace can have.
func checkWorkspacePath(dir string) error {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return workspaceUnusable(dir, errNotAbsolute)
	}
	return nil
}

func workspaceUnusable(dir string, cause error) error {
	e := fault.New(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE,
		fmt.Sprintf("workspace %q cannot be used: %s; name an existing folder that the tool host can read", dir, workspace.Reason(cause)),
		"workspace", dir)
	e.Err = cause
	return e
}
