package hook_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Topics and actions by short names.
const (
	beforePlan, afterPlan   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_PLAN, harnessv1.HookTopic_HOOK_TOPIC_AFTER_PLAN
	beforeStep, afterStep   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP
	beforeTool, afterTool   = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	onError, onPause        = harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR, harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE
	onBudget, onComplete    = harnessv1.HookTopic_HOOK_TOPIC_ON_BUDGET_EXCEEDED, harnessv1.HookTopic_HOOK_TOPIC_ON_COMPLETE
	agentStop, sessionStart = harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, harnessv1.HookTopic_HOOK_TOPIC_SESSION_START
	sessionEnd              = harnessv1.HookTopic_HOOK_TOPIC_SESSION_END

	unset, carryOn = harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED, harnessv1.HookAction_HOOK_ACTION_CONTINUE
	replace, skip  = harnessv1.HookAction_HOOK_ACTION_REPLACE, harnessv1.HookAction_HOOK_ACTION_SKIP
	abort, pause   = harnessv1.HookAction_HOOK_ACTION_ABORT, harnessv1.HookAction_HOOK_ACTION_PAUSE
	deny, block    = harnessv1.HookAction_HOOK_ACTION_DENY, harnessv1.HookAction_HOOK_ACTION_BLOCK
	replan         = harnessv1.HookAction_HOOK_ACTION_REPLAN

	openly, closed = harnessv1.HookFailure_HOOK_FAILURE_OPEN, harnessv1.HookFailure_HOOK_FAILURE_CLOSED
)

// allowed has the actions that each topic allows, independently of the table in topic.go.
var allowed = map[harnessv1.HookTopic][]harnessv1.HookAction{
	sessionStart: {unset, carryOn},
	beforePlan:   {unset, carryOn, replace, skip, abort, pause, replan},
	afterPlan:    {unset, carryOn, replace, skip, abort, pause, replan},
	beforeStep:   {unset, carryOn, skip, abort, pause, replan},
	afterStep:    {unset, carryOn, skip, abort, pause, replan},
	beforeTool:   {unset, carryOn, replace, skip, abort, pause, replan, deny},
	afterTool:    {unset, carryOn, replace, skip, abort, pause, replan},
	onError:      {unset, carryOn, skip, abort, pause, replan},
	agentStop:    {unset, carryOn, skip, abort, pause, replan, block},
	onPause:      {unset, carryOn},
	onBudget:     {unset, carryOn},
	onComplete:   {unset, carryOn},
	sessionEnd:   {unset, carryOn},
}

// replaces has a valid replacement for each topic that allows one.
var replaces = map[harnessv1.HookTopic]string{
	beforePlan: `{"plan":"another"}`, afterPlan: `{"plan":"another"}`,
	beforeTool: `{"arguments":{"command":"ls"}}`, afterTool: `{"result":"another"}`,
}

// observesOnly are the topics at which hooks cannot add context.
var observesOnly = []harnessv1.HookTopic{onPause, onBudget, onComplete, sessionEnd}

func topics() []harnessv1.HookTopic { return slices.Sorted(maps.Keys(allowed)) }

func remoteHook(id string, topic harnessv1.HookTopic) *harnessv1.Hook {
	return &harnessv1.Hook{Id: id, Topic: topic, Grpc: "127.0.0.1:7700"}
}

func cel(id string, topic harnessv1.HookTopic, when string, action harnessv1.HookAction, reason string) *harnessv1.Hook {
	return &harnessv1.Hook{Id: id, Topic: topic, Cel: when, Action: action, Reason: reason}
}

func compile(t testing.TB, hooks ...*harnessv1.Hook) *hook.Set {
	t.Helper()
	s, err := hook.Compile(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func point(topic harnessv1.HookTopic) hook.Point {
	return hook.Point{
		Namespace: "n", RunID: "r", Topic: topic, Turn: 3, Key: "12/call_3", Tool: "run_command",
		Payload: map[string]any{"tool": "run_command", "arguments": map[string]any{"command": "rm -rf /"}, "plan": "the goal", "result": "done"},
	}
}

func verdict(a harnessv1.HookAction, reason, payload, context string) *harnessv1.HookOutcome {
	return &harnessv1.HookOutcome{Verdict: &harnessv1.HookVerdict{Action: a, Reason: reason, Payload: payload, Context: context}}
}

func failure(text string) *harnessv1.HookOutcome { return &harnessv1.HookOutcome{Error: text} }

// fireAll fires with an outcome for each hook until no call is needed. It also returns
// the requests.
func fireAll(t testing.TB, s *hook.Set, p hook.Point, outcomes map[string]*harnessv1.HookOutcome) (hook.Result, []*harnessv1.HookRequest) {
	t.Helper()
	observed := map[string]*harnessv1.HookOutcome{}
	var requests []*harnessv1.HookRequest
	for {
		r, need := s.Fire(p, func(key string) *harnessv1.HookOutcome { return observed[key] })
		if need == nil {
			return r, requests
		}
		if outcomes[need.GetHookId()] == nil || observed[need.GetIdempotencyKey()] != nil {
			t.Fatalf("%s is called under %s", need.GetHookId(), need.GetIdempotencyKey())
		}
		observed[need.GetIdempotencyKey()] = outcomes[need.GetHookId()]
		requests = append(requests, need)
	}
}

// eventLines describes each event of a result in a line.
func eventLines(r hook.Result) []string {
	var lines []string
	for _, e := range r.Events {
		if h := e.GetHookResult(); h != nil {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", h.GetHookId(), h.GetTopic(), h.GetAction(), h.GetReason())))
		} else {
			h := e.GetHookError()
			lines = append(lines, fmt.Sprintf("%s %s failed closed=%v", h.GetHookId(), h.GetTopic(), h.GetFailedClosed()))
		}
	}
	return lines
}

func TestTopicAllowsOnlyItsActions(t *testing.T) {
	for _, topic := range topics() {
		for a := range harnessv1.HookAction_name {
			action := harnessv1.HookAction(a)
			t.Run(hook.TopicName(topic)+"/"+action.String(), func(t *testing.T) {
				h := remoteHook("h", topic)
				h.OnFailure = openly
				payload := ""
				if action == replace {
					payload = `{"plan":"another"}`
					if replaces[topic] != "" {
						payload = replaces[topic]
					}
				}
				r, requests := fireAll(t, compile(t, h), point(topic), map[string]*harnessv1.HookOutcome{"h": verdict(action, "why", payload, "")})
				if len(requests) != 1 || len(r.Events) != 1 {
					t.Fatalf("%d calls, %d events", len(requests), len(r.Events))
				}
				if !slices.Contains(allowed[topic], action) {
					if e := r.Events[0].GetHookError(); e == nil || r.Action != carryOn || e.GetTopic() != hook.TopicName(topic) {
						t.Fatalf("accepted: %v, %v", r.Action, r.Events)
					}
					return
				}
				want := action
				if action == unset {
					want = carryOn
				}
				if r.Action != want || r.Events[0].GetHookResult().GetAction() != hook.ActionName(action) {
					t.Fatalf("got %v, %v", r.Action, r.Events)
				}
				if want != carryOn && (r.HookID != "h" || r.Reason != "why") {
					t.Errorf("decided by %q for %q", r.HookID, r.Reason)
				}
				if (r.Pause != "") != (action == pause) || (r.Skip != "") != (action == skip) || (r.Replan != "") != (action == replan) || r.Replaced != (action == replace) {
					t.Errorf("pause %q, skip %q, replan %q, replaced %v", r.Pause, r.Skip, r.Replan, r.Replaced)
				}
			})
		}
	}
}

func TestFailureCountsByPolicy(t *testing.T) {
	against := map[harnessv1.HookTopic]harnessv1.HookAction{beforeTool: deny, agentStop: block}
	for _, topic := range topics() {
		for _, policy := range []harnessv1.HookFailure{harnessv1.HookFailure_HOOK_FAILURE_UNSPECIFIED, openly, closed} {
			h := remoteHook("h", topic)
			h.OnFailure = policy
			s, err := hook.Compile([]*harnessv1.Hook{h})
			if (topic == sessionStart || slices.Contains(observesOnly, topic)) && policy == closed {
				if err == nil {
					t.Errorf("%v: closed was accepted where a hook can stop nothing", topic)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			r, _ := fireAll(t, s, point(topic), map[string]*harnessv1.HookOutcome{"h": failure("it is away")})
			isClosed := policy == closed || policy != openly && topic == beforeTool
			want := carryOn
			if isClosed {
				want = abort
				if a, ok := against[topic]; ok {
					want = a
				}
			}
			e := r.Events[0].GetHookError()
			if r.Action != want || e.GetFailedClosed() != isClosed || e.GetError() != "it is away" || hook.FailsClosed(h) != isClosed {
				t.Errorf("%v, %v: %v, %v", topic, policy, r.Action, r.Events)
			}
			if isClosed && (r.HookID != "h" || !strings.Contains(r.Reason, "it is away")) {
				t.Errorf("%v: decided by %q for %q", topic, r.HookID, r.Reason)
			}
		}
	}
}

func TestFireCallsHooksInOrder(t *testing.T) {
	s := compile(t,
		remoteHook("a", beforeTool), cel("never", beforeTool, `tool == "read_file"`, deny, "no"), cel("b", beforeTool, `tool == "run_command"`, pause, "look"),
		remoteHook("elsewhere", afterTool), remoteHook("c", beforeTool), remoteHook("d", beforeTool), remoteHook("e", beforeTool))
	r, requests := fireAll(t, s, point(beforeTool), map[string]*harnessv1.HookOutcome{
		"a": verdict(carryOn, "", "", "note"), "c": verdict(skip, "", "", ""), "d": verdict(deny, "not here", "", "second note"),
	})
	var ids []string
	for _, req := range requests {
		ids = append(ids, req.GetHookId())
	}
	if !slices.Equal(ids, []string{"a", "c", "d"}) {
		t.Fatalf("requests %v", ids)
	}
	want := []string{"a before_tool_call continue", "b before_tool_call pause look", "c before_tool_call skip", "d before_tool_call deny not here"}
	if !slices.Equal(eventLines(r), want) {
		t.Fatalf("events %q", eventLines(r))
	}
	if r.Action != deny || r.HookID != "d" || r.Reason != "not here" || r.Pause != "look" || r.Skip == "" || r.Replan != "" {
		t.Fatalf("got %+v", r)
	}
	if !slices.Equal(r.Context, []hook.Note{{HookID: "a", Text: "note"}, {HookID: "d", Text: "second note"}}) {
		t.Fatalf("context %v", r.Context)
	}
}

func TestOnlyDenyBlockAndAbortEndAFiring(t *testing.T) {
	for _, topic := range topics() {
		for _, action := range allowed[topic] {
			s := compile(t, remoteHook("first", topic), remoteHook("second", topic))
			payload := ""
			if action == replace {
				payload = replaces[topic]
			}
			_, requests := fireAll(t, s, point(topic), map[string]*harnessv1.HookOutcome{
				"first": verdict(action, "", payload, ""), "second": verdict(carryOn, "", "", ""),
			})
			if ends := action == deny || action == block || action == abort; ends != (len(requests) == 1) {
				t.Errorf("%v, %v: %d were called", topic, action, len(requests))
			}
		}
	}
}

func TestStrongestActionDecides(t *testing.T) {
	order := []harnessv1.HookAction{replace, replan, skip, pause, abort, deny}
	for i, weak := range order {
		for _, strong := range order[i:] {
			for _, turned := range []bool{false, true} {
				first, second := weak, strong
				if turned {
					first, second = strong, weak
				}
				payloads := map[harnessv1.HookAction]string{replace: replaces[beforeTool]}
				outcomes := map[string]*harnessv1.HookOutcome{
					"1": verdict(first, "of 1", payloads[first], ""), "2": verdict(second, "of 2", payloads[second], ""),
				}
				r, _ := fireAll(t, compile(t, remoteHook("1", beforeTool), remoteHook("2", beforeTool)), point(beforeTool), outcomes)
				want := "1"
				if second == strong && first != strong && first != abort && first != deny {
					want = "2"
				}
				wanted := map[string]harnessv1.HookAction{"1": first, "2": second}[want]
				if r.Action != wanted || r.HookID != want || r.Reason != "of "+want {
					t.Errorf("%v, then %v: %v of %s", first, second, r.Action, r.HookID)
				}
			}
		}
	}
}

func TestReplacedPayloadReachesTheNextHook(t *testing.T) {
	s := compile(t, remoteHook("a", beforeTool), cel("b", beforeTool, `args.command == "ls -la"`, carryOn, "seen"), remoteHook("c", beforeTool))
	p := point(beforeTool)
	before := maps.Clone(p.Payload)
	r, requests := fireAll(t, s, p, map[string]*harnessv1.HookOutcome{
		"a": verdict(replace, "safer", `{"arguments":{"command":"ls -la","n":12345678901234567890}}`, ""), "c": verdict(carryOn, "", "", ""),
	})
	if !r.Replaced || r.Action != replace || r.HookID != "a" || !reflect.DeepEqual(p.Payload, before) {
		t.Fatalf("got %+v; the point's payload is %v", r, p.Payload)
	}
	if !slices.Equal(eventLines(r), []string{"a before_tool_call replace safer", "b before_tool_call continue seen", "c before_tool_call continue"}) {
		t.Fatalf("events %q", eventLines(r))
	}
	text, err := hook.Encode(r.Payload["arguments"])
	if err != nil || text != `{"command":"ls -la","n":12345678901234567890}` {
		t.Fatalf("the arguments are %s (%v)", text, err)
	}
	if !strings.Contains(requests[1].GetPayload(), "ls -la") || strings.Contains(requests[1].GetPayload(), "rm -rf") {
		t.Fatalf("c was given %s", requests[1].GetPayload())
	}
	digest := func(key string) string { return key[strings.LastIndexByte(key, ':'):] }
	if digest(requests[0].GetIdempotencyKey()) == digest(requests[1].GetIdempotencyKey()) {
		t.Fatal("another payload has the same digest")
	}
	again, more := fireAll(t, s, p, map[string]*harnessv1.HookOutcome{
		"a": verdict(replace, "safer", `{"arguments":{"command":"ls"}}`, ""), "c": verdict(carryOn, "", "", ""),
	})
	if more[1].GetIdempotencyKey() == requests[1].GetIdempotencyKey() || len(again.Events) != 2 {
		t.Fatalf("c is not called again for another payload: %s", more[1].GetIdempotencyKey())
	}
}

func TestInvalidReplacementIsAFailure(t *testing.T) {
	for _, c := range []struct {
		topic         harnessv1.HookTopic
		payload, want string
	}{
		{beforeTool, ``, "no JSON"},
		{beforeTool, `{"arguments":`, "no JSON"},
		{beforeTool, `{"arguments":{}} {}`, "no JSON"},
		{beforeTool, `[1]`, "no JSON object"},
		{beforeTool, `null`, "no JSON object"},
		{beforeTool, `{}`, "no arguments"},
		{beforeTool, `{"arguments":"ls"}`, "no JSON object"},
		{beforeTool, `{"arguments":null}`, "no JSON object"},
		{beforeTool, `{"arguments":{},"tool":"read_file"}`, `replaces "tool"`},
		{beforeTool, `{"arguments":{},"cwd":"/"}`, `replaces "cwd"`},
		{afterTool, `{"result":{"a":1}}`, "no text"},
		{afterPlan, `{"plan":["a"]}`, "no text"},
	} {
		h := remoteHook("h", c.topic)
		h.OnFailure = openly
		r, _ := fireAll(t, compile(t, h), point(c.topic), map[string]*harnessv1.HookOutcome{"h": verdict(replace, "", c.payload, "")})
		if e := r.Events[0].GetHookError(); e == nil || !strings.Contains(e.GetError(), c.want) || r.Replaced {
			t.Errorf("%v %s: %v", c.topic, c.payload, r.Events)
		}
	}
}

func TestReplacementMayRepeatOtherFields(t *testing.T) {
	s := compile(t, remoteHook("h", beforeTool))
	whole := `{"tool":"run_command","plan":"the goal","result":"done","arguments":{"command":"ls"}}`
	if r, _ := fireAll(t, s, point(beforeTool), map[string]*harnessv1.HookOutcome{"h": verdict(replace, "", whole, "")}); !r.Replaced {
		t.Fatalf("got %v", r.Events)
	}
	same := `{"arguments":{"command":"rm -rf /"}}`
	p := point(beforeTool)
	r, _ := fireAll(t, s, p, map[string]*harnessv1.HookOutcome{"h": verdict(replace, "", same, "")})
	r.Payload["mark"] = true
	if r.Replaced || p.Payload["mark"] != true {
		t.Fatal("the payload is a copy, but nothing was replaced")
	}
}

func TestEmptyOrTooLargeVerdictIsAFailure(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, o := range map[string]*harnessv1.HookOutcome{
		"nothing":       {},
		"long reason":   verdict(carryOn, long(hook.MaxReason+1), "", ""),
		"long context":  verdict(carryOn, "", "", long(hook.MaxContext+1)),
		"long payload":  verdict(replace, "", `{"arguments":{"a":"`+long(hook.MaxPayload)+`"}}`, ""),
		"idle payload":  verdict(carryOn, "", `{"arguments":{}}`, ""),
		"unknown":       verdict(99, "", "", ""),
		"error and yes": {Error: "broken", Verdict: &harnessv1.HookVerdict{Action: carryOn}},
	} {
		r, _ := fireAll(t, compile(t, remoteHook("h", beforeTool)), point(beforeTool), map[string]*harnessv1.HookOutcome{"h": o})
		if len(r.Events) != 1 || r.Events[0].GetHookError() == nil || r.Action != deny {
			t.Errorf("%s: %v, %v", name, r.Action, eventLines(r))
		}
		if n := len(r.Events[0].GetHookError().GetError()); n > 512 {
			t.Errorf("%s: the event holds %d bytes", name, n)
		}
	}
	fits := verdict(deny, long(hook.MaxReason), "", long(hook.MaxContext))
	if r, _ := fireAll(t, compile(t, remoteHook("h", beforeTool)), point(beforeTool), map[string]*harnessv1.HookOutcome{"h": fits}); r.Action != deny || len(r.Reason) != hook.MaxReason || len(r.Context) != 1 {
		t.Errorf("a verdict of the maximum size was rejected: %v", eventLines(r))
	}
}

func TestObservingTopicsAddNoContext(t *testing.T) {
	for _, topic := range topics() {
		r, _ := fireAll(t, compile(t, remoteHook("h", topic)), point(topic), map[string]*harnessv1.HookOutcome{"h": verdict(carryOn, "", "", "psst")})
		if on := slices.Contains(observesOnly, topic); on != (len(r.Context) == 0) || on != (r.Events[0].GetHookError() != nil) {
			t.Errorf("%v: %v, %v", topic, r.Context, eventLines(r))
		}
	}
}

func TestRequestNamesItsRunTopicAndKey(t *testing.T) {
	p := point(beforeTool)
	p.Payload["args"] = p.Payload["arguments"] // as expressions call them
	_, need := compile(t, remoteHook("h", beforeTool)).Fire(p, func(string) *harnessv1.HookOutcome { return nil })
	if need.GetNamespace() != "n" || need.GetRunId() != "r" || need.GetHookId() != "h" || need.GetTopic() != beforeTool || need.GetTurnNumber() != 3 {
		t.Fatalf("got %v", need)
	}
	if want := `{"arguments":{"command":"rm -rf /"},"plan":"the goal","result":"done","tool":"run_command"}`; need.GetPayload() != want {
		t.Errorf("payload %s", need.GetPayload())
	}
	if key := need.GetIdempotencyKey(); !strings.HasPrefix(key, "hook:before_tool_call:12/call_3:h:") || len(key) != len("hook:before_tool_call:12/call_3:h:")+16 {
		t.Errorf("key %s", key)
	}
	p.Key = strings.Repeat("long", 200)
	if _, need := compile(t, remoteHook("h", beforeTool)).Fire(p, func(string) *harnessv1.HookOutcome { return nil }); len(need.GetIdempotencyKey()) > 400 {
		t.Errorf("a key of %d bytes", len(need.GetIdempotencyKey()))
	}
}

func TestTooLargePayloadIsAFailure(t *testing.T) {
	p := point(afterTool)
	p.Payload["result"] = strings.Repeat("x", hook.MaxRequest)
	r, requests := fireAll(t, compile(t, remoteHook("h", afterTool), cel("c", afterTool, `result.size() > 1000`, carryOn, "large")), p, nil)
	if len(requests) != 0 || !slices.Equal(eventLines(r), []string{"h after_tool_call failed closed=false", "c after_tool_call continue large"}) {
		t.Fatalf("got %q", eventLines(r))
	}
}

func TestHookIsCalledForItsToolsOnly(t *testing.T) {
	some := remoteHook("some", beforeTool)
	some.Tools = []string{"write_file", "run_command"}
	failed := remoteHook("failed", onError)
	failed.Tools = []string{"write_file"}
	s := compile(t, some, failed)
	for tool, want := range map[string][]harnessv1.HookTopic{"run_command": {beforeTool}, "write_file": {beforeTool, onError}, "read_file": nil, "": nil} {
		for _, topic := range []harnessv1.HookTopic{beforeTool, onError, afterTool} {
			p := point(topic)
			p.Tool = tool
			if _, need := s.Fire(p, func(string) *harnessv1.HookOutcome { return nil }); (need != nil) != slices.Contains(want, topic) {
				t.Errorf("%s of %q: requests %v", topic, tool, need)
			}
		}
	}
}

func TestFailingExpressionIsAFailure(t *testing.T) {
	s := compile(t, cel("h", beforeTool, `args.command.contains("rm")`, deny, "no rm"))
	p := point(beforeTool)
	for want, args := range map[string]any{
		"h before_tool_call deny no rm":         map[string]any{"command": "rm x"},
		"h before_tool_call failed closed=true": map[string]any{"command": 7.0},
	} {
		p.Payload["arguments"] = args
		r, _ := fireAll(t, s, p, nil)
		if !slices.Equal(eventLines(r), []string{want}) || r.Action != deny {
			t.Errorf("%v: %v, %q", args, r.Action, eventLines(r))
		}
	}
	p.Payload["arguments"] = map[string]any{"path": "x"}
	if r, _ := fireAll(t, s, p, nil); r.Action != carryOn || len(r.Events) != 0 {
		t.Errorf("a call without a command: %v", eventLines(r))
	}
}

func TestExpressionReadsThePayload(t *testing.T) {
	for when, p := range map[string]hook.Point{
		`topic == "before_tool_call" && turn == 3 && tool == "run_command" && args.command.startsWith("rm")`:   point(beforeTool),
		`is_error && call_id == "c1" && result.contains("boom")`:                                               {Topic: afterTool, Payload: map[string]any{"is_error": true, "call_id": "c1", "result": "boom!"}},
		`budget == "cost_usd" && used >= limit && limit > 2`:                                                   {Topic: onBudget, Payload: map[string]any{"budget": "cost_usd", "used": 3, "limit": 2.5}},
		`!called_work_complete && tool_usage["read_file"] == 2 && tool_usage["x"] == 0 && work_items.open > 0`: {Topic: agentStop, Payload: map[string]any{"tool_usage": map[string]uint32{"read_file": 2}, "work_items": map[string]any{"open": 1}}},
		`segment == 2 && goal == "g"`: {Topic: sessionStart, Payload: map[string]any{"segment": uint32(2), "goal": "g"}},
		`status == "DONE" && accepted && kind == "agent_done" && message != "" && true`: {Topic: sessionEnd, Payload: map[string]any{"status": "DONE", "accepted": true, "kind": "agent_done", "message": "m"}},
	} {
		if r, _ := fireAll(t, compile(t, cel("h", p.Topic, when, carryOn, "")), p, nil); len(r.Events) != 1 || r.Events[0].GetHookResult() == nil {
			t.Errorf("%s: %v", when, r.Events)
		}
	}
}

func TestEmptySetContinues(t *testing.T) {
	s := compile(t)
	if s != nil || s.Any(topics()...) || s.Hook("x") != nil {
		t.Fatal("an empty set has hooks")
	}
	r, need := s.Fire(point(beforeTool), nil)
	if need != nil || r.Action != carryOn || r.Replaced || len(r.Payload) != 4 || len(r.Events) != 0 {
		t.Fatalf("got %+v, %v", r, need)
	}
	if s := compile(t, remoteHook("h", afterTool)); s.Any(beforeTool) || !s.Any(beforeTool, afterTool) || s.Hook("h").GetGrpc() == "" {
		t.Fatal("the wrong topic")
	}
}

func BenchmarkFire(b *testing.B) {
	var hooks []*harnessv1.Hook
	for _, tool := range []string{"read_file", "write_file", "edit_file", "list_directory", "run_command"} {
		hooks = append(hooks, cel("", beforeTool, `tool == '`+tool+`' && args.command.contains('rm -rf /home')`, deny, "not here"))
	}
	s := compile(b, hooks...)
	p := point(beforeTool)
	for b.Loop() {
		if r, _ := s.Fire(p, nil); r.Action != carryOn {
			b.Fatal(r.Action)
		}
	}
}
