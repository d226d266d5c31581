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
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// sources reads files, commands and services for the checks of a contract. It implements contract.Sources.
type sources struct{ *observer }

func (s *sources) snapshot() *harnessv1.Snapshot { return s.task.Step().GetSnapshot() }

// Turn returns the number of the turn that has ended.
func (s *sources) Turn() uint32 { return s.task.Step().GetTurnComplete().GetTurnNumber() }

// Response returns the agent's last text.
func (s *sources) Response(ctx context.Context) (string, error) {
	return s.Text(ctx, s.snapshot().GetAnswer())
}

// Messages returns the conversation up to the step.
func (s *sources) Messages(ctx context.Context) ([]*harnessv1.Message, error) {
	c, err := s.s.cfg.Conversations.Load(ctx, s.snapshot().GetFirstSequence(), s.task.Entry)
	if err != nil {
		return nil, err
	}
	return c.Messages, nil
}

// Text returns the text of a content of the run, from its blob if it has one.
func (s *sources) Text(ctx context.Context, c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	data, err := s.s.cfg.Log.Blob(ctx, s.task.Run, ref.GetDigest())
	return string(data), err
}

// Artifact returns the text of the artifact of a work item, else of a saved artifact.
func (s *sources) Artifact(ctx context.Context, id string) (text string, found bool, err error) {
	var artifact *harnessv1.Content
	for _, saved := range s.Saved() {
		if saved.GetId() == id {
			artifact = saved.GetContent()
		}
	}
	for _, item := range s.snapshot().GetWorkItemLedger().GetItems() {
		if item.GetId() == id && item.GetArtifact() != nil {
			artifact = item.GetArtifact()
		}
	}
	if artifact == nil {
		return "", false, nil
	}
	text, err = s.Text(ctx, artifact)
	return text, err == nil, err
}

// Saved returns the artifacts of save_artifact.
func (s *sources) Saved() []*harnessv1.Artifact {
	return s.snapshot().GetWorkItemLedger().GetArtifacts()
}

// File returns the file that the tool host finds at a path.
func (s *sources) File(ctx context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error) {
	var r *harnessv1.CheckFileResponse
	err := s.whenReachable(ctx, func() (err error) {
		r, err = s.s.cfg.ToolHost.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: s.snapshot().GetWorkspace(), Path: path, TextBytes: textBytes})
		return err
	})
	return r, err
}

// Command runs a command on the tool host. Its key is the same for every worker that
// has the step. If the tool host dies while the command runs, the command is started
// again under the next key, because a check has no effect that must not be repeated.
func (s *sources) Command(ctx context.Context, outputID, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error) {
	for try := 1; ; try++ {
		request := &harnessv1.CheckCommandRequest{
			Namespace: s.task.Run.Namespace, RunId: s.task.Run.ID, Workspace: s.snapshot().GetWorkspace(),
			Key:     fmt.Sprintf("%d/%s%s/%d", s.task.Entry.Header.Version, stopdecision.KeyCheck, outputID, try),
			Command: command, Timeout: durationpb.New(timeout), FirstSequence: s.snapshot().GetFirstSequence(),
			Confinement: &harnessv1.Confinement{Config: s.snapshot().GetConfig().GetSandbox()},
		}
		var r *harnessv1.CheckCommandResponse
		err := s.whenReachable(ctx, func() (err error) {
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

// maxCommandTries bounds how often a command is started if its tool host keeps dying.
const maxCommandTries = 3

// kill ends the command of a run that is interrupted.
func (s *sources) kill(ctx context.Context, request *harnessv1.CheckCommandRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_, err := s.s.cfg.ToolHost.CancelTools(ctx, &harnessv1.CancelToolsRequest{
		Namespace: request.GetNamespace(), RunId: request.GetRunId(), CallIds: []string{request.GetKey()}, FirstSequence: request.GetFirstSequence(),
	})
	if err != nil {
		s.s.cfg.Logger.WarnContext(ctx, "command of the contract not killed", "run", s.task.Run.ID, "error", err)
	}
}

// killTime is how long kill waits until the command is dead.
const killTime = 30 * time.Second

// retryPause is the wait before a tool host that cannot be reached is called again.
const retryPause = 250 * time.Millisecond

// whenReachable repeats a call while the tool host cannot be reached, so that its
// restart does not count against the work. It returns the cause of ctx when ctx ends.
func (s *sources) whenReachable(ctx context.Context, call func() error) error {
	defer executor.Waits(ctx)()
	for {
		err := call()
		switch {
		case err == nil:
			return nil
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case remote.DeadlinePassed(ctx, err):
			<-ctx.Done()
			return context.Cause(ctx)
		case status.Code(err) != codes.Unavailable:
			return err
		}
		s.s.cfg.Logger.WarnContext(ctx, "tool host cannot be reached", "run", s.task.Run.ID, "error", err)
		timer := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// maxRemoteResponse bounds the text of the agent in a request to a CheckService, in
// bytes.
const maxRemoteResponse = 64 << 10

// Remote calls a CheckService.
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
		Output:         output, Goal: s.definition.Contract.Proto().GetGoal(), Response: content.Cut(response, maxRemoteResponse),
		State: string(state), Workspace: s.snapshot().GetWorkspace(),
	})
	if err != nil {
		return nil, err
	}
	return r.GetCoverage(), nil
}

// State returns the variables of expressions over the state.
func (s *sources) State(ctx context.Context) (map[string]any, error) {
	response, err := s.Response(ctx)
	if err != nil {
		return nil, err
	}
	vars, err := stopdecision.Variables(ctx, s.task.Step(), response, s.Text)
	if err != nil || s.snapshot().GetWorkspace() == "" {
		return vars, err
	}
	err = s.whenReachable(ctx, func() error { // the snapshot has the count from the start of the turn, or none
		r, err := s.s.cfg.ToolHost.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
			Workspace: s.snapshot().GetWorkspace(), Namespace: s.task.Run.Namespace, RunId: s.task.Run.ID, FirstSequence: s.snapshot().GetFirstSequence(),
		})
		vars["files_changed"] = int64(r.GetFilesChanged())
		return err
	})
	return vars, err
}
