package judgement

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The other calls of the response that ends the work still run, before and after it.
func TestStopOtherCallsWithWorkCompleteRun(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopWrite("before.txt", "1"), stopDone("wrote both"), stopWrite("after.txt", "2"))))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || !s.Exists("before.txt") || !s.Exists("after.txt") {
		t.Errorf("%d turns, before.txt %t, after.txt %t", s.Result.GetTurnCount(), s.Exists("before.txt"), s.Exists("after.txt"))
	}
	if n := len(s.Names("tool.result")); n != 3 {
		t.Errorf("%d results, want one for each of the 3 calls", n)
	}
}

// A failed call in the same response does not undo work_complete.
func TestStopAFailedCallWithWorkCompleteChangesNothing(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopShell("touch ran; exit 3"), stopDone("s"))))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || !s.Exists("ran") || len(s.Names("tool.error")) != 1 {
		t.Errorf("%d turns, ran %t, %v", s.Result.GetTurnCount(), s.Exists("ran"), s.Names())
	}
}

// task_complete counts as work_complete, though only work_complete is available.
func TestStopTaskCompleteEndsTheWorkToo(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(live.Call("task_complete", live.Args{"summary": "by the other name"}))))
	s.Want("DONE agent_done accepted")
	if got := content.Text(s.Result.GetSummary()); got != "by the other name" {
		t.Errorf("the summary is %q", got)
	}
	d := s.Result.GetReason().GetDetails()
	if d.GetTurn() != 1 || !d.GetWorkCompleteCalled() || d.GetContractVerified() || d.GetWorkItemsVerified() || d.GetWorkCompleteRetriesExhausted() {
		t.Errorf("details %v", d)
	}
}

// What the agent gave to work_complete and its last text are in the result.
func TestStopSummaryAndLastAnswerAreInTheResult(t *testing.T) {
	t.Parallel()
	last := live.Calls(stopDone("Two files are fixed."))
	last.Text = "Here is what I did."
	first := live.Calls(stopRead("a.txt"))
	first.Text = "Looking."
	s := live.Play(t, live.Replies(first, last), stopFiles(t, map[string]string{"a.txt": "a"}))
	s.Want("DONE agent_done accepted")
	if got := content.Text(s.Result.GetSummary()); got != "Two files are fixed." {
		t.Errorf("the summary is %q", got)
	}
	if got := content.Text(s.Result.GetAnswer()); got != "Here is what I did." {
		t.Errorf("the last answer is %q", got)
	}
}

// The last answer of an agent that only talks is in the result as well.
func TestStopAnswerOfASilentAgentIsInTheResult(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("first"), live.Message("The answer is 42.")), stopNotRequired)
	s.Want("DONE agent_done accepted")
	if got := content.Text(s.Result.GetAnswer()); got != "The answer is 42." {
		t.Errorf("the last answer is %q", got)
	}
	if content.Text(s.Result.GetSummary()) != "" {
		t.Errorf("summary = %q, want none", content.Text(s.Result.GetSummary()))
	}
}

// Calls other than work_complete mean that the agent is not done, whatever it says.
func TestStopCallsMeanThatTheAgentIsNotDone(t *testing.T) {
	t.Parallel()
	talk := live.Calls(stopRead("a.txt"))
	talk.Text = "I am done. The task is complete."
	s := live.Play(t, live.Replies(talk, live.Done()), stopFiles(t, map[string]string{"a.txt": "content of a"}))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 2 || len(s.Names("stop.rejected", "continuation.prompt")) != 0 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
	stopTold(t, s, 1, "content of a")
	if m := stopLast(s, 1); m.Role != "tool" {
		t.Errorf("the second request ends with %s %q", m.Role, m.Content)
	}
}

// Malformed or invalid arguments return the error and the
// schema. That call does not run, the others do.
func TestStopInvalidArgumentsReturnTheSchema(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(
		modeltest.Call{Name: "write_file", Arguments: `{"path": "cut.txt", "content": "hal`},
		live.Call("write_file", live.Args{"path": "missing.txt"}),
		live.Call("write_file", live.Args{"path": "type.txt", "content": 7}),
		stopWrite("good.txt", "g"),
	), live.Done()))
	s.Want("DONE agent_done accepted")
	answers := stopAnswers(s, 1)
	if len(answers) != 4 {
		t.Fatalf("answers %q", answers)
	}
	for i, word := range []string{"JSON", "content", "content"} {
		for _, w := range []string{word, `"required"`, `"path"`, `"string"`} {
			if !strings.Contains(answers[i], w) {
				t.Errorf("answer %d does not hold %s: %s", i+1, w, answers[i])
			}
		}
	}
	if s.Exists("cut.txt") || s.Exists("missing.txt") || s.Exists("type.txt") || !s.Exists("good.txt") {
		t.Error("what runs is not exactly the call that is right")
	}
	if n := len(s.Names("tool.error")); n != 3 {
		t.Errorf("%d calls ended with an error, want 3", n)
	}
}

// A call of an unknown tool returns the nearest names.
func TestStopUnknownToolReturnsNearNames(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(live.Call("read_fil", live.Args{"path": "a.txt"}), live.Call("zzz", live.Args{})), live.Done()))
	s.Want("DONE agent_done accepted")
	answers := stopAnswers(s, 1)
	if len(answers) != 2 || !strings.Contains(answers[0], "read_file") || !strings.Contains(answers[0], `"read_fil"`) || !strings.Contains(answers[1], "zzz") {
		t.Errorf("answers %q", answers)
	}
}

// A response with calls that the length limit cut off runs none of them, and the
// next request reports it.
func TestStopCallsOfACutResponseAreDropped(t *testing.T) {
	t.Parallel()
	cut := live.Calls(stopWrite("cut.txt", "half of it"), stopDone("all"))
	cut.FinishReason, cut.Text = "length", "Writing"
	s := live.Play(t, live.Replies(cut, live.Done()))
	s.Want("DONE agent_done accepted")
	if s.Exists("cut.txt") || s.Result.GetTurnCount() != 2 {
		t.Errorf("%d turns, cut.txt %t", s.Result.GetTurnCount(), s.Exists("cut.txt"))
	}
	stopTold(t, s, 1, "length limit")
	if m := stopLast(s, 1); m.Role != "user" {
		t.Errorf("the last message is %s %q", m.Role, m.Content)
	}
	stopSame(t, "calls and rejections", s.Names("tool.call", "continuation.prompt", "stop.rejected"), "tool.call") // the last response's
	for _, m := range s.Requests[1].Messages {
		if len(m.ToolCalls) > 0 {
			t.Errorf("the dropped calls are in the conversation: %+v", m)
		}
	}
}

// An empty response is a response without calls: nudged, then judged like silence.
func TestStopEmptyResponseIsSilence(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("")))
	s.Want("DONE agent_done")
	stopSame(t, "nudges", stopNudged(s), "1: 1 of 2", "2: 2 of 2")
	stopSame(t, "rejections", stopRejected(s), "3 work_complete_not_called 1", "4 work_complete_not_called 2", "5 work_complete_not_called 3")
	for n, r := range s.Requests {
		for i, m := range r.Messages {
			if m.Content == "" && len(m.ToolCalls) == 0 {
				t.Errorf("request %d, message %d (%s) is empty", n+1, i+1, m.Role)
			}
		}
	}
}

// work_complete with arguments that do not fit ends nothing.
func TestStopWorkCompleteWithoutItsSummaryIsRejected(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(live.Call("work_complete", live.Args{})), live.Done()))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 2 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	stopTold(t, s, 1, "summary", `"required"`)
}

// work_complete is available in every mode, runs in each, and never needs approval
// or is denied. The same holds for task_complete.
func TestStopWorkCompleteIsThereInEveryMode(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*harnessv1.RunSpec){
		"execute": func(*harnessv1.RunSpec) {},
		"plan":    func(s *harnessv1.RunSpec) { s.Agent.Mode = "plan" },
		"own": func(s *harnessv1.RunSpec) {
			s.Agent.Mode, s.Agent.Modes = "look", []*harnessv1.ModeSpec{{Name: "look", Tools: []string{"read_file"}, ReadOnly: true}}
		},
		"ask-all":    func(s *harnessv1.RunSpec) { s.Agent.Tools = stopPolicy(harnessv1.ToolDecision_TOOL_DECISION_ASK) },
		"deny-all":   func(s *harnessv1.RunSpec) { s.Agent.Tools = stopPolicy(harnessv1.ToolDecision_TOOL_DECISION_DENY) },
		"autonomous": func(s *harnessv1.RunSpec) { s.Agent.Autonomous = true },
	} {
		for _, tool := range []string{"work_complete", "task_complete"} {
			t.Run(name+"-"+tool, func(t *testing.T) {
				t.Parallel()
				s := live.Play(t, live.Replies(live.Calls(live.Call(tool, live.Args{"summary": "s"}))), edit, func(spec *harnessv1.RunSpec) { spec.Config.Tools = nil })
				s.Want("DONE agent_done accepted")
				if s.Result.GetTurnCount() != 1 || len(s.Names("approval.requested", "tool.denied")) != 0 {
					t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
				}
				available := 0
				for _, o := range s.Requests[0].Tools {
					if o.Name == "work_complete" {
						available++
					}
				}
				if available != 1 {
					t.Errorf("work_complete is in the tools %d times, want once", available)
				}
			})
		}
	}
}

func stopPolicy(d harnessv1.ToolDecision) []*harnessv1.ToolRule {
	return []*harnessv1.ToolRule{{Name: "*", Policy: d}}
}
