package stopdecisionserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// observer makes the observations that the decision over one task needs.
type observer struct {
	s          *Server
	task       *executor.Task
	definition *agent.Definition
	outcomes   agent.OutcomeLimit
}

// observe makes the observations, in order, and cancels them when an interrupt or a
// cancel arrives or the wall-clock budget is used up. It then returns KeyStop alone.
func (o *observer) observe(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	snapshot := o.task.Step().GetSnapshot()
	if slices.Equal(needs.GetKeys(), []string{runstate.KeyBackground}) || slices.Equal(needs.GetKeys(), []string{stopdecision.KeyProfile}) || onlyNotices(needs) {
		return o.all(ctx, needs)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if deadline, ok := runstate.WallClockDeadline(snapshot); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, deadline, interrupt.ErrOutOfTime)
		defer stop()
	}
	lookout, stop := o.s.interrupts.Inbox(ctx, cancel, o.task.Run, snapshot)
	defer stop()
	o.task.OnHeartbeat(func(hctx context.Context, view runlog.View) {
		if view.InboxSequence > snapshot.GetInboxCursor() {
			_ = lookout.Check(hctx) // the next heartbeat reads it again
		}
	})
	observations, err := o.all(ctx, needs)
	if interrupt.Stopped(ctx) {
		// What ran is dead, and the other observations no longer matter.
		return []*harnessv1.Observation{{Key: stopdecision.KeyStop, Value: &harnessv1.Observation_StopAsked{StopAsked: true}}}, nil
	}
	return observations, err
}

// onlyNotices reports whether the decision is made and only subscribers that cannot
// change it are to be called. They are not cancelled, because what they received would
// then be wrong.
func onlyNotices(needs *harnessv1.Needs) bool {
	for _, request := range needs.GetHooks() {
		if request.GetTopic() == harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP { // alone decides
			return false
		}
	}
	return len(needs.GetHooks()) > 0 && len(needs.GetHooks()) == len(needs.GetKeys())
}

// all makes the observations in order.
func (o *observer) all(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	var observations []*harnessv1.Observation
	for _, key := range needs.GetKeys() {
		observation, err := o.one(ctx, needs, key)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", key, err)
		}
		failpoint.Hit(stopdecision.Name, "looked")
		observations = append(observations, observation)
	}
	return observations, nil
}

// one makes the observation under a key.
func (o *observer) one(ctx context.Context, needs *harnessv1.Needs, key string) (*harnessv1.Observation, error) {
	for _, request := range needs.GetHooks() {
		if request.GetIdempotencyKey() == key {
			s := o.task.Step().GetSnapshot()
			outcome := o.s.cfg.Hooks.Call(ctx, o.definition.Hooks.Hook(request.GetHookId()), request, hookcaller.RunInfo{
				Workspace: s.GetWorkspace(), FirstSequence: s.GetFirstSequence(), Timeout: s.GetConfig().GetHooks().GetTimeout().AsDuration(), Sandbox: s.GetConfig().GetSandbox(),
			})
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Hook{Hook: o.outcomes.Apply(outcome)}}, nil
		}
	}
	for _, job := range needs.GetJobs() {
		if agent.KeyJob+job.GetKey() == key {
			observed, err := o.s.jobs.Observe(ctx, o.task.Run, o.task.Step().GetSnapshot().GetFirstSequence(), job)
			if err == nil {
				observed.Key = key
			}
			return observed, err
		}
	}
	switch key {
	case stopdecision.KeyProfile, stopdecision.KeyCalibration:
		observed, err := o.s.cfg.Profiles.Observe(ctx, o.task.Run.Namespace, needs.GetProfile())
		if key == stopdecision.KeyProfile {
			failpoint.Hit(stopdecision.Name, "counted")
		}
		if err == nil {
			observed.Key = key
		}
		return observed, err
	case stopdecision.KeyOutput, stopdecision.KeyQuotes:
		look := o.output
		if key == stopdecision.KeyQuotes {
			look = o.quotes
		}
		observed, err := look(ctx)
		if err == nil {
			observed.Key = key
		}
		return observed, err
	}
	if key == runstate.KeyBackground {
		return o.s.background.Observe(ctx, o.task.Run, o.task.Step().GetSnapshot())
	}
	id, ok := strings.CutPrefix(key, stopdecision.KeyCheck)
	if !ok || o.definition.Contract == nil {
		return nil, fmt.Errorf("the stop decision does not observe %q", key)
	}
	ctx, span := spans.Start(ctx, "check "+id, trace.SpanKindInternal, func() []attribute.KeyValue {
		return append(spans.RunAttributes(o.task.Run), spans.CheckOutput.String(id))
	})
	defer span.End()
	found, err := o.definition.Contract.Check(ctx, id, &sources{observer: o})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	if span.IsRecording() {
		span.SetAttributes(spans.CheckStatus.String(strings.ToLower(strings.TrimPrefix(found.GetStatus().String(), "REQUIREMENT_STATUS_"))))
	}
	return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Check{Check: found}}, nil
}
