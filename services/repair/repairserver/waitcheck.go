package repairserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

const (
	// waitCheckTime bounds a check of a file or a background command, waitCommandTime that of
	// a command.
	waitCheckTime, waitCommandTime = 30 * time.Second, 2 * time.Minute
	// maxWaitOutput bounds what a check keeps of the output of a command, in bytes.
	maxWaitOutput = 2 << 10
)

// checkWait checks what a call waits for. A tool host that cannot be reached, or a check that
// an interrupt stopped, is an observation too: the wait continues.
func (o *observer) checkWait(ctx context.Context, key string) (*harnessv1.Observation, error) {
	call := repair.WaitCall(o.task.Step().GetSnapshot(), key)
	if call.GetWait() == nil {
		return nil, errors.New("the call waits no longer")
	}
	limit := waitCheckTime
	if call.GetWait().GetCommand() != "" {
		limit = waitCommandTime + waitCheckTime
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	seen, err := o.observeTarget(bounded, call, key)
	if cause := context.Cause(ctx); cause != nil && !interrupt.Stopped(ctx) {
		return nil, cause
	}
	if err != nil {
		seen = &harnessv1.WaitCheck{Error: content.Cut(remote.Reason(err), maxWaitOutput)}
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_WaitCheck{WaitCheck: seen}}, nil
}

func (o *observer) observeTarget(ctx context.Context, call *harnessv1.PendingCall, key string) (*harnessv1.WaitCheck, error) {
	defer executor.Waits(ctx)()
	s, w := o.task.Step().GetSnapshot(), call.GetWait()
	switch {
	case w.GetCommand() != "":
		return o.runWaitCommand(ctx, call, key)
	case w.GetPath() != "":
		r, err := o.s.toolHost.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: s.GetWorkspace(), Path: w.GetPath()})
		return &harnessv1.WaitCheck{Digest: r.GetDigest()}, err
	case w.GetUrl() != "":
		r, err := o.s.toolHost.CheckAddress(ctx, &harnessv1.CheckAddressRequest{
			Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, FirstSequence: s.GetFirstSequence(), Url: w.GetUrl(),
			Web: &harnessv1.WebCall{Web: o.definition.Web, Local: access.IsPerson(s.GetStartedBy())},
		})
		return &harnessv1.WaitCheck{Status: r.GetStatus(), Error: r.GetError()}, err
	}
	for _, c := range s.GetBackgroundCommands() {
		if c.GetId() != w.GetBackground() {
			continue
		}
		r, err := o.s.toolHost.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
			Workspace: s.GetWorkspace(), Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, FirstSequence: s.GetFirstSequence(),
			InstructionsOnly: true, Background: []*harnessv1.BackgroundCommand{c}, LedgerId: c.GetLedgerId(),
		})
		if err != nil || len(r.GetBackground()) == 0 {
			return &harnessv1.WaitCheck{}, err
		}
		return &harnessv1.WaitCheck{Background: r.GetBackground()[0]}, nil
	}
	return &harnessv1.WaitCheck{}, nil
}

// runWaitCommand runs the command of a wait. Its key is that of the check, so a check that is
// made again joins the command or gets its result.
func (o *observer) runWaitCommand(ctx context.Context, call *harnessv1.PendingCall, key string) (*harnessv1.WaitCheck, error) {
	s := o.task.Step().GetSnapshot()
	request := &harnessv1.CheckCommandRequest{
		Namespace: o.task.Run.Namespace, RunId: o.task.Run.ID, FirstSequence: s.GetFirstSequence(), Key: key,
		Command: call.GetWait().GetCommand(), Workspace: s.GetWorkspace(), Timeout: durationpb.New(waitCommandTime),
		Confinement: &harnessv1.Confinement{Level: call.GetSandboxLevel(), Config: s.GetConfig().GetSandbox()},
	}
	r, err := o.s.toolHost.CheckCommand(ctx, request)
	switch {
	case interrupt.Stopped(ctx):
		o.killWaitCommand(ctx, request)
		return nil, errors.New("the check was broken off")
	case err != nil:
		return nil, err
	case r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE:
		return nil, fmt.Errorf("the command ended %s", strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "TOOL_OUTCOME_")))
	case r.GetError() != "":
		return nil, errors.New(r.GetError())
	}
	return &harnessv1.WaitCheck{ExitCode: r.GetExitCode(), Output: waitOutput(r)}, nil
}

// waitOutput returns the end of the output of a command, as a terminal shows it.
func waitOutput(r *harnessv1.CheckCommandResponse) string {
	output := content.Clean(strings.TrimSpace(redraw.Text(r.GetOutput()) + r.GetErrorOutput()))
	if len(output) > maxWaitOutput {
		output = "…" + strings.ToValidUTF8(output[len(output)-maxWaitOutput+len("…"):], "")
	}
	return output
}

// killWaitCommand ends the command of a check that was interrupted.
func (o *observer) killWaitCommand(ctx context.Context, request *harnessv1.CheckCommandRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitCheckTime)
	defer cancel()
	_, err := o.s.toolHost.CancelTools(ctx, &harnessv1.CancelToolsRequest{
		Namespace: request.GetNamespace(), RunId: request.GetRunId(), CallIds: []string{request.GetKey()}, FirstSequence: request.GetFirstSequence(),
	})
	if err != nil {
		o.s.logger.WarnContext(ctx, "command of a wait not killed", "run", request.GetRunId(), "error", err)
	}
}
