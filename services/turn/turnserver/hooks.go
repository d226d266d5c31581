package turnserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Topics that are fired in a turn.
const (
	beforeStep = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	afterStep  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	beforeCall = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	afterCall  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	onError    = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR
)

// hooked says whether anybody subscribes to one of the topics.
func (t *working) hooked(topics ...harnessv1.HookTopic) bool {
	return t.s.GetConfig().GetHooks().GetEnabled() && t.made.Hooks.Any(topics...)
}

// listens says whether somebody has to be asked about calls.
func (t *working) listens() bool { return t.hooked(beforeCall, afterCall, onError) }

// fire calls the subscribers of a topic. key tells the firing from others of the turn.
func (t *working) fire(ctx context.Context, topic harnessv1.HookTopic, key, tool string, payload map[string]any) hook.Result {
	if !t.hooked(topic) {
		return hook.Result{}
	}
	return t.w.cfg.Hooks.Fire(ctx, t.made.Hooks, hook.Point{
		Namespace: t.run.Namespace, RunID: t.run.ID, Topic: topic, Turn: t.p.Number, Tool: tool,
		Key:     fmt.Sprintf("%d.%d.%d/%s", t.p.Number, t.s.GetMessageCount(), t.s.GetParkVersion(), key),
		Payload: runstate.HookPayload(t.s, payload),
	}, hookcaller.RunInfo{
		Workspace: t.s.GetWorkspace(), FirstSequence: t.s.GetFirstSequence(), Timeout: t.s.GetConfig().GetHooks().GetTimeout().AsDuration(),
	})
}

// admits says whether subscribers of before_step are to be asked about the turn.
func (t *working) admits() bool {
	return !t.p.Resumed && t.p.Skip == "" && t.p.Admitted == nil && t.hooked(beforeStep) &&
		t.s.GetHooks().GetReviewedTurn() != t.p.Number
}

// admit asks the subscribers of before_step and records what they made of the turn.
func (t *working) admit(ctx, keep context.Context) error {
	r := t.fire(ctx, beforeStep, "step", "", nil)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	action, reason := harnessv1.HookAction_HOOK_ACTION_CONTINUE, ""
	switch {
	case r.Action == harnessv1.HookAction_HOOK_ACTION_ABORT:
		action, reason = r.Action, agent.Aborted(r)
	case r.Pause != "":
		action, reason = harnessv1.HookAction_HOOK_ACTION_PAUSE, r.Pause
	case r.Skip != "":
		action, reason = harnessv1.HookAction_HOOK_ACTION_SKIP, r.Skip
	case r.Replan != "":
		action, reason = harnessv1.HookAction_HOOK_ACTION_REPLAN, r.Replan
	}
	failpoint.Hit(turn.Name, "asked")
	effects := turn.Effects{Events: r.Events, Notes: r.Context}
	if wants := besides(action, r); proto.Size(wants) > 0 {
		effects.Wants = wants
	}
	o := turn.Admit(t.s, t.p, action, reason, effects)
	if err := t.note(keep, o.Entry, o.Appended, o.Events); err != nil {
		return err
	}
	failpoint.Hit(turn.Name, "admitted")
	return nil
}

// besides is what subscribers of before_step want beside what is done at once.
func besides(action harnessv1.HookAction, r hook.Result) *harnessv1.HookState {
	wants := &harnessv1.HookState{SkipNext: r.Skip, Replan: r.Replan}
	switch action {
	case harnessv1.HookAction_HOOK_ACTION_SKIP:
		wants.SkipNext = ""
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		wants.Replan = ""
	}
	return wants
}

// judge asks the subscribers about each call of the response, in order, and records
// what becomes of the calls.
func (t *working) judge(ctx, keep context.Context) error {
	j := turn.NewJudging(t.s, t.p, turn.Surroundings{
		Tools: t.offered.tools, Made: t.made, Blocked: func(name string) bool { return t.offered.blocked[name] },
	})
	for _, call := range t.p.Message.GetToolCalls() {
		call = proto.CloneOf(call)
		var err error
		if call.Arguments, err = t.w.text(ctx, t.run, call.GetArguments()); err != nil {
			return err
		}
		prepared, tool := j.Prepare(call), turn.Canonical(call.GetName())
		var before hook.Result
		if turn.Hookable(prepared) {
			before = t.fire(ctx, beforeCall, call.GetId(), tool,
				agent.CallPayload(call.GetId(), tool, call.GetArguments().GetInline(), "", false))
		}
		if settled := j.Judge(call, prepared, before); settled != nil && settled.Ran {
			failed, after := t.calledBack(ctx, call.GetId(), tool, settled.Arguments, settled.Result, settled.Failed)
			j.After(settled, failed, after)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	a := j.Judged()
	if err := t.keepArtifacts(keep, a.Entry.GetCallsJudged().GetWorkItems()); err != nil {
		return err
	}
	failpoint.Hit(turn.Name, "weighed")
	if err := t.note(keep, a.Entry, a.Appended, a.Events); err != nil {
		return err
	}
	failpoint.Hit(turn.Name, "judged")
	return nil
}

// calledBack tells the subscribers of a call that it has ended.
func (t *working) calledBack(ctx context.Context, id, tool, arguments, result string, failed bool) (onErr, after hook.Result) {
	payload := func() map[string]any { return agent.CallPayload(id, tool, arguments, result, failed) }
	if failed {
		p := payload()
		p["error"] = result
		onErr = t.fire(ctx, onError, id, tool, p)
	}
	return onErr, t.fire(ctx, afterCall, id, tool, payload())
}

// heard tells the subscribers of a call of the tool host that it has ended.
func (t *working) heard(ctx context.Context, c turn.Call, r *harnessv1.ExecuteToolResponse) (turn.Effects, error) {
	if !t.hooked(afterCall, onError) || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || context.Cause(ctx) != nil {
		return turn.Effects{}, nil
	}
	arguments, err := t.w.text(ctx, t.run, c.Arguments)
	if err != nil {
		return turn.Effects{}, err
	}
	onErr, after := t.calledBack(ctx, c.ID, c.Tool, arguments.GetInline(), r.GetResult(), r.GetIsError())
	e := turn.Effects{}
	if context.Cause(ctx) != nil {
		return e, nil // broken off: the result is known and stands
	}
	for _, h := range []hook.Result{onErr, after} {
		e.Events, e.Notes = append(e.Events, h.Events...), append(e.Notes, h.Context...)
		wants := &harnessv1.HookState{SkipNext: h.Skip, Pause: h.Pause, Replan: h.Replan}
		if h.Action == harnessv1.HookAction_HOOK_ACTION_ABORT {
			wants.Abort = agent.Aborted(h)
		}
		if proto.Size(wants) > 0 {
			if e.Wants == nil {
				e.Wants = &harnessv1.HookState{}
			}
			proto.Merge(e.Wants, wants)
		}
	}
	if text, ok := after.Payload["result"].(string); ok && after.Replaced {
		e.Result = &text
	}
	return e, nil
}

// after tells the subscribers of after_step that the turn has ended. What they say
// after the turn was stopped does not count: they did not say it.
func (t *working) after(ctx context.Context, o *harnessv1.Outcome) {
	complete := o.GetStep().GetTurnComplete()
	if complete.GetAwaiting() || complete.GetInterrupted() || !t.hooked(afterStep) {
		return // a turn that was broken off waits for nobody
	}
	outcome := "completed"
	for _, e := range o.GetEvents() {
		if end := e.GetStepEnd(); end != nil {
			outcome = end.GetOutcome()
		}
	}
	r := t.fire(ctx, afterStep, "after", "", map[string]any{
		"outcome": outcome, "error": complete.GetError().GetMessage(), "agent_done": complete.GetAgentDone(),
		"called_work_complete": complete.GetCalledWorkComplete(),
	})
	if context.Cause(ctx) == nil {
		turn.Afterwards(o, t.p, r)
	}
}

// smallArtifact is what is kept of artifacts in the state itself, in bytes.
const smallArtifact = 256

// keepArtifacts stores the artifacts of changed items, so that only references travel
// with the state.
func (t *working) keepArtifacts(ctx context.Context, items []*harnessv1.WorkItem) error {
	for _, item := range items {
		text := item.GetArtifact().GetInline()
		if len(text) <= smallArtifact || t.unlogged {
			continue
		}
		ref, err := t.w.cfg.Log.PutBlob(ctx, t.run, []byte(text))
		if err != nil {
			return err
		}
		item.Artifact = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}}
	}
	return nil
}

// facts are what the guidance of a turn depends on beside the state. What cannot be
// looked at now is left as it was: nothing depends on having seen it at once.
func (t *working) facts(ctx context.Context) turn.Facts {
	f := turn.Facts{Seconds: runstate.ActiveTime(t.s, t.w.cfg.Now()).Seconds()}
	instructions, changes := turn.Looks(t.s, t.made)
	if t.p.Attempts > 0 || t.p.Resumed || t.p.Number == 1 || t.s.GetWorkspace() == "" || !instructions {
		return f
	}
	r, err := t.w.cfg.ToolHost.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
		Workspace: t.s.GetWorkspace(), Namespace: t.run.Namespace, RunId: t.run.ID, FirstSequence: t.s.GetFirstSequence(), InstructionsOnly: !changes,
	})
	if err != nil {
		t.w.cfg.Logger.WarnContext(ctx, "workspace", "run", t.run.ID, "error", err)
		return f
	}
	if f.Instructions = r.GetInstructionFiles(); changes {
		changed := r.GetFilesChanged()
		f.FilesChanged = &changed
	}
	if f.Instructions == nil {
		f.Instructions = []*harnessv1.InstructionFile{}
	}
	return f
}
