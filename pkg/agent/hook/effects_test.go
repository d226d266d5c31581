package hook_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestEffectsOfEachAction(t *testing.T) {
	const (
		refuse = "refuse"
		fail   = "fail"
	)
	want := map[harnessv1.HookAction]string{
		harnessv1.HookAction_HOOK_ACTION_DENY:  refuse,
		harnessv1.HookAction_HOOK_ACTION_BLOCK: refuse,
		harnessv1.HookAction_HOOK_ACTION_ABORT: fail,
	}
	for n, name := range harnessv1.HookAction_name {
		action := harnessv1.HookAction(n)
		e := hook.Result{Action: action, HookID: "h", Reason: "why"}.Effects()
		if refused := want[action] == refuse; e.Refused != refused || (e.Reason == "why") != refused {
			t.Errorf("%s: refused %v for %q", name, e.Refused, e.Reason)
		}
		if failed := want[action] == fail; (e.Abort == "why (hook h)") != failed || (e.Abort == "") == failed {
			t.Errorf("%s: aborted with %q", name, e.Abort)
		}
	}
}

func TestEffectsNameTheHookThatAbortsWithoutReason(t *testing.T) {
	e := hook.Result{Action: harnessv1.HookAction_HOOK_ACTION_ABORT, HookID: "h"}.Effects()
	if e.Abort != "aborted by the hook h" {
		t.Errorf("aborted with %q", e.Abort)
	}
}

func TestEffectsReplaceOnlyWhatWasReplaced(t *testing.T) {
	payload := map[string]any{"plan": "p", "arguments": map[string]any{}}
	if _, ok := (hook.Result{Payload: payload}).Effects().Text("plan"); ok {
		t.Error("a payload that was not replaced counts as replaced")
	}
	e := hook.Result{Payload: payload, Replaced: true}.Effects()
	if text, ok := e.Text("plan"); !ok || text != "p" {
		t.Errorf("the plan is replaced by %q, %v", text, ok)
	}
	if _, ok := e.Text("arguments"); ok {
		t.Error("an object counts as a text")
	}
}

func TestEffectsMergeKeepsOrderAndLaterReasons(t *testing.T) {
	one, two := &harnessv1.Event{TurnNumber: 1}, &harnessv1.Event{TurnNumber: 2}
	e := hook.Effects{Events: []*harnessv1.Event{one}, Notes: []hook.Note{{HookID: "a"}}, Pause: "first", Skip: "first", Reason: "first", Refused: true}
	e.Merge(hook.Effects{Events: []*harnessv1.Event{two}, Notes: []hook.Note{{HookID: "b"}}, Pause: "second", Abort: "second", Replan: "second",
		Replaced: map[string]any{"result": "r"}})
	if len(e.Events) != 2 || e.Events[0] != one || e.Events[1] != two || len(e.Notes) != 2 || e.Notes[1].HookID != "b" {
		t.Errorf("events %v and notes %v are not in order", e.Events, e.Notes)
	}
	want := &harnessv1.HookState{Pause: "second", SkipNext: "first", Abort: "second", Replan: "second"}
	if !proto.Equal(e.Wants(), want) || e.Reason != "first" || !e.Refused {
		t.Errorf("merged into %+v", e)
	}
	if text, _ := e.Text("result"); text != "r" {
		t.Errorf("the later payload is lost: %v", e.Replaced)
	}
	e.Merge(hook.Effects{Refused: true, Reason: "third"})
	if e.Reason != "third" {
		t.Errorf("the later refusal is lost: %q", e.Reason)
	}
}

func TestEffectsWantNothing(t *testing.T) {
	if w := (hook.Effects{Refused: true, Reason: "no"}).Wants(); w != nil {
		t.Errorf("a refusal has %v for the rest of the loop", w)
	}
}
