package transcripts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestEnds says when runs end, and whether as accepted, by what their agents do
// in every turn.
func TestEnds(t *testing.T) {
	silent := func(int) []string { return []string{"model …"} }
	reading := func(n int) []string {
		return []string{"model", fmt.Sprintf("  r%d:read_file {\"path\":\"a%d\"}", n, n)}
	}
	cycling := func(length int) func(int) []string {
		return func(n int) []string {
			return []string{"model", fmt.Sprintf("  r%d:read_file {\"path\":\"a%d\"}", n, n%length)}
		}
	}
	completing := func(at int, otherwise func(int) []string) func(int) []string {
		return func(n int) []string {
			if n == at {
				return []string{"model", `  done:work_complete {"summary":"s"}`}
			}
			return otherwise(n)
		}
	}
	for _, c := range []struct {
		name     string
		settings string
		agent    func(turn int) []string
		turns    uint32
		kind     string
		accepted bool
	}{
		{"silent", "", silent, 6, "agent_done", false},
		{"silent, without prompts", "prompts=off ", silent, 4, "agent_done", false},
		{"silent, without retries", "prompts=off retries=0 ", silent, 1, "agent_done", false},
		{"silent, and work_complete is not required", "required=off ", silent, 3, "agent_done", true},
		{"silent, strict", "strict=on max_turns=30 ", silent, 30, "max_turns", false},
		{"silent, strict, complete at last", "strict=on ", completing(12, silent), 12, "agent_done", true},
		{"complete at once", "", completing(1, silent), 1, "agent_done", true},
		{"complete in the third turn", "", completing(3, reading), 3, "agent_done", true},
		{"complete after the rejections", "", completing(6, silent), 6, "agent_done", true},
		{"complete in the last turn", "max_turns=3 ", completing(3, reading), 3, "max_turns", false},
		{"busy for ever", "", reading, 50, "max_turns", false},
		{"200 turns", "max_turns=200 ", reading, 200, "max_turns", false},
		{"one turn", "max_turns=1 ", silent, 1, "max_turns", false},
		{"the same call in every turn", "", cycling(1), 6, "doom_loop", false},
		{"two calls in turns", "", cycling(2), 7, "doom_loop", false},
		{"three calls in a circle", "", cycling(3), 9, "doom_loop", false},
		{"four calls in a circle", "", cycling(4), 11, "doom_loop", false},
		{"five calls in a circle", "", cycling(5), 13, "doom_loop", false},
		{"three calls in a circle, and loops are not watched", "doom=off ", cycling(3), 5, "stalled", false},
		{"six calls in a circle", "", cycling(6), 8, "stalled", false},
		{"the same call, and loops are not watched", "doom=off ", cycling(1), 3, "stalled", false},
		{"the same call, and nothing is watched", "doom=off stall=off ", cycling(1), 50, "max_turns", false},
		{"the same call, and max_turns comes first", "max_turns=6 ", cycling(1), 6, "max_turns", false},
		{"the same call, left after two corrections", "", func(n int) []string {
			if n <= 4 {
				return cycling(1)(n)
			}
			return completing(7, reading)(n)
		}, 7, "agent_done", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t)
			for n := 1; n <= 200; n++ {
				for _, line := range c.agent(n) {
					d.play(line)
				}
			}
			d.play("start " + c.settings + "Go")
			d.rest()
			s := d.snapshot()
			status := harnessv1.RunStatus_RUN_STATUS_DONE
			if c.kind == "doom_loop" || c.kind == "stalled" {
				status = harnessv1.RunStatus_RUN_STATUS_STALLED
			}
			if s.GetStatus() != status || s.GetStopReason().GetKind() != c.kind ||
				s.GetTurnCount() != c.turns || s.GetAccepted() != c.accepted {
				t.Errorf("ended %s %s after %d turns, accepted %v; want %s after %d, %v", s.GetStatus(), s.GetStopReason().GetKind(),
					s.GetTurnCount(), s.GetAccepted(), c.kind, c.turns, c.accepted)
			}
			if len(d.requests) != int(c.turns) {
				t.Errorf("the model was asked %d times in %d turns", len(d.requests), c.turns)
			}
		})
	}
}

// TestRejectionIsInTheNextRequest: what kept the agent from stopping is the last
// thing that it reads, but for guidance that comes with the turn.
func TestRejectionIsInTheNextRequest(t *testing.T) {
	d := newDriver(t)
	for range 6 {
		d.play("model …")
	}
	d.play("start Go")
	d.rest()
	for i, want := range []harnessv1.MessageKind{
		harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT,
		harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION,
		harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION,
		harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED,
		harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED,
		harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED,
	} {
		messages := slices.DeleteFunc(slices.Clone(d.requests[i].GetMessages()), func(m *harnessv1.Message) bool {
			return m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE
		})
		if last := messages[len(messages)-1]; last.GetKind() != want || last.GetRole() != harnessv1.Role_ROLE_USER {
			t.Errorf("request %d ends with %s, want %s", i+1, last.GetKind(), want)
		}
	}
}

// TestMaxTurnsWaitsForAnswers: a turn that waits is not over.
func TestMaxTurnsWaitsForAnswers(t *testing.T) {
	d := newDriver(t)
	for _, line := range []string{"model", `  a1:run_command {}`, "start max_turns=1 Go"} {
		d.play(line)
	}
	d.rest()
	if s := d.snapshot(); s.GetStopReason().GetKind() != "approval" || s.GetTurnCount() != 0 {
		t.Fatalf("rests for %s after %d turns", s.GetStopReason().GetKind(), s.GetTurnCount())
	}
	d.play("approve a1 once")
	d.rest()
	if s := d.snapshot(); s.GetStopReason().GetKind() != "max_turns" || s.GetTurnCount() != 1 {
		t.Errorf("ended %s after %d turns", s.GetStopReason().GetKind(), s.GetTurnCount())
	}
}

// TestCancel ends a run wherever it stands.
func TestCancel(t *testing.T) {
	for name, lines := range map[string][]string{
		"before the first turn":             {"cancel", "start Go"},
		"in mid-turn":                       {"mid turn 1: cancel", "model", `  a:write_file {"path":"a"}`, "start Go"},
		"waiting for approval":              {"model", "  a:run_command {}", "start Go", "rest", "cancel"},
		"interrupted":                       {"mid turn 1: interrupt", "model …", "start Go", "rest", "cancel"},
		"out of budget":                     {"start turns=0 Go", "rest", "cancel"},
		"in an outage":                      {"outage down", "start Go", "rest", "cancel"},
		"after an interrupt of an approval": {"model", "  a:run_command {}", "start Go", "rest", "interrupt", "rest", "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			for _, line := range lines {
				if line == "rest" {
					d.rest()
				} else {
					d.play(line)
				}
			}
			d.rest()
			s := d.snapshot()
			if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED || s.GetStopReason().GetKind() != "cancelled" || s.GetAccepted() ||
				s.GetPhase() != harnessv1.Phase_PHASE_DONE || len(s.GetPendingToolCalls()) > 0 {
				t.Errorf("stands at %s %s in %s", s.GetStatus(), s.GetStopReason(), s.GetPhase())
			}
			checkLog(t, d)
		})
	}
}

// TestAnyStory plays stories that nobody wrote: whatever the model, the tools
// and the people do, and wherever workers die, the log stays sound and the run
// comes to rest.
func TestAnyStory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDriver(t)
		line := rapid.SampledFrom([]string{
			"model …", "model cut off: …", "model\n  read_file {\"path\":\"a\"}", "model\n  a:write_file {\"path\":\"a\"}\n  a:read_file {\"path\":\"b\"}",
			"model\n  c:run_command {}", "model\n  c:run_command {}\n  read_file {}\n  b:run_command {}", "model\n  work_complete {\"summary\":\"s\"}",
			"model\n  c:run_command {}\n  work_complete {\"summary\":\"s\"}", "model cut off: …\n  read_file {", "outage down", "refusal no",
			"model\n  work_item_add {\"title\":\"one\"}", "model\n  work_item_update {\"id\":\"w1\",\"status\":\"DONE\"}\n  work_complete {\"summary\":\"s\"}",
			"model\n  save_artifact {\"kind\":\"document\",\"title\":\"t\",\"content\":\"c\"}", "model " + strings.Repeat("Unfortunately, this is long. ", 40) + "\n  work_complete {\"summary\":\"s\"}",
			"model\n  ask_user {\"question\":\"which?\"}", "model\n  read_file {\"path\":\"a\"}\n  read_file {\"path\":\"a\"}\n  read_file {\"path\":\"a\"}",
		})
		input := rapid.SampledFrom([]string{
			"say more", "interrupt", "cancel", "resume", "resume tool_calls=40", "approve c once", "approve c deny", "approve b run", "timer", "timer 1",
			"mode plan", "mode execute", "mode nowhere", "replan", "answer question blue", "answer question ! no", "check out met", "check out unmet gone",
		})
		hooks := rapid.SampledFrom([]string{
			"", `{"topic":"HOOK_TOPIC_BEFORE_TOOL_CALL","cel":"tool == 'write_file'","action":"HOOK_ACTION_PAUSE"}`,
			`{"topic":"HOOK_TOPIC_BEFORE_TOOL_CALL","cel":"tool == 'read_file'","action":"HOOK_ACTION_DENY"}`,
			`{"topic":"HOOK_TOPIC_BEFORE_TOOL_CALL","cel":"turn == 2","action":"HOOK_ACTION_ABORT","context":"watch out"}`,
			`{"topic":"HOOK_TOPIC_BEFORE_STEP","cel":"turn == 2","action":"HOOK_ACTION_PAUSE"}`, `{"topic":"HOOK_TOPIC_BEFORE_STEP","cel":"turn == 3","action":"HOOK_ACTION_SKIP"}`,
			`{"topic":"HOOK_TOPIC_BEFORE_STEP","cel":"turn == 3","action":"HOOK_ACTION_ABORT"}`, `{"topic":"HOOK_TOPIC_BEFORE_STEP","cel":"turn == 2","action":"HOOK_ACTION_REPLAN"}`,
			`{"topic":"HOOK_TOPIC_AFTER_STEP","cel":"turn == 2","action":"HOOK_ACTION_REPLAN"}`, `{"topic":"HOOK_TOPIC_AFTER_STEP","cel":"turn == 2","action":"HOOK_ACTION_SKIP"}`,
			`{"topic":"HOOK_TOPIC_AFTER_STEP","cel":"turn == 1","action":"HOOK_ACTION_PAUSE"}`, `{"topic":"HOOK_TOPIC_AFTER_TOOL_CALL","cel":"turn == 2","action":"HOOK_ACTION_ABORT"}`,
			`{"topic":"HOOK_TOPIC_AFTER_TOOL_CALL","cel":"true","action":"HOOK_ACTION_CONTINUE","context":"mind the gap"}`, `{"topic":"HOOK_TOPIC_ON_ERROR","cel":"turn == 1","action":"HOOK_ACTION_PAUSE"}`,
			`{"topic":"HOOK_TOPIC_AGENT_STOP","cel":"turn < 5","action":"HOOK_ACTION_BLOCK"}`, `{"topic":"HOOK_TOPIC_AGENT_STOP","cel":"turn == 2","action":"HOOK_ACTION_PAUSE"}`,
			`{"topic":"HOOK_TOPIC_AGENT_STOP","cel":"turn < 3","action":"HOOK_ACTION_REPLAN"}`, `{"topic":"HOOK_TOPIC_AFTER_PLAN","cel":"segment == 0","action":"HOOK_ACTION_SKIP"}`,
			`{"topic":"HOOK_TOPIC_BEFORE_PLAN","cel":"plan.contains('more')","action":"HOOK_ACTION_ABORT"}`, `{"topic":"HOOK_TOPIC_ON_PAUSE","cel":"true","action":"HOOK_ACTION_CONTINUE"}`,
			`{"topic":"HOOK_TOPIC_SESSION_START","cel":"true","action":"HOOK_ACTION_CONTINUE","context":"welcome"}`,
		})
		for range 60 {
			for _, l := range strings.Split(line.Draw(rt, "model"), "\n") {
				d.play(l)
			}
		}
		settings := rapid.SampledFrom([]string{"max_turns=8 ", "max_turns=8 prompts=off ", "max_turns=8 strict=on ", "max_turns=8 tool_calls=3 ", "max_turns=8 yolo=on ",
			"max_turns=8 items=on ", "quality=on workspace=on max_turns=8 ", "quality=on workspace=on max_turns=8 tool_calls=3 ", "max_turns=8 items=on guidance=off doom=off ", "max_turns=8 stall=off jit=off "}).Draw(rt, "settings")
		answerJobs(rt, d)
		var subscribers []string
		for range rapid.IntRange(0, 2).Draw(rt, "hooks") {
			if h := hooks.Draw(rt, "hook"); h != "" {
				subscribers = append(subscribers, h)
			}
		}
		d.play(`agent {"hooks":[` + strings.Join(subscribers, ",") + "]}")
		if rapid.Bool().Draw(rt, "contract") {
			d.play(`contract {"goal":"g","requiredOutputs":[{"id":"out","predicate":{"type":"PREDICATE_TYPE_FILE_EXISTS","path":"a"}}],"questions":[{"id":"q","question":"which?","required":true}]}`)
		}
		for n := uint32(1); n <= 4; n++ {
			if rapid.Bool().Draw(rt, "mid") {
				d.play(fmt.Sprintf("mid turn %d: %s", n, input.Draw(rt, "input")))
			}
		}
		d.play("start " + settings + "Go")
		for range rapid.IntRange(0, 8).Draw(rt, "inputs") {
			if rapid.Bool().Draw(rt, "dies") {
				d.crash = rapid.SampledFrom([]string{"started", "admitted", "responded", "judged", "tools", "finished"}).Draw(rt, "at")
				d.forget = rapid.Bool().Draw(rt, "forgets")
			}
			d.rest()
			d.play(input.Draw(rt, "input"))
			if rapid.Bool().Draw(rt, "twice") {
				d.play("again")
			}
		}
		d.rest()
		checkLog(rt, d)
	})
}

// fatal is what tests and properties have in common.
type fatal interface {
	Helper()
	Fatal(...any)
}

// checkLog checks what holds for every log that rests.
func checkLog(t fatal, d *driver) {
	t.Helper()
	open := false
	calls, ends := map[string]int{}, map[string]int{}
	turn := uint32(0)
	asked := map[uint32]bool{}
	for _, rec := range d.log {
		for _, e := range rec.GetEvents() {
			switch e.GetEvent().(type) {
			case *harnessv1.Event_SessionStart:
				if open {
					t.Fatal("a segment begins in a segment")
				}
				open = true
			case *harnessv1.Event_SessionComplete:
				if !open {
					t.Fatal("a segment ends twice")
				}
				open = false
			case *harnessv1.Event_ModelResponse:
				if asked[e.GetTurnNumber()] {
					t.Fatal("a turn has two answers:", e.GetTurnNumber())
				}
				asked[e.GetTurnNumber()] = true
			case *harnessv1.Event_StepStart:
				if e.GetTurnNumber() < turn || e.GetTurnNumber() > turn+1 {
					t.Fatal("turn", e.GetTurnNumber(), "follows turn", turn)
				}
				turn = e.GetTurnNumber()
			case *harnessv1.Event_ToolCall:
				calls[e.GetToolCall().GetCallId()]++
			case *harnessv1.Event_ToolResult:
				ends[e.GetToolResult().GetCallId()]++
			case *harnessv1.Event_ToolError:
				ends[e.GetToolError().GetCallId()]++
			case *harnessv1.Event_ToolDenied:
				ends[e.GetToolDenied().GetCallId()]++
			case *harnessv1.Event_Repair:
				ends[e.GetRepair().GetCallId()]++
			}
		}
	}
	if wrong := d.rejudge(d.log); len(wrong) > 0 {
		t.Fatal("judged again,", strings.Join(wrong, "\n"))
	}
	s := d.snapshot()
	if ended := s.GetPhase() == harnessv1.Phase_PHASE_DONE; ended == open {
		t.Fatal("the run stands at", s.GetPhase(), "and its segment is open:", open)
	}
	for id, n := range calls {
		if n != 1 || ends[id] > 1 {
			t.Fatal("call", id, "was announced", n, "times and ended", ends[id], "times")
		}
	}
	results := map[string]int{}
	var said []string
	for _, m := range d.conversation.Messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			results[m.GetToolCallId()]++
			if results[m.GetToolCallId()] > 1 {
				t.Fatal("call", m.GetToolCallId(), "has two results")
			}
		}
		if m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT {
			said = append(said, content.Text(m.GetContent()))
		}
	}
	view := conversation.View(d.conversation.Messages)
	checkView(t, view)
	var heard []string
	for _, m := range view {
		if m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT {
			heard = append(heard, content.Text(m.GetContent()))
		}
	}
	if !slices.Equal(said, heard) {
		t.Fatal("said", said, "heard", heard)
	}
}
