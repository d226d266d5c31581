package toolhostserver

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/calls"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
)

// errCheckTimeout is the cause of the end of a check at its time limit.
var errCheckTimeout = errors.New("the check took too long")

// CheckCommand runs a command of the harness once. Files that it changes are not among
// the run's changes. All requests for the same check share one response, which must not
// be changed.
func (s *Server) CheckCommand(ctx context.Context, req *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
	failpoint.Hit(role, "received")
	j, err := s.checkJob(req)
	if err != nil {
		return nil, err
	}
	resp, err := s.calls.Run(ctx, j)
	if err != nil {
		return nil, err
	}
	return resp.(*harnessv1.CheckCommandResponse), nil
}

// checkJob returns the job for a check.
func (s *Server) checkJob(req *harnessv1.CheckCommandRequest) (*calls.Job, error) {
	j, err := s.newJob(req, "key", req.GetKey())
	if err != nil {
		return nil, err
	}
	switch {
	case req.GetCommand() == "" || strings.ContainsRune(req.GetCommand(), 0):
		return nil, fault.Invalid("command", "must be a command line without NUL")
	case len(req.GetInput()) > toolhost.CheckInputBytes:
		return nil, fault.Invalid("input", "exceeds 4 MiB")
	}
	j.Key = ledger.CheckKey(j.Key)
	j.Reject = func() ledger.Response { return nil }
	j.Watch, j.CommandLine = s.watchFolders(req.GetConfinement()), req.GetCommand()
	j.Restore = places.Restores(req.GetConfinement().GetConfig())
	j.Execute = func(ctx context.Context, _ *guard.Watch) calls.Effect { return s.runCheck(ctx, req, j.Run) }
	return j, nil
}

// runCheck runs the command of a check within its time limit.
func (s *Server) runCheck(ctx context.Context, req *harnessv1.CheckCommandRequest, run string) (e calls.Effect) {
	resp := &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE}
	e.Response = resp
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("check panicked", "panic", p, "stack", string(debug.Stack()))
			resp.Error = "It failed for a reason that lies with the tool host."
		}
	}()
	limit := s.config.Limits.CallTimeout(req.GetTimeout().AsDuration(), 0)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errCheckTimeout)
	defer cancel()
	w, err := s.files.Open(req.GetWorkspace())
	if err != nil {
		resp.Error = "The workspace cannot be used: " + disk.Reason(err) + "."
		return e
	}
	defer w.Close()

	output := toolhost.CheckExcerpt(toolhost.CheckOutputBytes)
	errorOutput := toolhost.CheckExcerpt(toolhost.CheckErrorBytes)
	// Programs parse the standard output, models and people read the errors.
	shownErrors := redraw.NewFilter(errorOutput)
	exit, err := s.commands.Run(ctx, command.Request{Run: run, Workspace: w.Dir, Folder: w.Folder(), Confinement: req.GetConfinement()}, process.Command{
		Line: req.GetCommand(), Input: req.GetInput(), Output: output, Errors: shownErrors,
	})
	_ = shownErrors.Close() // an excerpt takes all
	resp.Output = toolhost.CheckText(output, toolhost.CheckOutputBytes)
	if exit.RefusedHosts != "" {
		_, _ = io.WriteString(errorOutput, "\n["+exit.RefusedHosts+"]\n")
	}
	resp.ErrorOutput = toolhost.CheckText(errorOutput, toolhost.CheckErrorBytes)
	resp.SandboxLevel = exit.Level
	stopped := exit.Stopped
	switch {
	case err != nil:
		resp.Error = "Its supervisor failed. Everything that was found of it was killed; how far it had come is not known."
		stopped = ctx.Err() != nil
	case exit.Error != "":
		resp.Error = "It could not be started: " + exit.Error + "."
	default:
		resp.ExitCode = int32(exit.Code) //nolint:gosec // an exit code
	}
	if stopped {
		e.Interrupted = !errors.Is(context.Cause(ctx), errCheckTimeout)
		resp.ExitCode = 124 // as of timeout(1)
	}
	return e
}
