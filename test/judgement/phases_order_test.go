package judgement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// phasesSeen are the phases of a run as its states show them, version by version; one
// that stays is named once. A pause is "IDLE, paused in" and the phase.
func phasesSeen(s *live.Transcript) []string {
	s.T.Helper()
	var all []string
	last := hooksVersion(s)
	for v := uint64(1); v <= last; v++ {
		got, err := live.Gateway(s.T).GetState(s.T.Context(), &harnessv1.GetStateRequest{RunId: s.ID, Version: v})
		if err != nil {
			s.T.Fatal(err)
		}
		name := strings.TrimPrefix(got.GetSnapshot().GetPhase().String(), "PHASE_")
		if p := got.GetSnapshot().GetPausedPhase(); p != harnessv1.Phase_PHASE_UNSPECIFIED {
			name += ", paused in " + strings.TrimPrefix(p.String(), "PHASE_")
		}
		if len(all) == 0 || all[len(all)-1] != name {
			all = append(all, name)
		}
	}
	return all
}

// TestPhasesOfARunThatWaitsAndPauses: EXECUTING and REFLECTING alternate, a call
// that needs an answer waits in AWAITING_TOOL, a budget pauses it in IDLE, and DONE is
// the only way out.
func TestPhasesOfARunThatWaitsAndPauses(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A")), live.Calls(live.Call("ask_client", live.Args{}))), phasesClientTool, phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(2)}))
	s.Want("PARKED client_tool")
	if len(s.Names("session.pause")) != 0 {
		t.Errorf("waiting for an answer is reported as a pause: %v", s.Names())
	}
	hooksGive(s.Run, "call_2_0", "an answer", false)
	s = s.WaitAfter(hooksVersion(s))
	s.Want("PARKED budget_exceeded:turns")
	s = hooksResume(s, &harnessv1.Budgets{Turns: phasesNumber(9)})
	s.Want("DONE agent_done accepted")
	got := phasesSeen(s)
	for len(got) > 0 && (got[0] == "UNSPECIFIED" || got[0] == "IDLE") {
		got = got[1:] // before repair has begun
	}
	hooksSame(t, "phases", got,
		"EXECUTING", "REFLECTING", "EXECUTING", "AWAITING_TOOL", "REFLECTING", "EXECUTING", "IDLE, paused in EXECUTING", "EXECUTING", "REFLECTING", "DONE")
}

// TestPhasesATurnWaitsForAnAnswerFromOutside: the call is announced, the step ends
// waiting, the run parks without a pause; after the answer come its result and the hook, the
// turn continues and ends with after_step, and it counts once.
func TestPhasesATurnWaitsForAnAnswerFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failed bool
		trail  []string
	}{
		"result": {false, []string{"tool.result", "s-after_tool_call continue", "step.start", "step.end", "s-after_step continue", "s-before_step continue", "step.start", "model.response"}},
		"error":  {true, []string{"tool.error", "s-on_error continue", "s-after_tool_call continue", "step.start", "step.end", "s-after_step continue", "s-before_step continue", "step.start", "model.response"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(live.Calls(live.Call("ask_client", live.Args{}))), phasesClientTool, hooksSet(service.at("s", hooksBeforeStep, hooksAfterStep, hooksBeforeCall, hooksAfterCall, hooksOnError, hooksOnPause)...))
			s.Want("PARKED client_tool")
			hooksSame(t, "up to the rest", hooksBetween(t, hooksTrail(s), "plan.commit", "step.end"),
				"plan.commit", "s-before_step continue", "step.start", "model.response", "s-before_tool_call continue", "tool.call", "step.end")
			if end := s.Events[len(s.Events)-1].GetStepEnd(); end.GetOutcome() != "awaiting_tool" {
				t.Errorf("the step ends %v", end)
			}
			if state := s.State(); state.GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || state.GetTurnCount() != 0 {
				t.Errorf("phase = %s after %d turns", state.GetPhase(), state.GetTurnCount())
			}
			hooksGive(s.Run, "call_1_0", "what the client says", c.failed)
			end := s.WaitAfter(hooksVersion(s))
			end.Want("DONE agent_done accepted")
			hooksSame(t, "after the answer", hooksTrail(end)[:len(c.trail)], c.trail...)
			for _, e := range end.Events {
				if id := e.GetToolResult().GetCallId() + e.GetToolError().GetCallId(); id == "call_1_0" && e.GetTurnNumber() != 1 {
					t.Errorf("the answer belongs to turn %d", e.GetTurnNumber())
				}
			}
			if end.Result.GetTurnCount() != 2 || len(service.of(hooksOnPause)) != 0 {
				t.Errorf("%d turns; on_pause was called %d times", end.Result.GetTurnCount(), len(service.of(hooksOnPause)))
			}
			if after := service.of(hooksAfterStep)[0]; after.GetTurnNumber() != 1 || after.payload["outcome"] != "completed" {
				t.Errorf("after_step is given %s in turn %d", after.GetPayload(), after.GetTurnNumber())
			}
			hooksTold(t, end, 1, "what the client says")
		})
	}
}

// TestPhasesAnApprovedCallRunsInItsTurn: before_step does not fire again for the turn that
// continues, and max_turns waits for it.
func TestPhasesAnApprovedCallRunsInItsTurn(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksMaxTurns(1), hooksSet(service.at("s", hooksBeforeStep, hooksAfterStep, hooksBeforeCall, hooksAfterCall)...),
		func(spec *harnessv1.RunSpec) {
			spec.Config.Tools = nil
			spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "write_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}
		})
	s.Want("PARKED approval")
	if state := s.State(); state.GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL || len(s.Names("session.pause")) != 0 {
		t.Errorf("phase = %s; %v", state.GetPhase(), s.Names())
	}
	hooksApprove(s.Run, "call_1_0", harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, "")
	end := s.WaitAfter(hooksVersion(s))
	end.Want("DONE max_turns")
	hooksSame(t, "after the approval", hooksTrail(end),
		"approval.answered", "step.start", "tool.result", "s-after_tool_call continue", "step.end", "s-after_step continue", "session.complete")
	if len(service.of(hooksBeforeStep)) != 1 || len(service.of(hooksBeforeCall)) != 1 || !end.Exists("a.txt") || end.Result.GetTurnCount() != 1 {
		t.Errorf("before_step was called %d times, before_tool_call %d; %d turns", len(service.of(hooksBeforeStep)), len(service.of(hooksBeforeCall)), end.Result.GetTurnCount())
	}
}

// TestPhasesEachSegmentBeginsAndEndsOnce: a message to a run that has ended begins
// another, with a separate start, plan and end, and the reason of the end is reported.
func TestPhasesEachSegmentBeginsAndEndsOnce(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	m := live.Replies(live.Done(), live.Calls(live.Call("work_complete", live.Args{"summary": "done again"})))
	s := live.Play(t, m, hooksSet(service.at("s", hooksSessionStart, hooksSessionEnd, hooksOnComplete)...))
	s.Want("DONE agent_done accepted")
	hooksSay(s.Run, "And now the second task.")
	second := s.WaitAfter(hooksVersion(s))
	second.Want("DONE agent_done accepted")
	hooksSame(t, "the second segment", second.Names("session.start", "plan.draft", "plan.commit", "step.start", "step.end", "session.complete"),
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

// TestPhasesEveryEndIsReportedOnceWithItsReason: done, out of turns, failed, stalled and
// cancelled runs have one session.complete, and session_end hears status and kind.
func TestPhasesEveryEndIsReportedOnceWithItsReason(t *testing.T) {
	t.Parallel()
	same := live.Calls(hooksRead("missing.txt"))
	for name, c := range map[string]struct {
		model   live.Model
		edit    func(*harnessv1.RunSpec)
		verdict string
	}{
		"done":      {hooksScript(), func(*harnessv1.RunSpec) {}, "DONE agent_done accepted"},
		"max-turns": {hooksScript(same), hooksMaxTurns(1), "DONE max_turns"},
		"doom-loop": {live.Replies(same), func(*harnessv1.RunSpec) {}, "STALLED doom_loop"},
		"provider":  {hooksScript(), func(spec *harnessv1.RunSpec) { spec.Agent.Model = "openai:no-such-model" }, "FAILED provider_error"},
		"cancelled": {hooksScript(same), phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(1)}), "CANCELLED cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, c.model, c.edit, hooksSet(service.at("s", hooksSessionStart, hooksOnError, hooksOnComplete, hooksSessionEnd)...))
			if name == "cancelled" {
				s.Want("PARKED budget_exceeded:turns")
				if _, err := live.Gateway(t).CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: s.ID, Reason: "no money left"}); err != nil {
					t.Fatal(err)
				}
				s = s.WaitAfter(0)
				if !strings.Contains(s.Result.GetReason().GetMessage(), "no money left") {
					t.Errorf("it ended because %q", s.Result.GetReason().GetMessage())
				}
			}
			s.Want(c.verdict)
			hooksSame(t, "starts and ends", s.Names("session.start", "session.complete"), "session.start", "session.complete")
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

// TestPhasesEveryPauseIsReported: an interrupt and an outage of the provider are pauses, told
// by session.pause and to on_pause with their kind.
func TestPhasesEveryPauseIsReported(t *testing.T) {
	t.Parallel()
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, nil)
		r := live.Start(t, hooksScript(live.Calls(hooksShell("exec tail -f /dev/null"))), hooksSet(service.at("s", hooksOnPause)...))
		phasesWait(r, "tool.call")
		if _, err := live.Gateway(t).InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.ID, Reason: "a person looks"}); err != nil {
			t.Fatal(err)
		}
		s := r.Wait()
		s.Want("PARKED interrupted")
		phasesPaused(t, s, service, "interrupted", "a person looks")
		end := hooksResume(s, nil)
		end.Want("DONE agent_done accepted")
		phasesWhole(t, end.Wait())
	})
	t.Run("outage", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, nil)
		s := live.Play(t, live.Replies(modeltest.Reply{Status: 503, ErrorMessage: "overloaded"}, live.Done()), hooksSet(service.at("s", hooksOnPause)...), func(spec *harnessv1.RunSpec) {
			spec.Config.Model = &harnessv1.ModelConfig{MaxTries: phasesNumber(1)}
		})
		s.Want("PARKED provider_unavailable")
		phasesPaused(t, s, service, "provider_unavailable", "overloaded")
		if s.Result.GetTurnCount() != 0 || s.Result.GetWakeAt() == nil {
			t.Errorf("%d turns; it wakes at %v", s.Result.GetTurnCount(), s.Result.GetWakeAt())
		}
		end := hooksResume(s, nil)
		end.Want("DONE agent_done accepted")
		if end.Result.GetTurnCount() != 1 {
			t.Errorf("%d turns", end.Result.GetTurnCount())
		}
	})
}

// phasesPaused fails the test unless a run parked as a pause and on_pause fired.
func phasesPaused(t *testing.T, s *live.Transcript, service *hooksService, kind, message string) {
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
	if state := s.State(); state.GetPhase() != harnessv1.Phase_PHASE_IDLE || state.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		t.Errorf("phase = %s, paused in %s", state.GetPhase(), state.GetPausedPhase())
	}
}

// phasesWait waits until a run has emitted an event.
func phasesWait(r *live.Run, name string) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), live.Limit)
	defer cancel()
	stream, err := live.Gateway(r.T).WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID, NoDeltas: true})
	if err != nil {
		r.T.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			r.T.Fatalf("watch for %s: %v", name, err)
		}
		if e := m.GetUpdate().GetEvent(); e != nil && eventjson.Type(e) == name {
			return
		}
	}
}
