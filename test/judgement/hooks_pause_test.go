package judgement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestHooksAskForAReviewOfACall: the other calls of the turn run, the run parks
// as a pause, and a resume, an approval, a denial or an answer continues the
// same turn. An answer that fails the call fires on_error.
func TestHooksAskForAReviewOfACall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		let   func(s *live.Transcript)
		trail []string
		ran   bool
		reads string
	}{
		"resume": {
			func(s *live.Transcript) {
				if _, err := live.Gateway(t).ResumeRun(s.T.Context(), &harnessv1.ResumeRunRequest{RunId: s.ID}); err != nil {
					s.T.Fatal(err)
				}
			},
			[]string{"session.resume", "step.start", "tool.result", "s-after_tool_call continue", "step.end"}, true, "Wrote",
		},
		"approval": {
			func(s *live.Transcript) {
				hooksApprove(s.Run, "call_1_1", harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, "")
			},
			[]string{"approval.answered", "session.resume", "step.start", "tool.result", "s-after_tool_call continue", "step.end"}, true, "Wrote",
		},
		"refusal": {
			func(s *live.Transcript) {
				hooksApprove(s.Run, "call_1_1", harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, "the reviewer says no")
			},
			[]string{"approval.answered", "tool.denied", "session.resume"}, false, "the reviewer says no",
		},
		"error": {
			func(s *live.Transcript) { hooksGive(s.Run, "call_1_1", "the reviewer found a fault", true) },
			[]string{"tool.error", "s-on_error continue", "s-after_tool_call continue", "session.resume"}, false, "the reviewer found a fault",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("one.txt", "1"), hooksWrite("risky.txt", "2"), hooksWrite("three.txt", "3"))),
				hooksSet(hooksRule(hooksBeforeCall, "args.path == 'risky.txt'", hooksPause, "look at this first")),
				hooksSet(service.at("s", hooksOnError, hooksAfterCall, hooksOnPause)...))
			s.Want("PARKED review")
			if s.Exists("risky.txt") || !s.Exists("one.txt") || !s.Exists("three.txt") {
				t.Errorf("risky.txt is there: %v, one.txt: %v, three.txt: %v", s.Exists("risky.txt"), s.Exists("one.txt"), s.Exists("three.txt"))
			}
			state := s.State()
			if state.GetPhase() != harnessv1.Phase_PHASE_IDLE || state.GetPausedPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || state.GetTurnCount() != 0 {
				t.Errorf("phase = %s, paused in %s, after %d turns", state.GetPhase(), state.GetPausedPhase(), state.GetTurnCount())
			}
			if p := s.Result.GetPending(); len(p) != 1 || p[0].GetCallId() != "call_1_1" || p[0].GetKind() != "review" || !strings.Contains(p[0].GetWhy(), "look at this first") {
				t.Errorf("it waits for %v", p)
			}
			trail := hooksTrail(s)
			hooksSame(t, "the park", trail[len(trail)-4:], "approval.requested", "step.end", "session.pause", "s-on_pause continue")
			if h := service.one(t, hooksOnPause); h.payload["kind"] != "review" || !strings.Contains(fmt.Sprint(h.payload["message"]), "look at this first") {
				t.Errorf("on_pause is given %s", h.GetPayload())
			}

			c.let(s)
			end := s.WaitAfter(hooksVersion(s))
			end.Want("DONE agent_done accepted")
			hooksSame(t, "after the answer", hooksTrail(end)[:len(c.trail)], c.trail...)
			for _, e := range end.Events {
				if e.GetStepStart().GetResumed() && e.GetTurnNumber() != 1 {
					t.Errorf("it continues in turn %d", e.GetTurnNumber())
				}
			}
			if end.Exists("risky.txt") != c.ran {
				t.Errorf("the call ran: %v, want %v", end.Exists("risky.txt"), c.ran)
			}
			if got := hooksResult(end, "call_1_1"); !strings.Contains(got, c.reads) {
				t.Errorf("the model reads %q, want %q", got, c.reads)
			}
			if end.Result.GetTurnCount() != 2 || len(end.Requests) != 2 {
				t.Errorf("%d turns, %d requests", end.Result.GetTurnCount(), len(end.Requests))
			}
		})
	}
}

// TestHooksReviewDoesNotAcceptAResult: a result without an error is refused,
// and the run stays parked.
func TestHooksReviewDoesNotAcceptAResult(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksBeforeCall, "tool == 'write_file'", hooksPause, "look")))
	s.Want("PARKED review")
	_, err := live.Gateway(t).SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: s.ID, Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: "call_1_0", Result: content.Inline("done by hand")},
	}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "is_error") {
		t.Errorf("the answer got %v", err)
	}
	s.Wait().Want("PARKED review")
}

// TestHooksReviewRunsTheReplacement: a call that one hook changed and another had
// reviewed is shown, and runs, as it was changed.
func TestHooksReviewRunsTheReplacement(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
		return hooksInstead("arguments", live.Args{"path": "changed.txt", "content": "changed"}), nil
	})
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))),
		hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Grpc: service.addr, Tools: []string{"write_file"}},
			hooksRule(hooksBeforeCall, "args.path == 'changed.txt'", hooksPause, "look")))
	s.Want("PARKED review")
	if got := s.Result.GetPending()[0].GetArguments().GetInline(); !strings.Contains(got, "changed.txt") {
		t.Errorf("the reviewer is shown %s", got)
	}
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
	if end.Exists("a.txt") || !end.Exists("changed.txt") {
		t.Error("what ran is not what was reviewed")
	}
}

// TestHooksReviewWithOtherAnswers: a turn that waits for a review and for a client is a
// pause, and continues once both answers are there, in any order.
func TestHooksReviewWithOtherAnswers(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"client", "review"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, hooksScript(live.Calls(live.Call("ask_client", live.Args{}), hooksWrite("risky.txt", "2"))), phasesClientTool,
				hooksSet(hooksRule(hooksBeforeCall, "tool == 'write_file'", hooksPause, "look at this first")))
			s.Want("PARKED review")
			if len(s.Result.GetPending()) != 2 || len(s.Names("session.pause")) != 1 {
				t.Errorf("it waits for %v; %v", s.Result.GetPending(), s.Names())
			}
			if first == "client" {
				hooksGive(s.Run, "call_1_0", "an answer", false)
				s = s.WaitAfter(hooksVersion(s))
				s.Want("PARKED review")
				s = hooksResume(s, nil)
			} else {
				s = hooksResume(s, nil)
				s.Want("PARKED client_tool")
				hooksGive(s.Run, "call_1_0", "an answer", false)
				s = s.WaitAfter(hooksVersion(s))
			}
			s.Want("DONE agent_done accepted")
			if hooksResult(s, "call_1_0") != "an answer" || !s.Exists("risky.txt") {
				t.Errorf("the client's result is %q, risky.txt is there: %v", hooksResult(s, "call_1_0"), s.Exists("risky.txt"))
			}
		})
	}
}

// TestHooksAskForAReviewElsewhere: the run parks with session.pause and on_pause,
// and a resume continues it to its end.
func TestHooksAskForAReviewElsewhere(t *testing.T) {
	t.Parallel()
	for topic, c := range map[harnessv1.HookTopic]struct {
		cel      string
		requests int
		wrote    bool
	}{
		hooksBeforePlan: {"true", 0, false}, hooksAfterPlan: {"true", 0, false}, hooksBeforeStep: {"turn == 1", 0, false},
		hooksAfterStep: {"turn == 1", 1, true}, hooksAfterCall: {"turn == 1", 1, true}, hooksOnError: {"turn == 1", 1, true},
	} {
		t.Run(hooksTopic(topic), func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))),
				hooksSet(hooksRule(topic, c.cel, hooksPause, "somebody should look")), hooksSet(service.at("s", hooksOnPause)...))
			s.Want("PARKED review")
			if len(s.Requests) != c.requests || s.Exists("a.txt") != c.wrote || !strings.Contains(s.Result.GetReason().GetMessage(), "somebody should look") {
				t.Errorf("%d requests, a.txt is there: %v, because %q", len(s.Requests), s.Exists("a.txt"), s.Result.GetReason().GetMessage())
			}
			if trail := hooksTrail(s); len(s.Names("session.pause")) != 1 || trail[len(trail)-1] != "s-on_pause continue" {
				t.Errorf("it parked with %v", trail)
			}
			if state := s.State(); state.GetPhase() != harnessv1.Phase_PHASE_IDLE || state.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
				t.Errorf("phase = %s, paused in %s", state.GetPhase(), state.GetPausedPhase())
			}
			end := hooksResume(s, nil)
			end.Want("DONE agent_done accepted")
			if got := end.Names("session.resume", "session.pause"); len(got) != 1 || got[0] != "session.resume" {
				t.Errorf("after the resume: %v", got)
			}
			if end.Result.GetTurnCount() != 2 || len(end.Requests) != 2 || !end.Exists("a.txt") {
				t.Errorf("%d turns, %d requests", end.Result.GetTurnCount(), len(end.Requests))
			}
			hooksStable(t, end)
		})
	}
}

// TestHooksReviewOfTheStopEndsTheRunOnceItIsResumed: a hook that has every stop looked at
// does not keep the run from ending: the resume is the review.
func TestHooksReviewOfTheStopEndsTheRunOnceItIsResumed(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksAgentStop, "true", hooksPause, "look at the result")))
	s.Want("PARKED review")
	if len(s.Names("session.pause")) != 1 || len(s.Names("session.complete")) != 0 {
		t.Errorf("it parked with %v", s.Names())
	}
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
}

// TestHooksReviewAfterTheLastTurnKeepsItsEnd: an agent that was done when a hook asked
// for a review is done when the run is resumed.
func TestHooksReviewAfterTheLastTurnKeepsItsEnd(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksAfterStep, "turn == 2", hooksPause, "look at the turn")))
	s.Want("PARKED review")
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
	if len(end.Requests) != 2 {
		t.Errorf("requests = %d, want 2", len(end.Requests))
	}
}
