package steer

import (
	"context"
	"errors"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follower"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (SendCmd) Help() string {
	return "Example:\n\n  harness send r-x7k2qm4a 'also update the changelog'"
}

// SendCmd sends a run a message, a change of mode, or a request for a new plan.
type SendCmd struct {
	target.OneRun       `embed:""`
	runspec.AttachFlags `embed:""`
	runspec.ModelFlag   `embed:""`
	Text                []string `arg:"" optional:"" help:"The message; - reads it from stdin. Optional with --mode, --model, --replan or --attach."`
	Mode                string   `placeholder:"NAME" help:"Change the mode first: plan, execute, or a custom mode of the agent."`
	Replan              bool     `help:"Request a new plan before the next turn; TEXT is the reason, not a message."`
}

func (c *SendCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	// A mode in the environment is for runs that are started.
	if !a.Given["mode"] {
		c.Mode = ""
	}
	if !a.Given["replan"] {
		c.Replan = false
	}
	if c.Mode == "" && a.Given["mode"] {
		return exit.Error, errors.New("--mode: must not be empty")
	}
	if c.Replan && len(c.Attach) > 0 {
		return exit.Error, errors.New("--attach: not supported with --replan, which sends no message")
	}
	var text string
	if err := runspec.CheckModel(a, &c.Model, c.Server == ""); err != nil {
		return exit.Error, err
	}
	if len(c.Text) > 0 || c.Mode == "" && c.Model == "" && !c.Replan && len(c.Attach) == 0 {
		var err error
		if text, err = a.SaidWithMaterial(c.Text, "TEXT", "message"); err != nil {
			return exit.Error, err
		}
	}
	files, err := c.Attachments()
	if err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Store)
	if err != nil {
		return exit.Error, err
	}
	defer target.Disconnect(ctx, a, session)
	sent, err := c.send(ctx, session, text, files)
	if err != nil {
		if len(sent) > 0 {
			a.Report("%s is stored; no process is working on the run", sent[0])
		}
		return exit.Error, c.named(err)
	}
	what := sent[0] + " is stored"
	if len(sent) > 1 {
		what = strings.Join(sent, " and ") + " are stored"
	}
	c.Stored(a, session, what)
	return exit.Done, nil
}

// send stores the inputs: the mode first, so that the message is processed in it. An
// ended run accepts a mode only after a message has reopened it.
func (c *SendCmd) send(ctx context.Context, s *backend.Session, text string, files []*harnessv1.Media) (sent []string, err error) {
	mode := func() error {
		return c.give(ctx, s, &harnessv1.SendInputRequest{
			Input: &harnessv1.SendInputRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: c.Mode}},
		})
	}
	said := func() error { return follower.SendMessage(ctx, s, c.Namespace, c.RunID, follow.NewID(), text, files) }
	hasMessage := text != "" || len(files) > 0
	if c.Model != "" {
		if _, err := follower.ChangeModel(ctx, s, c.Namespace, c.RunID, c.Model); err != nil {
			return nil, err
		}
		sent = append(sent, "the model")
	}
	const theMode, theMessage = "the mode", "the message"
	if c.Mode != "" {
		err := mode()
		ended := fault.ReasonOf(err) == fault.ReasonName(harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED)
		switch {
		case ended && hasMessage && !c.Replan:
			if err := said(); err != nil {
				return sent, err
			}
			if err := mode(); err != nil {
				return append(sent, theMessage), err
			}
			return append(sent, theMessage, theMode), nil
		case err != nil:
			return sent, err
		}
		sent = append(sent, theMode)
	}
	switch {
	case c.Replan:
		err = c.give(ctx, s, &harnessv1.SendInputRequest{
			Input: &harnessv1.SendInputRequest_Replan{Replan: &harnessv1.ReplanRequest{Reason: text}},
		})
		if err == nil {
			sent = append(sent, "the wish for another plan")
		}
	case hasMessage:
		if err = said(); err == nil {
			sent = append(sent, theMessage)
		}
	}
	return sent, err
}

func (c *SendCmd) give(ctx context.Context, s *backend.Session, request *harnessv1.SendInputRequest) error {
	request.Namespace, request.RunId, request.RequestId = c.Namespace, c.RunID, follow.NewID()
	_, err := s.Client.SendInput(ctx, request)
	return err
}

// named replaces the field in an error by the flag or argument that sets it.
func (c *SendCmd) named(err error) error {
	return console.NamedField(err, map[string]string{"mode_change.mode": "--mode", "replan.reason": "TEXT"})
}
