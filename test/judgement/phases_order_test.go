package judgement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
)

// phasesSeen are the phases of a run as its states show them, version by version; one
// that stays is named once. A pause is "IDLE behind" the phase.
func phasesSeen(s *story) []string {
	s.t.Helper()
	var all []string
	last := hooksVersion(s)
	for v := uint64(1); v <= last; v++ {
		got, err := gateway.GetState(s.t.Context(), &harnessv1.GetStateRequest{RunId: s.id, Version: v})
		if err != nil {
			s.t.Fatal(err)
		}
		name := strings.TrimPrefix(got.GetSnapshot().GetPhase().String(), "PHASE_")
		if p := got.GetSnapshot().GetPausedPhase(); p != harnessv1.Phase_PHASE_UNSPECIFIED {
			name += " behind " + strings.TrimPrefix(p.String(), "PHASE_")
		}
		if len(all) == 0 || all[len(all)-1] != name {
			all = append(all, name)
		}
	}
	return all
}

// TestPhasesOfARunThatWaitsAndPauses: EXECUTING and REFLECTING take turns, what is
// answered from outside waits in AWAITING_TOOL, a budget pauses it in IDLE, and DONE is
// the only way out.
func TestPhasesOfARunThatWaitsAndPauses(t *testing.T) {
	t.Parallel()
	s := play(t, hooksScript(calls(hooksWrite("a.txt", "A")), calls(call("ask_client", args{}))), phasesClientTool, phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(2)}))
	s.want("PARKED client_tool")
	if len(s.names("session.pause")) != 0 {
		t.Errorf("waiting for an answer is told as a pause: %v", s.names())
	}
	s.hooksGive("call_2_0", "an answer", false)
	s = s.restAfter(hooksVersion(s))
	s.want("PARKED budget_exceeded:turns")
	s = s.hooksResume(&harnessv1.Budgets{Turns: phasesNumber(9)})
	s.want("DONE agent_done accepted")
	got := phasesSeen(s)
	for len(got) > 0 && (got[0] == "UNSPECIFIED" || got[0] == "IDLE") {
		got = got[1:] // before repair has begun
	}
	hooksSame(t, "phases", got,
		"EXECUTING", "REFLECTING", "EXECUTING", "AWAITING_TOOL", "REFLECTING", "EXECUTING", "IDLE behind EXECUTING", "EXECUTING", "REFLECTING", "DONE")
}

// TestPhasesATurnWaitsForAnAnswerFromOutside: the call is announced, the step ends
// waiting, the run rests without a pause; on the answer come its result and the hook,
// and the turn counts once.
func TestPhasesATurnWaitsForAnAnswerFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failed bool
		trail  []string
	}{
		"result": {false, []string{"tool.result", "s-after_tool_call continue", "s-before_step continue", "step.start", "model.response"}},
		"error":  {true, []string{"tool.error", "s-on_error continue", "s-after_tool_call continue", "s-before_step continue", "step.start", "model.response"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := play(t, hooksScript(calls(call("ask_client", args{}))), phasesClientTool, hooksSet(service.at("s", hooksBeforeStep, hooksBeforeCall, hooksAfterCall, hooksOnError, hooksOnPause)...))
			s.want("PARKED client_tool")
			hooksSame(t, "up to the rest", hooksBetween(t, hooksTrail(s), "plan.commit", "step.end"),
				"plan.commit", "s-before_step continue", "step.start", "model.response", "s-before_tool_call continue", "tool.call", "step.end")
			if end := s.Events[len(s.Events)-1].GetStepEnd(); end.GetOutcome() != "awaiting_tool" {
				t.Errorf("the step ends %v", end)
			}
			if state := s.state(); state.GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || state.GetTurnCount() != 0 {
				t.Errorf("it rests in %s after %d turns", state.GetPhase(), state.GetTurnCount())
			}
			s.hooksGive("call_1_0", "what the client says", c.failed)
			end := s.restAfter(hooksVersion(s))
			end.want("DONE agent_done accepted")
			hooksSame(t, "behind the answer", hooksTrail(end)[:len(c.trail)], c.trail...)
			for _, e := range end.Events {
				if id := e.GetToolResult().GetCallId() + e.GetToolError().GetCallId(); id == "call_1_0" && e.GetTurnNumber() != 1 {
					t.Errorf("the answer belongs to turn %d", e.GetTurnNumber())
				}
			}
			if end.Result.GetTurnCount() != 2 || len(service.of(hooksOnPause)) != 0 {
				t.Errorf("%d turns; on_pause was called %d times", end.Result.GetTurnCount(), len(service.of(hooksOnPause)))
			}
			hooksTold(t, end, 1, "what the client says")
		})
	}
}

// TestPhasesAnApprovedCallRunsInItsTurn: before_step is not asked again for the turn that
// goes on, and max_turns waits for it.
func TestPhasesAnApprovedCallRunsInItsTurn(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := play(t, hooksScript(calls(hooksWrite("a.txt", "A"))), hooksMaxTurns(1), hooksSet(service.at("s", hooksBeforeStep, hooksAfterStep, hooksBeforeCall, hooksAfterCall)...),
		func(spec *harnessv1.RunSpec) {
			spec.Config.Tools = nil
			spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "write_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}
		})
	s.want("PARKED approval")
	if state := s.state(); state.GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || len(s.names("session.pause")) != 0 {
		t.Errorf("it rests in %s; %v", state.GetPhase(), s.names())
	}
	s.hooksApprove("call_1_0", harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, "")
	end := s.restAfter(hooksVersion(s))
	end.want("DONE max_turns")
	hooksSame(t, "behind the approval", hooksTrail(end),
		"approval.answered", "step.start", "tool.result", "s-after_tool_call continue", "step.end", "s-after_step continue", "session.complete")
	if len(service.of(hooksBeforeStep)) != 1 || len(service.of(hooksBeforeCall)) != 1 || !end.exists("a.txt") || end.Result.GetTurnCount() != 1 {
		t.Errorf("before_step was called %d times, before_tool_call %d; %d turns", len(service.of(hooksBeforeStep)), len(service.of(hooksBeforeCall)), end.Result.GetTurnCount())
	}
}

// TestPhasesEachSegmentBeginsAndEndsOnce: a message to a run that has ended begins
// another, with a start, a plan and an end of its own, and the end's reason is told.
func TestPhasesEachSegmentBeginsAndEndsOnce(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	m := replies(done(), calls(call("work_complete", args{"summary": "done again"})))
	s := play(t, m, hooksSet(service.at("s", hooksSessionStart, hooksSessionEnd, hooksOnComplete)...))
	s.want("DONE agent_done accepted")
	s.hooksSay("And now the second task.")
	second := s.restAfter(hooksVersion(s))
	second.want("DONE agent_done accepted")
	hooksSame(t, "the second segment", second.names("session.start", "plan.draft", "plan.commit", "step.start", "step.end", "session.complete"),
		"session.start", "plan.draft", "plan.commit", "step.start", "step.end", "session.complete")
	var segments []string
	for _, h := range slices.Concat(service.of(hooksSessionStart), service.of(hooksSessionEnd), service.of(hooksOnComplete)) {
		segments = append(segments, fmt.Sprint(hooksTopic(h.GetTopic()), " ", h.payload["segment"], " ", h.payload["goal"], " ", h.payload["kind"]))
	}
	hooksSame(t, "hooks of the segments", segments,
		"session_start 1 Do the task. <nil>", "session_start 2 And now the second task. <nil>",
		"session_end <nil> <nil> agent_done", "session_end <nil> <nil> agent_done",
		"on_complete <nil> <nil> agent_done", "on_complete <nil> <nil> agent_done")
}

// TestPhasesEveryEndIsToldOnceWithItsReason: done, out of turns, failed, stalled and
// cancelled runs have one session.complete, and session_end hears status and kind.
func TestPhasesEveryEndIsToldOnceWithItsReason(t *testing.T) {
	t.Parallel()
	same := calls(hooksRead("missing.txt"))
	for name, c := range map[string]struct {
		model   model
		edit    func(*harnessv1.RunSpec)
		verdict string
	}{
		"done":      {hooksScript(), func(*harnessv1.RunSpec) {}, "DONE agent_done accepted"},
		"max-turns": {hooksScript(same), hooksMaxTurns(1), "DONE max_turns"},
		"doom-loop": {replies(same), func(*harnessv1.RunSpec) {}, "STALLED doom_loop"},
		"provider":  {hooksScript(), func(spec *harnessv1.RunSpec) { spec.Agent.Model = "openai:no-such-model" }, "FAILED provider_error"},
		"cancelled": {hooksScript(same), phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(1)}), "CANCELLED cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := play(t, c.model, c.edit, hooksSet(service.at("s", hooksSessionStart, hooksOnError, hooksOnComplete, hooksSessionEnd)...))
			if name == "cancelled" {
				s.want("PARKED budget_exceeded:turns")
				if _, err := gateway.CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: s.id, Reason: "no money left"}); err != nil {
					t.Fatal(err)
				}
				s = s.restAfter(0)
				if !strings.Contains(s.Result.GetReason().GetMessage(), "no money left") {
					t.Errorf("it ended because %q", s.Result.GetReason().GetMessage())
				}
			}
			s.want(c.verdict)
			hooksSame(t, "starts and ends", s.names("session.start", "session.complete"), "session.start", "session.complete")
			service.one(t, hooksSessionStart)
			for _, topic := range []harnessv1.HookTopic{hooksOnComplete, hooksSessionEnd} {
				h := service.one(t, topic)
				want := strings.Fields(c.verdict)
				if h.payload["status"] != want[0] || h.payload["kind"] != want[1] || h.payload["accepted"] != (len(want) == 3) || h.payload["message"] != s.Result.GetReason().GetMessage() {
					t.Errorf("%s is given %s", hooksTopic(topic), h.GetPayload())
				}
			}
			if name == "provider" {
				if h := service.one(t, hooksOnError); h.payload["call_id"] != nil || !strings.Contains(fmt.Sprint(h.payload["error"]), "no-such-model") {
					t.Errorf("on_error is given %s", h.GetPayload())
				}
			}
		})
	}
}

// TestPhasesEveryPauseIsTold: an interrupt and an outage of the provider are pauses, told
// by session.pause and to on_pause with their kind.
func TestPhasesEveryPauseIsTold(t *testing.T) {
	t.Parallel()
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, nil)
		r := start(t, hooksScript(calls(hooksShell("exec tail -f /dev/null"))), hooksSet(service.at("s", hooksOnPause)...))
		r.phasesWait("tool.call")
		if _, err := gateway.InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.id, Reason: "a person looks"}); err != nil {
			t.Fatal(err)
		}
		s := r.rest()
		s.want("PARKED interrupted")
		phasesPaused(t, s, service, "interrupted", "a person looks")
		end := s.hooksResume(nil)
		end.want("DONE agent_done accepted")
		phasesWhole(t, end.rest())
	})
	t.Run("outage", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, nil)
		s := play(t, replies(modeltest.Reply{Status: 503, ErrorMessage: "overloaded"}, done()), hooksSet(service.at("s", hooksOnPause)...), func(spec *harnessv1.RunSpec) {
			spec.Config.Model = &harnessv1.ModelConfig{MaxTries: phasesNumber(1)}
		})
		s.want("PARKED provider_unavailable")
		phasesPaused(t, s, service, "provider_unavailable", "overloaded")
		if s.Result.GetTurnCount() != 0 || s.Result.GetWakeAt() == nil {
			t.Errorf("%d turns; it wakes at %v", s.Result.GetTurnCount(), s.Result.GetWakeAt())
		}
		end := s.hooksResume(nil)
		end.want("DONE agent_done accepted")
		if end.Result.GetTurnCount() != 1 {
			t.Errorf("%d turns", end.Result.GetTurnCount())
		}
	})
}

// phasesPaused fails the test unless a run came to rest as a pause, and on_pause heard.
func phasesPaused(t *testing.T, s *story, service *hooksService, kind, message string) {
	t.Helper()
	var pauses []string
	for _, e := range s.Events {
		if p := e.GetSessionPause(); p != nil {
			pauses = append(pauses, p.GetReason().GetKind())
		}
	}
	hooksSame(t, "pauses", pauses, kind)
	if h := service.one(t, hooksOnPause); h.payload["kind"] != kind || !strings.Contains(fmt.Sprint(h.payload["message"]), message) {
		t.Errorf("on_pause is given %s", h.GetPayload())
	}
	if state := s.state(); state.GetPhase() != harnessv1.Phase_PHASE_IDLE || state.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		t.Errorf("it rests in %s behind %s", state.GetPhase(), state.GetPausedPhase())
	}
}

// phasesWait waits until a run has told of something.
func (r *run) phasesWait(name string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	stream, err := gateway.WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.id, NoDeltas: true})
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			r.t.Fatalf("watch for %s: %v", name, err)
		}
		if e := m.GetUpdate().GetEvent(); e != nil && eventjson.Type(e) == name {
			return
		}
	}
}
