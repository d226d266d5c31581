package judgement

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hooksKind is a subscriber that wants something when a call's path is forbidden.txt, or,
// at agent_stop, the first time.
type hooksKind struct {
	name string
	// play plays a story with a subscriber of the kind: it wants action, because of
	// reason, when the call writes forbidden.txt, or at the first stop.
	play func(t *testing.T, m live.Model, topic harnessv1.HookTopic, action harnessv1.HookAction, reason string, edits ...func(*harnessv1.RunSpec)) *live.Transcript
}

// hooksWants enables the verdicts of the subscribers in these tests.
func hooksWants(h hooksCall) bool {
	if h.GetTopic() == hooksAgentStop {
		return fmt.Sprint(h.payload["turn_count"]) == "1"
	}
	a, _ := h.payload["arguments"].(live.Args)
	return a["path"] == "forbidden.txt"
}

func hooksKinds() []hooksKind {
	wanting := func(action harnessv1.HookAction, reason string) hooksAnswer {
		return func(h hooksCall) (*harnessv1.HookVerdict, error) {
			if hooksWants(h) {
				return hooksVerdict(action, reason), nil
			}
			return nil, nil
		}
	}
	return []hooksKind{
		{"cel", func(t *testing.T, m live.Model, topic harnessv1.HookTopic, action harnessv1.HookAction, reason string, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
			t.Helper()
			cel := "args.path == 'forbidden.txt'"
			if topic == hooksAgentStop {
				cel = "turn == 1"
			}
			h := hooksRule(topic, cel, action, reason)
			h.Id = "guard"
			return live.Play(t, m, append(edits, hooksSet(h))...)
		}},
		{"grpc", func(t *testing.T, m live.Model, topic harnessv1.HookTopic, action harnessv1.HookAction, reason string, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
			t.Helper()
			return live.Play(t, m, append(edits, hooksSet(&harnessv1.Hook{Id: "guard", Topic: topic, Grpc: hooksServe(t, wanting(action, reason)).addr}))...)
		}},
		{"command", func(t *testing.T, m live.Model, topic harnessv1.HookTopic, _ harnessv1.HookAction, reason string, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
			t.Helper()
			pattern := `"path":"forbidden.txt"`
			if topic == hooksAgentStop {
				pattern = `"turn_number":1,`
			}
			script := "if grep -q '" + pattern + "'; then echo '" + reason + "' >&2; exit 2; fi\n"
			return live.Play(t, m, append(edits, hooksFile(t, "guard.sh", script), hooksSet(&harnessv1.Hook{Id: "guard", Topic: topic, Command: "sh guard.sh"}))...)
		}},
		{"callback", func(t *testing.T, m live.Model, topic harnessv1.HookTopic, action harnessv1.HookAction, reason string, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
			t.Helper()
			c := hooksDrive(t, m, wanting(action, reason), append(edits, hooksSet(&harnessv1.Hook{Id: "guard", Topic: topic, Callback: true}))...)
			return c.Wait()
		}},
	}
}

// TestHooksOfEachKindDenyACall: the call has no effect and leaves tool.denied alone, its
// reason is what the model reads as the result, and the other calls of the turn run.
func TestHooksOfEachKindDenyACall(t *testing.T) {
	t.Parallel()
	for _, kind := range hooksKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			const reason = "Nothing is written to forbidden files."
			s := kind.play(t, hooksScript(live.Calls(hooksWrite("one.txt", "1"), hooksWrite("forbidden.txt", "2"), hooksWrite("three.txt", "3"))),
				hooksBeforeCall, hooksDeny, reason)
			s.Want("DONE agent_done accepted")
			if s.Exists("forbidden.txt") || !s.Exists("one.txt") || !s.Exists("three.txt") {
				t.Errorf("forbidden.txt is there: %v, one.txt: %v, three.txt: %v", s.Exists("forbidden.txt"), s.Exists("one.txt"), s.Exists("three.txt"))
			}
			if got := hooksResult(s, "call_1_1"); !strings.Contains(got, reason) {
				t.Errorf("the model reads %q as the result", got)
			}
			hooksTold(t, s, 1, reason)
			for _, e := range s.Events {
				switch {
				case e.GetToolDenied() != nil && (e.GetToolDenied().GetCallId() != "call_1_1" || !strings.Contains(e.GetToolDenied().GetReason(), reason)):
					t.Errorf("denied: %v", e.GetToolDenied())
				case e.GetToolCall().GetCallId() == "call_1_1", e.GetToolResult().GetCallId() == "call_1_1", e.GetToolError().GetCallId() == "call_1_1":
					t.Errorf("the call that was denied has %v", e)
				}
			}
			if n := len(s.Names("tool.denied")); n != 1 {
				t.Errorf("%d calls were denied", n)
			}
			var said []string
			for _, e := range s.Events {
				if h := e.GetHookResult(); h.GetAction() != "" && h.GetAction() != "continue" {
					said = append(said, fmt.Sprintf("%d %s %s %s: %s", e.GetTurnNumber(), h.GetHookId(), h.GetTopic(), h.GetAction(), h.GetReason()))
				}
			}
			hooksSame(t, "verdicts", said, "1 guard before_tool_call deny: "+reason)
		})
	}
}

// TestHooksOfEachKindBlockTheStop: the run continues, and the reason is in the model's next
// request.
func TestHooksOfEachKindBlockTheStop(t *testing.T) {
	t.Parallel()
	for _, kind := range hooksKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			const reason = "The tests of the parser have not been run."
			s := kind.play(t, hooksScript(), hooksAgentStop, hooksBlock, reason)
			s.Want("DONE agent_done accepted")
			if s.Result.GetTurnCount() != 2 {
				t.Errorf("%d turns, want 2", s.Result.GetTurnCount())
			}
			hooksTold(t, s, 1, reason)
			var rejected []string
			for _, e := range s.Events {
				if r := e.GetStopRejected(); r != nil {
					rejected = append(rejected, fmt.Sprint(e.GetTurnNumber(), " ", r.GetKind(), " ", strings.Contains(r.GetMessage(), reason)))
				}
			}
			hooksSame(t, "rejections", rejected, "1 agent_stop_hook_blocked true")
		})
	}
}

// TestHooksOfEachKindReplaceArguments: what runs has the arguments that the hook gave,
// whatever the model wrote. An expression has nothing to replace with.
func TestHooksOfEachKindReplaceArguments(t *testing.T) {
	t.Parallel()
	m := hooksScript(live.Calls(hooksWrite("forbidden.txt", "text of the model")))
	answer := func(h hooksCall) (*harnessv1.HookVerdict, error) {
		if hooksWants(h) {
			return hooksInstead("arguments", live.Args{"path": "allowed.txt", "content": "text of the hook"}), nil
		}
		return nil, nil
	}
	for name, story := range map[string]func(t *testing.T) *live.Transcript{
		"grpc": func(t *testing.T) *live.Transcript {
			t.Helper()
			return live.Play(t, m, hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Grpc: hooksServe(t, answer).addr}))
		},
		"command": func(t *testing.T) *live.Transcript {
			t.Helper()
			return live.Play(t, m, hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Tools: []string{"write_file"},
				Command: `echo '{"action":"replace","payload":{"arguments":{"path":"allowed.txt","content":"text of the hook"}}}'`}))
		},
		"callback": func(t *testing.T) *live.Transcript {
			t.Helper()
			return hooksDrive(t, m, answer, hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Callback: true})).Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := story(t)
			s.Want("DONE agent_done accepted")
			if s.Exists("forbidden.txt") || !s.Exists("allowed.txt") {
				t.Error("the call ran with the model's arguments")
			}
			for _, e := range s.Events {
				if c := e.GetToolCall(); c.GetCallId() == "call_1_0" && !strings.Contains(c.GetArguments().GetInline(), "text of the hook") {
					t.Errorf("tool.call has the arguments %s", c.GetArguments().GetInline())
				}
			}
		})
	}
}

// TestHooksOfCommandsAreGivenTheCallOnTheirInput: one line of JSON, in the workspace.
func TestHooksOfCommandsAreGivenTheCallOnTheirInput(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))),
		hooksSet(&harnessv1.Hook{Id: "log", Topic: hooksBeforeCall, Tools: []string{"write_file"}, Command: "cat >> seen.jsonl"}))
	s.Want("DONE agent_done accepted")
	raw, err := os.ReadFile(filepath.Join(s.Dir, "seen.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines: %s", len(lines), raw)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	for field, want := range (live.Args{
		"namespace": "default", "run_id": s.ID, "hook_id": "log", "topic": "before_tool_call", "turn_number": 1,
	}) {
		if fmt.Sprint(got[field]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	payload, _ := got["payload"].(live.Args)
	if payload["tool"] != "write_file" || payload["call_id"] != "call_1_0" || fmt.Sprint(payload["arguments"]) != fmt.Sprint(live.Args{"path": "a.txt", "content": "A"}) || got["idempotency_key"] == "" {
		t.Errorf("the command read %s", raw)
	}
}

// TestHooksOfAClientThatHasClosedItsSideFail: no client can answer, so a call
// that needs the client's verdict does not run, and everything else continues.
func TestHooksOfAClientThatHasClosedItsSideFail(t *testing.T) {
	t.Parallel()
	c := hooksDrive(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), nil,
		hooksSet(&harnessv1.Hook{Id: "before", Topic: hooksBeforeCall, Tools: []string{"write_file"}, Callback: true}, &harnessv1.Hook{Id: "stop", Topic: hooksAgentStop, Callback: true}))
	s := c.Wait()
	s.Want("DONE agent_done accepted")
	hooksSame(t, "failures", hooksErrors(s), "before before_tool_call closed", "stop agent_stop open")
	if s.Exists("a.txt") {
		t.Error("the call ran though its hook failed")
	}
}

// TestHooksOfClientsTakeOneAnswer: a second answer to a call is refused as one to a call
// that is not pending, and changes nothing.
func TestHooksOfClientsTakeOneAnswer(t *testing.T) {
	t.Parallel()
	c := hooksDrive(t, hooksScript(live.Calls(hooksWrite("a.txt", "A")), live.Calls(live.Call("ask_client", live.Args{}))), func(hooksCall) (*harnessv1.HookVerdict, error) {
		return hooksVerdict(hooksDeny, "denied at first"), nil
	}, phasesClientTool, hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Tools: []string{"write_file"}, Callback: true}))
	s := c.Wait()
	s.Want("PARKED client_tool")
	key := c.first().GetIdempotencyKey()
	c.send(&harnessv1.RunRequest{RequestId: "late", Request: &harnessv1.RunRequest_HookAnswer{HookAnswer: &harnessv1.HookAnswer{
		IdempotencyKey: key, Verdict: hooksVerdict(hooksContinue, ""),
	}}})
	for {
		receipt, ok := <-c.receipts
		if !ok {
			t.Fatal("the stream ended before the late answer had its receipt")
		}
		if receipt.GetRequestId() != "late" {
			continue
		}
		if receipt.GetError() == "" || receipt.GetReason() != "CALL_NOT_PENDING" {
			t.Errorf("the late answer got %v", receipt)
		}
		break
	}
	if s.Exists("a.txt") {
		t.Error("the denied call ran")
	}
}
