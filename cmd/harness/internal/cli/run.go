package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// runCmd starts a run, or continues an existing one with a message, and follows it.
type runCmd struct {
	specFlags   `embed:""`
	attachFlags `embed:""`
	target      `embed:""`
	RunID       string   `placeholder:"ID" help:"Id of the run. Repeating the command with the same id follows the existing run."`
	Continue    string   `placeholder:"RUN" help:"Continue an existing run instead of starting one."`
	Catalogue   string   `placeholder:"FILE" help:"File with context windows and prices of models; overrides the built-in catalogue."`
	Output      string   `enum:"text,json,jsonl" default:"text" help:"Format of stdout: the answer (text), one object (json), or one line per event (jsonl)."`
	Render      string   `enum:"auto,markdown,plain" default:"auto" help:"How text output shows the run: live with rendered Markdown (markdown), or line by line (plain). auto: markdown on a terminal."`
	Guidance    bool     `help:"Also show the guidance that opens every run, in text output."`
	Tree        bool     `default:"true" negatable:"" help:"Also show the runs of sub-agents, nested in the run."`
	Transcript  string   `placeholder:"FILE" help:"Write the conversation to FILE when the command ends: one JSON object per message and line."`
	NoStream    bool     `help:"Request complete responses from the model instead of a stream."`
	Goal        []string `arg:"" optional:"" help:"The task for the agent; - reads it from stdin."`
}

// startFlags do not apply to an existing run: its spec never changes.
var startFlags = []string{
	"agent", "mcp", "tool-service", "contract", "graph", "mode", "effort", "workspace", "workflow", "yolo", "unconfined", "allow",
	"max-turns", "max-tool-calls", "max-runs", "timeout", "run-id",
}

func (c *runCmd) run(ctx context.Context, a *app) (int, error) {
	if err := c.target.check(a); err != nil {
		return exit.Error, err
	}
	if a.given["catalogue"] && c.Server != "" {
		return exit.Error, errors.New("--catalogue: not supported with --server; set it there: harness serve --catalogue FILE")
	}
	if err := checkTranscript(c.Transcript); err != nil {
		return exit.Error, err
	}
	a.catalogue = c.Catalogue
	if c.Server == "" {
		if _, err := a.models(); err != nil {
			return exit.Error, err
		}
	}
	if c.Namespace == "*" {
		return exit.Error, errors.New("--namespace: a run has one namespace, not *")
	}
	if c.Continue != "" {
		for _, flag := range startFlags {
			if err := a.conflict("continue", flag); err != nil {
				return exit.Error, err
			}
		}
		if err := runName("--continue", c.Continue); err != nil {
			return exit.Error, err
		}
	}
	var goal string
	if len(c.Goal) > 0 || c.Continue == "" || len(c.Attach) == 0 {
		var err error
		if goal, err = a.said(c.Goal, "GOAL"); err != nil {
			return exit.Error, err
		}
	}
	files, err := c.attachments()
	if err != nil {
		return exit.Error, err
	}
	if c.Continue != "" {
		return c.continueRun(ctx, a, goal, files)
	}
	if c.RunID != "" {
		if err := runName("--run-id", c.RunID); err != nil {
			return exit.Error, err
		}
	}
	spec, file, err := c.spec(ctx, a, goal, c.Server == "")
	if err != nil {
		return before(err)
	}
	if c.Server == "" {
		if err := c.reach(ctx, a, file); err != nil {
			return before(err)
		}
		warnChecks(a, spec.GetContract(), spec.GetWorkspace())
	}
	spec.Media = files
	if c.NoStream {
		spec.Config.Model = &harnessv1.ModelConfig{Streaming: new(bool)}
	}
	return c.start(ctx, a, spec, file)
}

// start starts a run and follows it. An error of the gateway about the spec is shown at
// its place in the file.
func (c *runCmd) start(ctx context.Context, a *app, spec *harnessv1.RunSpec, file *agentfile.File) (int, error) {
	var keep []string
	request := &harnessv1.StartRunRequest{Namespace: c.Namespace, RunId: c.RunID, RequestId: follow.NewID(), Spec: spec, Entitlements: c.Entitlement}
	if c.RunID != "" {
		// The same command is the same request and starts no second run.
		keep = append(keep, c.RunID)
		request.RequestId = requestID(request)
	} else {
		request.RunId = follow.NewRunID()
	}
	session, err := c.connect(ctx, a, backend.Own, keep...)
	if err != nil {
		return before(err)
	}
	f := &runFollower{target: &c.target, session: session, output: c.Output, render: c.Render, guidance: c.Guidance, alone: !c.Tree, noDeltas: c.NoStream, transcript: c.Transcript}
	defer func() { disconnect(ctx, a, f.session) }()

	started, err := startRun(ctx, a, session, request)
	if err != nil {
		return before(file.Locate(err))
	}
	f.run = started.GetRunId()
	f.model, f.workspace, f.goal = spec.GetAgent().GetModel(), spec.GetWorkspace(), spec.GetGoal().GetInline()
	if started.GetExisted() {
		a.printNote("run %s already exists; following it", f.run)
	}
	return f.follow(ctx, a)
}

// reach connects to the hooks that are services before anything is stored.
func (c *runCmd) reach(ctx context.Context, a *app, file *agentfile.File) error {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	err := reach(ctx, a, file)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("--agent: %w", err)
	}
	return nil
}

// before returns the exit code and error of a command that failed before it followed a
// run.
func before(err error) (int, error) {
	if errors.Is(err, errSignal) {
		return exit.Parked, errors.New("interrupted before the run had started")
	}
	return exit.Error, err
}

// startRun starts a run. The request id makes it safe to retry.
func startRun(ctx context.Context, a *app, s *backend.Session, request *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	ctx, stop := a.cancelOnSignal(ctx)
	defer stop()
	for try := 1; ; try++ {
		answer, err := s.Client.StartRun(ctx, request)
		if err == nil {
			return answer, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if status.Code(err) != codes.Unavailable || try == 5 {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 300 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// requestID returns an id that is derived from the whole request.
func requestID(request *harnessv1.StartRunRequest) string {
	bare := proto.CloneOf(request)
	bare.RequestId = ""
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	if err != nil {
		return follow.NewID() // it cannot be sent either
	}
	sum := sha256.Sum256(raw)
	return "cli-" + hex.EncodeToString(sum[:16])
}

// continueRun sends an existing run a message and follows it.
func (c *runCmd) continueRun(ctx context.Context, a *app, text string, files []*harnessv1.Media) (int, error) {
	if err := checkModel(a, &c.Model, c.Server == ""); err != nil {
		return exit.Error, err
	}
	f := &runFollower{target: &c.target, run: c.Continue, newModel: c.Model, output: c.Output, render: c.Render, guidance: c.Guidance, alone: !c.Tree,
		noDeltas: c.NoStream, transcript: c.Transcript, goal: text}
	defer func() { disconnect(ctx, a, f.session) }()
	current, err := f.drive(ctx, a)
	if err != nil {
		return before(err)
	}
	f.after, f.since = current.GetRun().GetVersion(), current.GetRun().GetUpdateTime().AsTime()
	if err := f.changeModel(ctx); err != nil {
		return exit.Error, err
	}
	id := follow.NewID()
	if err := sendMessage(ctx, f.session, c.Namespace, f.run, id, text, files); err != nil {
		return exit.Error, err
	}
	f.sent = append(f.sent, id)
	return f.follow(ctx, a)
}

// current reads the status of the run and fills in the header.
func (f *runFollower) current(ctx context.Context) (*harnessv1.GetRunResponse, error) {
	current, err := f.session.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: f.target.Namespace, RunId: f.run})
	if err != nil {
		return nil, err
	}
	f.model, f.workspace = current.GetRun().GetModel(), current.GetSpec().GetWorkspace()
	if f.goal == "" {
		f.goal = current.GetRun().GetGoal()
	}
	return current, nil
}

// sendMessage sends a user message to a run.
func sendMessage(ctx context.Context, s *backend.Session, namespace, run, id, text string, files []*harnessv1.Media) error {
	_, err := s.Client.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text), Media: files}},
	})
	if err != nil {
		return fmt.Errorf("the message was not accepted: %w", err)
	}
	return nil
}
