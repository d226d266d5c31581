// Package background kills the background commands of a run, and the calls that tool hosts hold
// for answers, for the decisions that need it.
// Before a record is stored that ends or parks the run, its tool hosts have confirmed that
// nothing of them is running.
package background

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const (
	// DefaultPatience is how long a tool host may be away while another one answers.
	DefaultPatience = 2 * time.Minute
	// pause is the wait before a tool host that does not answer is called again.
	pause = 250 * time.Millisecond
	// tryTime bounds one call. The host continues to kill after it.
	tryTime = 30 * time.Second
)

// Killer kills background commands. The zero value of a field but Host has a default.
type Killer struct {
	// Host is the client of all tool hosts. Required.
	Host harnessv1.ToolHostServiceClient
	// Patience is how long the tool host of a command may be away while another one
	// answers; then the end of the command is not known. Default DefaultPatience.
	Patience time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
}

// Observe kills the background commands in a snapshot, and returns the observation under
// runstate.KeyBackground once nothing of them is running. If a host is away and no other one
// answers, it returns an error that has the step delivered again.
func (k Killer) Observe(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot) (*harnessv1.Observation, error) {
	states := &harnessv1.BackgroundStates{}
	killed := map[string]bool{}
	for _, c := range s.GetBackgroundCommands() {
		if killed[c.GetLedgerId()] {
			continue
		}
		killed[c.GetLedgerId()] = true
		ended, err := k.kill(ctx, &harnessv1.CancelToolsRequest{
			Namespace: run.Namespace, RunId: run.ID, FirstSequence: s.GetFirstSequence(), LedgerId: c.GetLedgerId(), Background: true,
		})
		if err != nil {
			return nil, err
		}
		states.Commands = append(states.Commands, ended...)
	}
	return &harnessv1.Observation{Key: runstate.KeyBackground, Value: &harnessv1.Observation_Background{Background: states}}, nil
}

// ObserveHeld has the tool host cancel the call of a snapshot that it holds for an answer, and returns
// the observation under key (runstate.KeyHeld). Errors are as for Observe.
func (k Killer) ObserveHeld(ctx context.Context, run runlog.Run, s *harnessv1.Snapshot, key string) (*harnessv1.Observation, error) {
	if c := runstate.HeldCall(s, key); c != nil {
		if _, err := k.kill(ctx, &harnessv1.CancelToolsRequest{
			Namespace: run.Namespace, RunId: run.ID, FirstSequence: s.GetFirstSequence(), LedgerId: c.GetQuestion().GetLedgerId(),
			CallIds: []string{runstate.AnswerKey(c)},
		}); err != nil {
			return nil, err
		}
	}
	return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Background{Background: &harnessv1.BackgroundStates{}}}, nil
}

// kill has the host of a ledger kill. The result is empty if the host is away and another one
// answers.
func (k Killer) kill(ctx context.Context, request *harnessv1.CancelToolsRequest) ([]*harnessv1.BackgroundState, error) {
	patience := k.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := k.try(bounded, request)
		if err == nil {
			return r.GetBackground(), nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if k.Logger != nil {
			k.Logger.WarnContext(ctx, "background commands not killed", "run", request.GetRunId(), "error", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-bounded.Done():
			timer.Stop()
			return k.replaced(ctx, request.GetLedgerId(), err)
		case <-timer.C:
		}
	}
}

func (k Killer) try(ctx context.Context, request *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return k.Host.CancelTools(ctx, request)
}

// replaced returns an error unless another tool host answers.
func (k Killer) replaced(ctx context.Context, ledger string, away error) ([]*harnessv1.BackgroundState, error) {
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	r, err := k.Host.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
	if err != nil || r.GetLedgerId() == ledger {
		return nil, executor.Retry(fmt.Sprintf("kill the background commands of ledger %s", ledger), away)
	}
	return nil, nil
}
