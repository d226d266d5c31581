package judgement

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A silent response is nudged by a user message that forbids repeating and gives three
// ways to choose one from.
func TestStopSilenceIsNudgedByAUserMessage(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("I have looked at everything."), live.Message("As I said."), live.Done()), stopNoRules)
	s.Want("DONE agent_done accepted")
	stopSame(t, "nudges", stopNudged(s), "1: 1 of 2", "2: 2 of 2")
	stopSame(t, "rejections", stopRejected(s))
	for n := 1; n <= 2; n++ {
		m := stopLast(s, n)
		if m.Role != "user" {
			t.Fatalf("request %d ends with a message of %s", n+1, m.Role)
		}
		text := strings.ToLower(m.Content)
		for _, w := range []string{"do not repeat", "summari", "exactly one", "work_complete", "next tool call", "another way"} {
			if !strings.Contains(text, w) {
				t.Errorf("the nudge does not say %q: %s", w, m.Content)
			}
		}
	}
	if stopLast(s, 1).Content != stopLast(s, 2).Content {
		t.Error("the nudge is not the same text each time")
	}
	stopStable(t, s)
}

// The text of the nudge can be set, and then nothing of the built-in one is said.
func TestStopNudgeSaysAnOwnText(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("hm"), live.Message("hm hm"), live.Done()), stopNoRules, func(spec *harnessv1.RunSpec) {
		spec.Config.Continuation = &harnessv1.ContinuationConfig{Text: "Weiter, bitte."}
	})
	s.Want("DONE agent_done accepted")
	for n := 1; n <= 2; n++ {
		if m := stopLast(s, n); m.Role != "user" || m.Content != "Weiter, bitte." {
			t.Errorf("request %d ends with %s %q", n+1, m.Role, m.Content)
		}
		if got := strings.Count(s.Text(n), "Weiter, bitte."); got != n {
			t.Errorf("request %d has the text %d times", n+1, got)
		}
	}
	if strings.Contains(s.Added(2), "Do not repeat") {
		t.Error("the built-in text is there too")
	}
}

// Without reminders silence counts as done immediately: three rejections, then it is
// the end at turn four, not accepted.
func TestStopWithoutNudgesASilentAgentEndsAtItsFourthTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done, I think")), stopNudges(false, 2))
	s.Want("DONE agent_done")
	if s.Result.GetTurnCount() != 4 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	stopSame(t, "nudges", stopNudged(s))
	stopSame(t, "rejections", stopRejected(s), "1 work_complete_not_called 1", "2 work_complete_not_called 2", "3 work_complete_not_called 3")
}

// Where moreover work_complete is not required the first silence ends the work, and it
// counts.
func TestStopWithoutNudgesAndGateTheFirstSilenceIsTheEnd(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("The answer is 4.")), stopNudges(false, 2), stopNotRequired)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || len(s.Names("stop.rejected", "continuation.prompt")) != 0 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
	if s.Result.GetReason().GetDetails().GetWorkCompleteCalled() {
		t.Error("work_complete_called is true")
	}
}

// Where work_complete is not required, silence after the nudges is taken and counts.
func TestStopNotRequiredSilenceAfterTheNudgesCounts(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("The answer is 4.")), stopNotRequired)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 3 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
}

// The number of nudges can be set; none is none.
func TestStopNumberOfNudges(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]uint32{"none": 0, "one": 1, "five": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(live.Message("quiet")), stopNudges(true, most))
			s.Want("DONE agent_done")
			if s.Result.GetTurnCount() != most+4 || len(stopNudged(s)) != int(most) || len(stopRejected(s)) != 3 {
				t.Errorf("%d turns, nudges %v, rejections %v", s.Result.GetTurnCount(), stopNudged(s), stopRejected(s))
			}
		})
	}
}

// A tool call restarts the count of reminders. The count of rejections for a missing
// work_complete continues through the segment.
func TestStopACallResetsTheNudgesAndNotTheRejections(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Message("1"), live.Message("2"), live.Message("3"), // two nudges, a rejection
		live.Calls(stopRead("a.txt")),
		live.Message("5"), live.Message("6"), live.Message("7"), live.Message("8"), live.Message("9"), // two nudges, two rejections, taken
	), stopFiles(t, map[string]string{"a.txt": "a"}))
	s.Want("DONE agent_done")
	if s.Result.GetTurnCount() != 9 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	stopSame(t, "nudges", stopNudged(s), "1: 1 of 2", "2: 2 of 2", "5: 1 of 2", "6: 2 of 2")
	stopSame(t, "rejections", stopRejected(s), "3 work_complete_not_called 1", "7 work_complete_not_called 2", "8 work_complete_not_called 3")
	stopStable(t, s)
}

// A call of an unknown tool is a call as well: the count of reminders restarts.
func TestStopACallOfAnUnknownToolResetsTheNudges(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("1"), live.Message("2"), live.Calls(live.Call("no_such_tool", live.Args{})), live.Message("4"), live.Done()))
	s.Want("DONE agent_done accepted")
	stopSame(t, "nudges", stopNudged(s), "1: 1 of 2", "2: 2 of 2", "4: 1 of 2")
}

// A text that the length limit cut off is silence like any other.
func TestStopACutTextIsSilence(t *testing.T) {
	t.Parallel()
	cut := live.Message("I was about to")
	cut.FinishReason = "length"
	s := live.Play(t, live.Replies(cut, live.Done()))
	s.Want("DONE agent_done accepted")
	stopSame(t, "nudges", stopNudged(s), "1: 1 of 2")
}

// An end without work_complete is refused three times with what to do, each time in the
// next request, then taken; that the retries are used up is in the details.
func TestStopMissingWorkCompleteIsRefusedThreeTimes(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done")), stopNudges(true, 0), stopNoRules)
	s.Want("DONE agent_done")
	for n := 1; n <= 3; n++ {
		m := stopLast(s, n)
		if m.Role != "user" || !strings.Contains(m.Content, "work_complete") || !strings.Contains(m.Content, "tool call") {
			t.Errorf("request %d ends with %s %q", n+1, m.Role, m.Content)
		}
	}
	if len(s.Requests) != 4 {
		t.Errorf("%d requests", len(s.Requests))
	}
	d := s.Result.GetReason().GetDetails()
	if d.GetTurn() != 4 || d.GetWorkCompleteCalled() || !d.GetWorkCompleteRetriesExhausted() {
		t.Errorf("details %v", d)
	}
	if got := s.State().GetWorkCompleteRetries(); got != 4 {
		t.Errorf("the state counts %d ends without work_complete, want 4", got)
	}
	if s.State().GetPhase() != harnessv1.Phase_PHASE_DONE || s.State().GetAccepted() {
		t.Errorf("the state is %s, accepted %t", s.State().GetPhase(), s.State().GetAccepted())
	}
}

// An agent that calls work_complete after a rejection is accepted, and nothing was used up.
func TestStopWorkCompleteAfterARejectionIsAccepted(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done"), live.Message("done"), live.Message("done"), live.Done()), stopNudges(true, 0))
	s.Want("DONE agent_done accepted")
	d := s.Result.GetReason().GetDetails()
	if s.Result.GetTurnCount() != 4 || !d.GetWorkCompleteCalled() || d.GetWorkCompleteRetriesExhausted() {
		t.Errorf("%d turns, details %v", s.Result.GetTurnCount(), d)
	}
}

// The number of rejections can be set; none means that the first end is taken.
func TestStopNumberOfRejections(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]uint32{"none": 0, "one": 1, "five": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(live.Message("done")), stopNudges(true, 0), stopRetries(most))
			s.Want("DONE agent_done")
			if s.Result.GetTurnCount() != most+1 || len(stopRejected(s)) != int(most) || !s.Result.GetReason().GetDetails().GetWorkCompleteRetriesExhausted() {
				t.Errorf("%d turns, rejections %v, %v", s.Result.GetTurnCount(), stopRejected(s), s.Result.GetReason())
			}
		})
	}
}

// A strict run accepts no end without work_complete: it continues to max_turns.
func TestStopStrictRunsToItsLastTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done")), stopStrict, stopMaxTurns(9), stopNoRules)
	s.Want("DONE max_turns")
	if s.Result.GetTurnCount() != 9 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	stopSame(t, "rejections", stopRejected(s),
		"3 work_complete_not_called 1", "4 work_complete_not_called 2", "5 work_complete_not_called 3",
		"6 work_complete_required_strict 4", "7 work_complete_required_strict 5", "8 work_complete_required_strict 6")
	for n := 6; n <= 8; n++ {
		if m := stopLast(s, n); m.Role != "user" || !strings.Contains(m.Content, "work_complete") {
			t.Errorf("request %d ends with %s %q", n+1, m.Role, m.Content)
		}
	}
	stopStable(t, s)
}

// A strict run in which work_complete comes late is accepted.
func TestStopStrictAcceptsWorkCompleteThatComesLate(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("1"), live.Message("2"), live.Message("3"), live.Message("4"), live.Message("5"), live.Message("6"), live.Message("7"), live.Done()), stopStrict)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 8 || !s.Result.GetReason().GetDetails().GetWorkCompleteCalled() {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Result.GetReason())
	}
}

// By default a run has fifty turns.
func TestStopFiftyTurnsIsTheDefault(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done")), stopStrict)
	s.Want("DONE max_turns")
	if s.Result.GetTurnCount() != 50 || len(s.Requests) != 50 {
		t.Errorf("%d turns, %d requests", s.Result.GetTurnCount(), len(s.Requests))
	}
}

// The next message of the user restarts the counts of reminders and rejections.
func TestStopTheNextMessageRestartsTheCounts(t *testing.T) {
	t.Parallel()
	first := live.Play(t, live.Replies(live.Message("quiet")))
	first.Want("DONE agent_done")
	stopSay(first.Run, "Do more.")
	second := first.WaitAfter(stopVersion(first))
	second.Want("DONE agent_done")
	if second.Result.GetTurnCount() != 12 {
		t.Errorf("%d turns", second.Result.GetTurnCount())
	}
	stopSame(t, "nudges", stopNudged(second), "7: 1 of 2", "8: 2 of 2")
	stopSame(t, "rejections", stopRejected(second), "9 work_complete_not_called 1", "10 work_complete_not_called 2", "11 work_complete_not_called 3")
	stopStable(t, second)
}
