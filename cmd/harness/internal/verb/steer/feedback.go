package steer

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// FeedbackCmd gives feedback on the result of a run that has ended.
type FeedbackCmd struct {
	target.OneRun `embed:""`
	Thumb         string `arg:"" help:"up if the result was good, else down."`
}

var thumbs = map[string]harnessv1.Thumb{"up": harnessv1.Thumb_THUMB_UP, "down": harnessv1.Thumb_THUMB_DOWN}

func (c *FeedbackCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	thumb, ok := thumbs[c.Thumb]
	if !ok {
		return exit.Error, fmt.Errorf("THUMB: expected up or down, not %q", c.Thumb)
	}
	session, err := c.Connect(ctx, a, backend.Store)
	if err != nil {
		return exit.Error, err
	}
	defer target.Disconnect(ctx, a, session)
	_, err = session.Client.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: c.Namespace, RunId: c.RunID, RequestId: follow.NewID(),
		Input: &harnessv1.SendInputRequest_Feedback{Feedback: &harnessv1.Feedback{Thumb: thumb}},
	})
	if err != nil {
		return exit.Error, err
	}
	a.Report("the feedback on %s is stored", c.RunID)
	return exit.Done, nil
}
