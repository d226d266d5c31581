// Package run is the verbs that start and continue a run and follow it: run, resume and demo.
package run

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

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// The Help methods return what --help of a verb shows after its summary: one example.
// Indented lines are printed unchanged.

func (Cmd) Help() string {
	return "Example:\n\n  harness run --model openai:gpt-5 'fix the failing test'"
}

// Cmd starts a run, or continues an existing one with a message, and follows it.
type Cmd struct {
	runspec.Flags       `embed:""`
	runspec.AttachFlags `embed:""`
	target.Target       `embed:""`
	RunID               string   `placeholder:"ID" help:"Id of the run. Repeating the command with the same id follows the existing run."`
	Continue            string   `placeholder:"RUN" help:"Continue an existing run instead of starting one."`
	Catalogue           string   `placeholder:"FILE" help:"File with context windows and prices of models; overrides the built-in catalogue."`
	Output              string   `enum:"text,json,jsonl" default:"text" help:"Format of stdout: the answer (text), one object (json), or one line per event (jsonl)."`
	Render              string   `enum:"auto,markdown,plain" default:"auto" help:"How text output shows the run: live with rendered Markdown (markdown), or line by line (plain). auto: markdown on a terminal."`
	Guidance            bool     `help:"Also show the guidance that opens every run, in text output."`
	Tree                bool     `default:"true" negatable:"" help:"Also show the runs of sub-agents, nested in the run."`
	Transcript          string   `placeholder:"FILE" help:"Write the conversation to FILE when the command ends: one JSON object per message and line."`
	NoStream            bool     `help:"Request complete responses from the model instead of a stream."`
	Goal                []string `arg:"" optional:"" help:"The task for the agent; - reads it from stdin."`
}

// startFlags do not apply to an existing run: its spec never changes.
var startFlags = []string{
	"agent", "mcp", "tool-service", "contract", "graph", "mode", "effort", "workspace", "workflow", "yolo", "unconfined", "allow", "quality",
	"max-turns", "max-tool-calls", "max-runs", "timeout", "run-id",
}

func (c *Cmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Target.Check(a); err != nil {
		return exit.Error, err
	}
	if a.Given["catalogue"] && c.Server != "" {
		return exit.Error, errors.New("--catalogue: not supported with --server; set it there: harness serve --catalogue FILE")
	}
	if err := follower.CheckTranscript(c.Transcript); err != nil {
		return exit.Error, err
	}
	a.Catalogue = c.Catalogue
	if c.Server == "" {
		if _, err := a.Models(); err != nil {
			return exit.Error, err
		}
	}
	if c.Namespace == "*" {
		return exit.Error, errors.New("--namespace: a run has one namespace, not *")
	}
	if c.Continue != "" {
		for _, flag := range startFlags {
			if err := a.Conflict("continue", flag); err != nil {
				return exit.Error, err
			}
		}
		if err := console.RunName("--continue", c.Continue); err != nil {
			return exit.Error, err
		}
	}
	var goal string
	if len(c.Goal) > 0 || c.Continue == "" || len(c.Attach) == 0 {
		var err error
		if goal, err = c.goal(a); err != nil {
			return exit.Error, err
		}
	}
	files, err := c.Attachments()
	if err != nil {
		return exit.Error, err
	}
	if c.Continue != "" {
		return c.continueRun(ctx, a, goal, files)
	}
	if c.RunID != "" {
		if err := console.RunName("--run-id", c.RunID); err != nil {
			return exit.Error, err
		}
	}
	person := acceptance.Of(a, &c.Target)
	c.ReadWith(person.Read)
	spec, file, err := c.Spec(ctx, a, goal, c.Server == "")
	if err != nil {
		return console.Before(person.Err(err))
	}
	if c.Server == "" {
		if err := c.reach(ctx, a, file); err != nil {
			return console.Before(err)
		}
		if err := person.BeforeRun(spec.GetWorkspace()); err != nil {
			return console.Before(err)
		}
		warnWide(a, spec.GetWorkspace())
		runspec.WarnChecks(a, spec.GetContract(), spec.GetWorkspace())
	}
	person.Register()
	spec.Media = files
	if c.NoStream {
		spec.Config.Model = &harnessv1.ModelConfig{Streaming: new(bool)}
	}
	return c.start(ctx, a, spec, file)
}

// start starts a run and follows it. An error of the gateway about the spec is shown at
// its place in the file.
func (c *Cmd) start(ctx context.Context, a *console.Console, spec *harnessv1.RunSpec, file *agentfile.File) (int, error) {
	var keep []string
	request := &harnessv1.StartRunRequest{Namespace: c.Namespace, RunId: c.RunID, RequestId: follow.NewID(), Spec: spec, Entitlements: c.Entitlement}
	if c.RunID != "" {
		// The same command is the same request and starts no second run.
		keep = append(keep, c.RunID)
		request.RequestId = requestID(request)
	} else {
		request.RunId = follow.NewRunID()
	}
	session, err := c.Connect(ctx, a, backend.Own, keep...)
	if err != nil {
		return console.Before(err)
	}
	f := &follower.Follower{
		Target: &c.Target, Session: session, Output: c.Output, Render: c.Render, Guidance: c.Guidance,
		Alone: !c.Tree, NoDeltas: c.NoStream, Transcript: c.Transcript,
	}
	defer func() { target.Disconnect(ctx, a, f.Session) }()

	c.warnShared(ctx, a, session, spec.GetWorkspace())
	started, err := c.startRun(ctx, a, f, request)
	if err != nil {
		return console.Before(c.inFlags(spec, file.Locate(err)))
	}
	f.Run = started.GetRunId()
	f.Model, f.Workspace, f.Goal = spec.GetAgent().GetModel(), spec.GetWorkspace(), spec.GetGoal().GetInline()
	if started.GetExisted() && len(f.Sent) == 0 {
		a.Report("run %s already exists; following it", f.Run)
	}
	return f.Follow(ctx, a)
}

// reach connects to the hooks that are services before anything is stored.
func (c *Cmd) reach(ctx context.Context, a *console.Console, file *agentfile.File) error {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	err := runspec.Reach(ctx, a, file)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("--agent: %w", err)
	}
	return nil
}

// startRun starts a run. The request id makes it safe to retry. If the background process has died meanwhile,
// another one gets the request, and resumes the run if the former had stored it.
func (c *Cmd) startRun(ctx context.Context, a *console.Console, f *follower.Follower, request *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	lost := false
	for try := 1; ; try++ {
		answer, err := f.Session.Client.StartRun(ctx, request)
		if err == nil && lost && answer.GetExisted() {
			id := follow.NewID()
			if _, err = f.Session.Client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{Namespace: c.Namespace, RunId: answer.GetRunId(), RequestId: id}); err == nil {
				f.Sent, f.Resume = []string{id}, id
			}
		}
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
		if f.Session.Process == nil {
			continue
		}
		if session, err := c.Connect(ctx, a, backend.Own); err == nil {
			target.Disconnect(ctx, a, f.Session)
			lost, f.Session = true, session
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
func (c *Cmd) continueRun(ctx context.Context, a *console.Console, text string, files []*harnessv1.Media) (int, error) {
	if err := runspec.CheckModel(a, &c.Model, c.Server == ""); err != nil {
		return exit.Error, err
	}
	f := &follower.Follower{Target: &c.Target, Run: c.Continue, NewModel: c.Model, Output: c.Output, Render: c.Render, Guidance: c.Guidance, Alone: !c.Tree,
		NoDeltas: c.NoStream, Transcript: c.Transcript, Goal: text}
	defer func() { target.Disconnect(ctx, a, f.Session) }()
	current, err := f.Drive(ctx, a)
	if err != nil {
		return console.Before(err)
	}
	f.After, f.Since = current.GetRun().GetVersion(), current.GetRun().GetUpdateTime().AsTime()
	if err := f.ChangeModel(ctx); err != nil {
		return exit.Error, err
	}
	id := follow.NewID()
	if err := follower.SendMessage(ctx, f.Session, c.Namespace, f.Run, id, text, files); err != nil {
		return exit.Error, err
	}
	f.Sent = append(f.Sent, id)
	return f.Follow(ctx, a)
}
