package stopdecisionserver

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// observing looks at what the decision over one task has to know.
type observing struct {
	s    *Server
	task *executor.Task
	made *agent.Definition
	said agent.OutcomeLimit
}

// observe looks at all that is needed, in order, while it listens for what would
// stop the run.
func (o *observing) observe(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	snapshot := o.task.Step().GetSnapshot()
	if settled(needs) {
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
			_ = lookout.Look(hctx) // the next heartbeat looks again
		}
	})
	seen, err := o.all(ctx, needs)
	if interrupt.Stopped(ctx) {
		// What ran is dead, and what else it saw no longer matters.
		return []*harnessv1.Observation{{Key: stopdecision.KeyStop, Value: &harnessv1.Observation_StopAsked{StopAsked: true}}}, nil
	}
	return seen, err
}

// settled says that the decision has been made and only observers are told of it:
// that is not broken off, or what they were told would not be so.
func settled(needs *harnessv1.Needs) bool {
	for _, request := range needs.GetHooks() {
		switch request.GetTopic() {
		case harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE, harnessv1.HookTopic_HOOK_TOPIC_SESSION_END,
			harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE:
		default:
			return false
		}
	}
	return len(needs.GetHooks()) > 0 && len(needs.GetHooks()) == len(needs.GetKeys())
}

// all looks at all that is needed, in order.
func (o *observing) all(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	var seen []*harnessv1.Observation
	for _, key := range needs.GetKeys() {
		observation, err := o.one(ctx, needs, key)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", key, err)
		}
		failpoint.Hit(stopdecision.Name, "looked")
		seen = append(seen, observation)
	}
	return seen, nil
}

// one looks at one thing.
func (o *observing) one(ctx context.Context, needs *harnessv1.Needs, key string) (*harnessv1.Observation, error) {
	for _, request := range needs.GetHooks() {
		if request.GetIdempotencyKey() == key {
			s := o.task.Step().GetSnapshot()
			outcome := o.s.cfg.Hooks.Call(ctx, o.made.Hooks.Hook(request.GetHookId()), request, hookcaller.RunInfo{
				Workspace: s.GetWorkspace(), FirstSequence: s.GetFirstSequence(), Timeout: s.GetConfig().GetHooks().GetTimeout().AsDuration(),
			})
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Hook{Hook: o.said.Apply(outcome)}}, nil
		}
	}
	id, ok := strings.CutPrefix(key, stopdecision.KeyCheck)
	if !ok || o.made.Contract == nil {
		return nil, fmt.Errorf("the stop decision does not observe %q", key)
	}
	ctx, span := spans.Start(ctx, "check "+id, trace.SpanKindInternal, func() []attribute.KeyValue {
		return append(spans.RunAttributes(o.task.Run), spans.CheckOutput.String(id))
	})
	defer span.End()
	found, err := o.made.Contract.Check(ctx, id, &sources{observing: o})
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

// commandPause is the wait before a tool host that cannot be reached is asked again.
const commandPause = 250 * time.Millisecond
