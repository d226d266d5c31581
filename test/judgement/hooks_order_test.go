package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestHooksEveryTopicFiresAtItsPlaceInRegistrationOrder: two subscribers on each of the
// 13 topics are called at its place, in the order of the list, over a
// run with a failed call, a budget that is used up, a resume and an end.
func TestHooksEveryTopicFiresAtItsPlaceInRegistrationOrder(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	hooks := append(service.at("a", hooksAll()...), service.at("b", hooksAll()...)...)
	if len(hooks) != 26 {
		t.Fatalf("%d hooks on 13 topics", len(hooks))
	}
	first := live.Play(t, hooksScript(live.Calls(hooksRead("missing.txt"))), hooksSet(hooks...), phasesBudgets(&harnessv1.Budgets{Turns: proto.Uint32(1)}))
	first.Want("PARKED budget_exceeded:turns")
	both := func(topic string) []string { return []string{"a-" + topic + " continue", "b-" + topic + " continue"} }
	hooksSame(t, "up to the park", hooksTrail(first), slices.Concat(
		[]string{"session.start"}, both("session_start"), both("before_plan"), []string{"plan.draft"}, both("after_plan"), []string{"plan.commit"},
		both("before_step"), []string{"step.start", "model.response"},
		both("before_tool_call"), []string{"tool.call", "tool.error"}, both("on_error"), both("after_tool_call"),
		[]string{"step.end"}, both("after_step"),
		both("on_budget_exceeded"), []string{"budget.warn", "session.pause"}, both("on_pause"),
	)...)
	second := hooksResume(first, &harnessv1.Budgets{Turns: proto.Uint32(9)})
	second.Want("DONE agent_done accepted")
	hooksSame(t, "after the resume", hooksTrail(second), slices.Concat(
		[]string{"session.resume"}, both("before_step"), []string{"step.start", "model.response"},
		both("before_tool_call"), []string{"tool.call", "tool.result"}, both("after_tool_call"),
		[]string{"step.end"}, both("after_step"), both("agent_stop"),
		[]string{"session.complete"}, both("on_complete"), both("session_end"),
	)...)

	// The service saw them in the very order of the events, each once.
	var said, seen []string
	for _, e := range append(slices.Clone(first.Events), second.Events...) {
		if h := e.GetHookResult(); h != nil {
			said = append(said, h.GetTopic()+" "+h.GetHookId())
		}
	}
	keys := map[string]bool{}
	for _, h := range service.all() {
		seen = append(seen, hooksTopic(h.GetTopic())+" "+h.GetHookId())
		if h.GetNamespace() != "default" || h.GetRunId() != first.ID {
			t.Errorf("the request is about %s/%s", h.GetNamespace(), h.GetRunId())
		}
		if k := h.GetIdempotencyKey(); k == "" || keys[k] {
			t.Errorf("%s has the key %q, which another call has too", h.GetHookId(), k)
		}
		keys[h.GetIdempotencyKey()] = true
	}
	hooksSame(t, "calls of the service", seen, said...)
	hooksStable(t, second)
}

// TestHooksAreGivenWhatTheirTopicIsAbout: the payload of each topic has the fields that
// the documentation names, with the values of the run.
func TestHooksAreGivenWhatTheirTopicIsAbout(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := live.Play(t, hooksScript(live.Calls(hooksRead("missing.txt"))), hooksSet(service.at("s", hooksAll()...)...), phasesBudgets(&harnessv1.Budgets{Turns: proto.Uint32(1)}))
	s = hooksResume(s, &harnessv1.Budgets{Turns: proto.Uint32(5)})
	s.Want("DONE agent_done accepted")

	has := func(h hooksCall, turn uint32, want live.Args) {
		t.Helper()
		topic := hooksTopic(h.GetTopic())
		if h.GetTurnNumber() != turn {
			t.Errorf("%s is in turn %d, want %d", topic, h.GetTurnNumber(), turn)
		}
		for field, value := range want {
			if got := fmt.Sprint(h.payload[field]); got != fmt.Sprint(value) {
				t.Errorf("%s: %s is %s, want %v; all is %s", topic, field, got, value, h.GetPayload())
			}
		}
		for _, field := range []string{"turn_count", "max_turns", "mode"} {
			if _, ok := h.payload[field]; !ok {
				t.Errorf("%s: there is no %s in %s", topic, field, h.GetPayload())
			}
		}
	}
	has(service.one(t, hooksSessionStart), 0, live.Args{"goal": "Do the task.", "segment": 1, "mode": "execute", "max_turns": 50, "turn_count": 0})
	has(service.one(t, hooksBeforePlan), 0, live.Args{"plan": "Do the task."})
	has(service.one(t, hooksAfterPlan), 0, live.Args{"plan": "Do the task."})
	steps := service.of(hooksBeforeStep)
	has(steps[0], 1, live.Args{"turn_count": 0})
	has(steps[1], 2, live.Args{"turn_count": 1})
	before, after := service.of(hooksBeforeCall), service.of(hooksAfterCall)
	has(before[0], 1, live.Args{"call_id": "call_1_0", "tool": "read_file", "arguments": live.Args{"path": "missing.txt"}})
	has(before[1], 2, live.Args{"call_id": "call_2_0", "tool": "work_complete", "arguments": live.Args{"summary": "done"}})
	has(after[0], 1, live.Args{"call_id": "call_1_0", "tool": "read_file", "arguments": live.Args{"path": "missing.txt"}, "is_error": true})
	has(after[1], 2, live.Args{"call_id": "call_2_0", "tool": "work_complete", "is_error": false})
	failed := service.one(t, hooksOnError)
	has(failed, 1, live.Args{"call_id": "call_1_0", "tool": "read_file", "arguments": live.Args{"path": "missing.txt"}})
	if text := fmt.Sprint(failed.payload["error"]); !strings.Contains(text, "missing.txt") || text != fmt.Sprint(after[0].payload["result"]) || text != hooksResult(s, "call_1_0") {
		t.Errorf("on_error is given %q, after_tool_call %q, the model %q", text, after[0].payload["result"], hooksResult(s, "call_1_0"))
	}
	has(service.of(hooksAfterStep)[0], 1, live.Args{"outcome": "completed", "error": ""})
	has(service.one(t, hooksOnBudget), 1, live.Args{"budget": "turns", "limit": 1, "used": 1})
	paused := service.one(t, hooksOnPause)
	has(paused, 1, live.Args{"kind": "budget_exceeded:turns"})
	if fmt.Sprint(paused.payload["message"]) == "" {
		t.Error("on_pause is given no message")
	}
	has(service.one(t, hooksAgentStop), 2, live.Args{
		"turn_count": 2, "called_work_complete": true, "tool_usage": live.Args{"read_file": 1, "work_complete": 1},
		"work_items": live.Args{"open": 0, "finished": 0, "total": 0},
	})
	for _, topic := range []harnessv1.HookTopic{hooksOnComplete, hooksSessionEnd} {
		has(service.one(t, topic), 2, live.Args{"status": "DONE", "accepted": true, "kind": "agent_done"})
	}
}

// TestHooksAtTheStopKnowTheWorkItemsAndTheContract: agent_stop is given turns, calls by
// tool, work items and what of the contract is met.
func TestHooksAtTheStopKnowTheWorkItemsAndTheContract(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := live.Play(t, hooksScript(
		live.Calls(live.Call("work_item_add", live.Args{"title": "Write it"}), live.Call("work_item_add", live.Args{"title": "Check it"})),
		live.Calls(hooksWrite("a.txt", "A"), live.Call("work_item_update", live.Args{"id": "w1", "status": "DONE"}), live.Call("work_item_update", live.Args{"id": "w2", "status": "SKIPPED", "notes": "not wanted"})),
	), hooksSet(service.at("s", hooksAgentStop)...), func(spec *harnessv1.RunSpec) {
		spec.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
		spec.Contract = &harnessv1.TaskContract{Goal: "Make it.", RequiredOutputs: []*harnessv1.RequiredOutput{
			{Id: "a", Description: "a.txt is there", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "a.txt"}},
			{Id: "b", Description: "b.txt is there", Optional: true, Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "b.txt"}},
		}}
	})
	s.Want("DONE agent_done accepted")
	got := service.one(t, hooksAgentStop).payload
	for field, want := range (live.Args{
		"turn_count": 3, "called_work_complete": true, "work_items": live.Args{"open": 0, "finished": 2, "total": 2},
		"tool_usage": live.Args{"work_item_add": 2, "work_item_update": 2, "write_file": 1, "work_complete": 1},
	}) {
		if fmt.Sprint(got[field]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	contract, _ := got["contract"].(live.Args)
	if unmet := fmt.Sprint(contract["unmet"]); contract["met"] != 1.0 || strings.Contains(unmet, "a") {
		t.Errorf("the payload's contract is %v", contract)
	}
}

// TestHooksAfterCallsSeeEveryCallThatRanAndItsResult: also those of the harness itself,
// failed ones, and of a client's tool with a long result; none that was denied, is invalid
// or names no tool.
func TestHooksAfterCallsSeeEveryCallThatRanAndItsResult(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	long := strings.Repeat("a long answer ", 400)
	s := live.Play(t, hooksScript(
		live.Calls(hooksRead("a.txt"), hooksRead("missing.txt"), live.Call("no_such_tool", live.Args{}), modeltest.Call{Name: "read_file", Arguments: `{"path":`},
			hooksWrite("secret.txt", "x"), live.Call("ask_client", live.Args{"v": long})),
	), hooksFile(t, "a.txt", "content of a"), hooksSet(service.at("s", hooksAfterCall, hooksOnError)...),
		hooksSet(hooksRule(hooksBeforeCall, "tool == 'write_file'", hooksDeny, "nothing is written here")),
		func(spec *harnessv1.RunSpec) {
			spec.ClientTools = []*harnessv1.ToolSpec{{Name: "ask_client", Description: "A tool of the client.", ParametersSchema: `{"type":"object","properties":{"v":{"type":"string"}}}`}}
		})
	s.Want("PARKED client_tool")
	hooksGive(s.Run, "call_1_5", long, false)
	s = s.WaitAfter(hooksVersion(s))
	s.Want("DONE agent_done accepted")
	seen := map[string]hooksCall{}
	for _, h := range service.of(hooksAfterCall) {
		id := fmt.Sprint(h.payload["call_id"])
		if _, twice := seen[id]; twice {
			t.Errorf("after_tool_call of %s was called twice", id)
		}
		seen[id] = h
	}
	for id, failed := range map[string]bool{"call_1_0": false, "call_1_1": true, "call_1_5": false, "call_2_0": false} {
		h, ok := seen[id]
		if !ok {
			t.Errorf("after_tool_call was not called for %s", id)
			continue
		}
		if fmt.Sprint(h.payload["is_error"]) != fmt.Sprint(failed) {
			t.Errorf("%s: is_error is %v, want %v", id, h.payload["is_error"], failed)
		}
		if id != "call_2_0" && fmt.Sprint(h.payload["result"]) != hooksResult(s, id) {
			t.Errorf("%s: the hook is given %.200q (%d bytes), the model %.200q", id, h.payload["result"], len(fmt.Sprint(h.payload["result"])), hooksResult(s, id))
		}
	}
	for _, id := range []string{"call_1_2", "call_1_3", "call_1_4"} {
		if h, ok := seen[id]; ok {
			t.Errorf("after_tool_call was called for a call that did not run: %s", h.GetPayload())
		}
	}
	var failed []string
	for _, h := range service.of(hooksOnError) {
		failed = append(failed, fmt.Sprint(h.payload["call_id"]))
	}
	hooksSame(t, "on_error", failed, "call_1_2", "call_1_3", "call_1_1")
	if a, _ := seen["call_1_5"].payload["arguments"].(live.Args); a["v"] != long {
		t.Errorf("of the client's call it is given the arguments %.200v", seen["call_1_5"].payload["arguments"])
	}
	if s.Exists("secret.txt") {
		t.Error("the denied call ran")
	}
}
