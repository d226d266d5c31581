package stopdecisionserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// sources is what the checks of a contract look at: contract.Sources.
type sources struct{ *observing }

func (s *sources) snapshot() *harnessv1.Snapshot { return s.task.Step().GetSnapshot() }

// Turn is the turn that has ended.
func (s *sources) Turn() uint32 { return s.task.Step().GetTurnComplete().GetTurnNumber() }

// Response is the agent's last text.
func (s *sources) Response(ctx context.Context) (string, error) {
	return s.Text(ctx, s.snapshot().GetAnswer())
}

// Messages is the conversation up to the step.
func (s *sources) Messages(ctx context.Context) ([]*harnessv1.Message, error) {
	c, err := s.s.cfg.Conversations.Load(ctx, s.snapshot().GetFirstSequence(), s.task.Entry)
	if err != nil {
		return nil, err
	}
	return c.Messages, nil
}

// Text is the text of a content.
func (s *sources) Text(ctx context.Context, c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	data, err := s.s.cfg.Log.Blob(ctx, s.task.Run, ref.GetDigest())
	return string(data), err
}

// Artifact is the text of a work item's artifact.
func (s *sources) Artifact(ctx context.Context, itemID string) (text string, found bool, err error) {
	for _, item := range s.snapshot().GetWorkItemLedger().GetItems() {
		if item.GetId() == itemID && item.GetArtifact() != nil {
			text, err = s.Text(ctx, item.GetArtifact())
			return text, err == nil, err
		}
	}
	return "", false, nil
}

// File has the tool host look at a file.
func (s *sources) File(ctx context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error) {
	var r *harnessv1.CheckFileResponse
	err := s.patiently(ctx, func() (err error) {
		r, err = s.s.cfg.ToolHost.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: s.snapshot().GetWorkspace(), Path: path, TextBytes: textBytes})
		return err
	})
	return r, err
}

// Command has the tool host run a command under a key that is the same for whoever
// takes the step over. What was begun by a tool host that has died is begun anew: it
// is a question, and asked again.
func (s *sources) Command(ctx context.Context, outputID, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error) {
	for try := 1; ; try++ {
		request := &harnessv1.CheckCommandRequest{
			Namespace: s.task.Run.Namespace, RunId: s.task.Run.ID, Workspace: s.snapshot().GetWorkspace(),
			Key:     fmt.Sprintf("%d/%s%s/%d", s.task.Entry.Header.Version, stopdecision.KeyCheck, outputID, try),
			Command: command, Timeout: durationpb.New(timeout), FirstSequence: s.snapshot().GetFirstSequence(),
		}
		var r *harnessv1.CheckCommandResponse
		err := s.patiently(ctx, func() (err error) {
			r, err = s.s.cfg.ToolHost.CheckCommand(ctx, request)
			return err
		})
		if interrupt.Stopped(ctx) {
			s.kill(ctx, request)
		}
		if err != nil || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN || try == maxCommandTries {
			return r, err
		}
	}
}

// maxCommandTries bounds how often a command is begun whose tool host dies under it.
const maxCommandTries = 3

// kill ends a command of which the run is interrupted.
func (s *sources) kill(ctx context.Context, request *harnessv1.CheckCommandRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_, err := s.s.cfg.ToolHost.CancelTools(ctx, &harnessv1.CancelToolsRequest{
		Namespace: request.GetNamespace(), RunId: request.GetRunId(), CallIds: []string{request.GetKey()}, FirstSequence: request.GetFirstSequence(),
	})
	if err != nil {
		s.s.cfg.Logger.WarnContext(ctx, "a command of the contract could not be killed", "run", s.task.Run.ID, "error", err)
	}
}

// killTime bounds the wait until a command is dead.
const killTime = 30 * time.Second

// patiently asks the tool host again while it cannot be reached, so that a restart
// of it is no verdict on the work. The step's deadline and whoever stops the run end it.
func (s *sources) patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		switch {
		case err == nil:
			return nil
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case status.Code(err) != codes.Unavailable:
			return err
		}
		s.s.cfg.Logger.WarnContext(ctx, "tool host", "run", s.task.Run.ID, "error", err)
		timer := time.NewTimer(commandPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// maxRemoteResponse bounds what a CheckService is given of the agent's text, in bytes.
const maxRemoteResponse = 64 << 10

// Remote asks a CheckService.
func (s *sources) Remote(ctx context.Context, target string, output *harnessv1.RequiredOutput, timeout time.Duration) (*harnessv1.RequirementCoverage, error) {
	conn, err := s.s.cfg.Remote.Dial(target)
	if err != nil {
		return nil, err
	}
	response, err := s.Response(ctx)
	if err != nil {
		return nil, err
	}
	vars, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(vars)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := harnessv1.NewCheckServiceClient(conn).Check(ctx, &harnessv1.CheckRequest{
		Namespace: s.task.Run.Namespace, RunId: s.task.Run.ID,
		IdempotencyKey: fmt.Sprintf("%d/%s%s", s.task.Entry.Header.Version, stopdecision.KeyCheck, output.GetId()),
		Output:         output, Goal: s.made.Contract.Proto().GetGoal(), Response: content.Cut(response, maxRemoteResponse),
		State: string(state), Workspace: s.snapshot().GetWorkspace(),
	})
	if err != nil {
		return nil, err
	}
	return r.GetCoverage(), nil
}

// State is what expressions over the state see.
func (s *sources) State(ctx context.Context) (map[string]any, error) {
	response, err := s.Response(ctx)
	if err != nil {
		return nil, err
	}
	vars, err := stopdecision.Variables(ctx, s.task.Step(), response, s.Text)
	if err != nil || s.snapshot().GetWorkspace() == "" {
		return vars, err
	}
	err = s.patiently(ctx, func() error { // the state has what was seen when the turn began, if anybody looked
		r, err := s.s.cfg.ToolHost.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
			Workspace: s.snapshot().GetWorkspace(), Namespace: s.task.Run.Namespace, RunId: s.task.Run.ID, FirstSequence: s.snapshot().GetFirstSequence(),
		})
		vars["files_changed"] = int64(r.GetFilesChanged())
		return err
	})
	return vars, err
}
