package transcripts

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

const (
	beforeStep = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP
	afterStep  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	beforeCall = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	afterCall  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	onError    = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR
)

func (w *turning) hooked(topics ...harnessv1.HookTopic) bool {
	return w.s.GetConfig().GetHooks().GetEnabled() && w.made.Hooks.Any(topics...)
}

// fire has the subscribers of a story speak. They are all expressions.
func (w *turning) fire(topic harnessv1.HookTopic, key, tool string, payload map[string]any) hook.Result {
	w.d.t.Helper()
	if !w.hooked(topic) {
		return hook.Result{}
	}
	r, need := w.made.Hooks.Fire(hook.Point{
		Namespace: "default", RunID: "story", Topic: topic, Turn: w.p.Number, Tool: tool, Key: fmt.Sprintf("%d/%s", w.p.Number, key),
		Payload: runstate.HookPayload(w.s, payload),
	}, func(string) *harnessv1.HookOutcome { return nil })
	if need != nil {
		w.d.t.Fatalf("a story has no subscriber that is called: %v", need)
	}
	return r
}

func (w *turning) admits() bool {
	return !w.p.Resumed && w.p.Skip == "" && w.p.Admitted == nil && w.hooked(beforeStep) && w.s.GetHooks().GetReviewedTurn() != w.p.Number
}

// admit asks about the turn before it begins.
func (w *turning) admit() error {
	r := w.fire(beforeStep, "step", "", nil)
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
	o := turn.Admit(w.s, w.p, action, reason, turn.Effects{Events: r.Events, Notes: r.Context})
	return w.note("admitted", o.Entry, o.Appended, o.Events)
}

// judge asks about each call of the response.
func (w *turning) judge() error {
	j := turn.NewJudging(w.s, w.p, w.around)
	for _, call := range w.p.Message.GetToolCalls() {
		prepared := j.Prepare(call)
		var before hook.Result
		arguments := content.Text(call.GetArguments())
		if turn.Hookable(prepared) {
			before = w.fire(beforeCall, call.GetId(), call.GetName(), agent.CallPayload(call.GetId(), call.GetName(), arguments, "", false))
		}
		if settled := j.Judge(call, prepared, before); settled != nil && settled.Ran {
			failed, after := w.calledBack(call.GetId(), call.GetName(), arguments, settled.Result, settled.Failed)
			j.After(settled, failed, after)
		}
	}
	a := j.Judged()
	return w.note("judged", a.Entry, a.Appended, a.Events)
}

func (w *turning) calledBack(id, tool, arguments, text string, failed bool) (onErr, after hook.Result) {
	payload := func() map[string]any { return agent.CallPayload(id, tool, arguments, text, failed) }
	if failed {
		p := payload()
		p["error"] = text
		onErr = w.fire(onError, id, tool, p)
	}
	return onErr, w.fire(afterCall, id, tool, payload())
}

// heard tells of a call that a tool has ended.
func (w *turning) heard(c turn.Call, r *harnessv1.ExecuteToolResponse) turn.Effects {
	e := turn.Effects{}
	if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
		return e
	}
	failed, after := w.calledBack(c.ID, c.Tool, content.Text(c.Arguments), r.GetResult(), r.GetIsError())
	for _, h := range []hook.Result{failed, after} {
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
	return e
}

// after tells of a turn that has ended.
func (w *turning) after(o *harnessv1.Outcome) {
	complete := o.GetStep().GetTurnComplete()
	if complete.GetAwaiting() || !w.hooked(afterStep) {
		return
	}
	turn.Afterwards(o, w.p, w.fire(afterStep, "after", "", map[string]any{
		"error": complete.GetError().GetMessage(), "agent_done": complete.GetAgentDone(), "called_work_complete": complete.GetCalledWorkComplete(),
	}))
}
