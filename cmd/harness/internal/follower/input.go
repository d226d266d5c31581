package follower

import (
	"context"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/follow"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ChangeModel gives a run another model.
func ChangeModel(ctx context.Context, s *backend.Session, namespace, run, model string) (id string, err error) {
	id = follow.NewID()
	_, err = s.Client.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_ModelChange{ModelChange: &harnessv1.ModelChange{Model: model}},
	})
	if err != nil {
		return "", console.NamedField(err, map[string]string{"model_change.model": "--model"})
	}
	return id, nil
}

// ChangeModel gives the run the model of --model, if any.
func (f *Follower) ChangeModel(ctx context.Context) error {
	if f.NewModel == "" {
		return nil
	}
	id, err := ChangeModel(ctx, f.Session, f.Target.Namespace, f.Run, f.NewModel)
	if err != nil {
		return err
	}
	f.Sent, f.Model = append(f.Sent, id), f.NewModel
	return nil
}

// movePatience is how long a run may take to continue after a message.
const movePatience = 10 * time.Second

// Moved waits until the run's log has grown.
func (f *Follower) Moved(ctx context.Context, a *console.Console) error {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(movePatience); time.Now().Before(deadline); {
		now, err := f.Current(ctx)
		if err != nil {
			return err
		}
		if now.GetRun().GetVersion() > f.After {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Current reads the status of the run and fills in the header.
func (f *Follower) Current(ctx context.Context) (*harnessv1.GetRunResponse, error) {
	current, err := f.Session.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: f.Target.Namespace, RunId: f.Run})
	if err != nil {
		return nil, err
	}
	f.Model, f.Workspace = current.GetRun().GetModel(), current.GetSpec().GetWorkspace()
	if f.Goal == "" {
		f.Goal = current.GetRun().GetGoal()
	}
	return current, nil
}

// SendMessage sends a user message to a run.
func SendMessage(ctx context.Context, s *backend.Session, namespace, run, id, text string, files []*harnessv1.Media) error {
	_, err := s.Client.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: namespace, RunId: run, RequestId: id,
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text), Media: files}},
	})
	if err != nil {
		return fmt.Errorf("the message was not accepted: %w", err)
	}
	return nil
}
