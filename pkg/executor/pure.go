package executor

import (
	"context"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Decide is the pure decision of an executor.
type Decide func(*harnessv1.StepInput) (*harnessv1.StepOutput, error)

// Observe fetches what a decision needs, by key.
type Observe func(ctx context.Context, task *Task, key string) (*harnessv1.Observation, error)

// Changes reports changes of the things that the keys of a wait name. The channel receives a value
// when one of them may have changed after the call; reports may be missing or
// unnecessary. stop ends the reports.
type Changes func(ctx context.Context, task *Task, keys []string) (changed <-chan struct{}, stop func())

// Pure is an executor around a pure decision. It decides, fetches each key that the
// decision needs once, and decides again.
//
// A decision can also wait. The step then has no slot of the worker, and nothing is
// committed. It is decided again, from the start, when Changes reports a change, when
// the inbox of the run has a new item, at the time that the wait names, and every few
// seconds in case a report was lost (Config.Poll). The first wait for a key
// is followed by a decision immediately, because a change before Changes was called is
// not reported.
type Pure struct {
	ExecutorName string
	Decide       Decide
	Observe      Observe
	// Bind returns the decision and its observer for one task, if they depend on the
	// run. If set, it replaces Decide and Observe. It is called again after a wait.
	Bind func(ctx context.Context, task *Task) (Decide, ObserveNeeds, error)
	// Changes reports changes during a wait; nil reports none.
	Changes Changes
}

// ObserveNeeds fetches what a decision needs, or the first part of it. The decision
// then requests the rest.
type ObserveNeeds func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error)

// Name returns the executor's name.
func (p *Pure) Name() string { return p.ExecutorName }

// maxRounds bounds the rounds of needs of one decision.
const maxRounds = 2048

// Execute decides until there is an outcome.
func (p *Pure) Execute(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
	var w watch
	defer func() { w.stop() }()
	for {
		out, err := p.decide(ctx, task)
		if err != nil {
			return nil, err
		}
		wait := out.GetWait()
		if wait == nil {
			return out.GetOutcome(), nil
		}
		if w.start(ctx, task, wait.GetKeys(), p.Changes) {
			continue
		}
		if err := task.wait(ctx, &w, wait.GetUntil()); err != nil {
			return nil, err
		}
	}
}

// decide returns the outcome or the wait of a decision that starts without observations.
func (p *Pure) decide(ctx context.Context, task *Task) (*harnessv1.StepOutput, error) {
	decide, observe := p.Decide, p.each(task)
	if p.Bind != nil {
		var err error
		if decide, observe, err = p.Bind(ctx, task); err != nil {
			return nil, err
		}
	}
	in := task.Input()
	for range maxRounds {
		out, err := decide(in)
		if err != nil {
			return nil, err
		}
		if out.GetOutcome() != nil || out.GetWait() != nil {
			return out, nil
		}
		seen, err := observe(ctx, out.GetNeeds())
		if err != nil {
			return nil, err
		}
		in.Observed = append(in.Observed, seen...)
	}
	return nil, fmt.Errorf("%s requested observations %d times without an outcome", p.ExecutorName, maxRounds)
}

// each returns an observer that fetches one key after the other.
func (p *Pure) each(task *Task) ObserveNeeds {
	return func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
		var seen []*harnessv1.Observation
		for _, key := range needs.GetKeys() {
			if p.Observe == nil {
				return nil, fmt.Errorf("%s needs %q, and this executor observes nothing", p.ExecutorName, key)
			}
			observation, err := p.Observe(ctx, task, key)
			if err != nil {
				return nil, fmt.Errorf("observe %s: %w", key, err)
			}
			seen = append(seen, observation)
		}
		return seen, nil
	}
}
