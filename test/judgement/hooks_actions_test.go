package judgement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestHooksFirstDenyWins: later subscribers are not called for the call.
func TestHooksFirstDenyWins(t *testing.T) {
	t.Parallel()
	deny := func(reason string) *hooksService {
		return hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return hooksVerdict(hooksDeny, reason), nil })
	}
	first, second, third := hooksServe(t, nil), deny("the second says no"), deny("the third says no")
	guard := func(id string, s *hooksService) *harnessv1.Hook {
		return &harnessv1.Hook{Id: id, Topic: hooksBeforeCall, Grpc: s.addr, Tools: []string{"write_file"}}
	}
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(guard("1", first), guard("2", second), guard("3", third)))
	s.Want("DONE agent_done accepted")
	if len(first.all()) != 1 || len(second.all()) != 1 || len(third.all()) != 0 {
		t.Errorf("they were called %d, %d and %d times", len(first.all()), len(second.all()), len(third.all()))
	}
	if got := hooksResult(s, "call_1_0"); !strings.Contains(got, "the second says no") || strings.Contains(got, "third") || s.Exists("a.txt") {
		t.Errorf("the model reads %q", got)
	}
}

// TestHooksFirstBlockWins: later subscribers of agent_stop are not called, and
// each blocks until what it asks for is there.
func TestHooksFirstBlockWins(t *testing.T) {
	t.Parallel()
	block := func(until uint32, reason string) *hooksService {
		return hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
			if h.GetTurnNumber() < until {
				return hooksVerdict(hooksBlock, reason), nil
			}
			return nil, nil
		})
	}
	first, second := block(2, "write the changelog"), block(3, "mend the parser")
	s := live.Play(t, hooksScript(), hooksSet(append(first.at("1", hooksAgentStop), second.at("2", hooksAgentStop)...)...))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 3 || len(first.all()) != 3 || len(second.all()) != 2 {
		t.Errorf("%d turns; they were called %d and %d times", s.Result.GetTurnCount(), len(first.all()), len(second.all()))
	}
	hooksTold(t, s, 1, "write the changelog")
	hooksTold(t, s, 2, "mend the parser")
	if strings.Contains(s.Text(1), "mend the parser") {
		t.Error("the second hook's reason is in the request after the first stop")
	}
	hooksStable(t, s)
}

// TestHooksEachSeesWhatTheOneBeforeItPutThere: arguments go through a service, an
// expression and another service, and the last form is what runs.
func TestHooksEachSeesWhatTheOneBeforeItPutThere(t *testing.T) {
	t.Parallel()
	longer := func(with string) hooksAnswer {
		return func(h hooksCall) (*harnessv1.HookVerdict, error) {
			a, _ := h.payload["arguments"].(live.Args)
			return hooksInstead("arguments", live.Args{"path": a["path"], "content": fmt.Sprint(a["content"]) + with}), nil
		}
	}
	seen := hooksRule(hooksBeforeCall, "args.content == 'AB'", hooksContinue, "")
	seen.Context = "The rule saw AB."
	one, two := hooksServe(t, longer("B")), hooksServe(t, longer("C"))
	guard := func(s *hooksService) *harnessv1.Hook {
		return &harnessv1.Hook{Topic: hooksBeforeCall, Grpc: s.addr, Tools: []string{"write_file"}}
	}
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A")), live.Calls(hooksRead("a.txt"))), hooksSet(guard(one), seen, guard(two)))
	s.Want("DONE agent_done accepted")
	if got := hooksResult(s, "call_2_0"); !strings.Contains(got, "ABC") {
		t.Errorf("the file holds %q, want ABC", got)
	}
	hooksTold(t, s, 1, "The rule saw AB.")
}

// TestHooksArgumentsAreCheckedLikeTheModels: arguments that a hook puts there and that
// the tool does not take fail the call, which has no effect.
func TestHooksArgumentsAreCheckedLikeTheModels(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
		return hooksInstead("arguments", live.Args{"where": "a.txt"}), nil
	})
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))),
		hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Grpc: service.addr, Tools: []string{"write_file"}}))
	s.Want("DONE agent_done accepted")
	if s.Exists("a.txt") || len(s.Names("tool.error")) != 1 {
		t.Errorf("the call ran: %v; %v", s.Exists("a.txt"), s.Names())
	}
	hooksTold(t, s, 1, "where")
}

// TestHooksReplaceThePlan: what before_plan puts there is drafted, what after_plan puts
// it returns is committed, and the model gets the final plan.
func TestHooksReplaceThePlan(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		return hooksInstead("plan", fmt.Sprint(h.payload["plan"])+"\nThen "+hooksTopic(h.GetTopic())+" adds a step."), nil
	})
	s := live.Play(t, hooksScript(), hooksSet(service.at("s", hooksBeforePlan, hooksAfterPlan)...))
	s.Want("DONE agent_done accepted")
	draft := "Do the task.\nThen before_plan adds a step."
	commit := draft + "\nThen after_plan adds a step."
	hooksSame(t, "plans", phasesPlans(s), "draft "+draft, "commit "+commit)
	hooksTold(t, s, 0, commit)
}

// TestHooksReplaceAndAddToResults: the model reads the result that the hook put there,
// of a tool, of a client tool and of a failed call, and its additional context;
// the original result is not used.
func TestHooksReplaceAndAddToResults(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		if h.payload["tool"] == "work_complete" {
			return nil, nil
		}
		v := hooksInstead("result", "redacted result of "+fmt.Sprint(h.payload["call_id"]))
		v.Context = "Secrets are taken out of " + fmt.Sprint(h.payload["call_id"]) + "."
		return v, nil
	})
	s := live.Play(t, hooksScript(live.Calls(hooksRead("key.txt"), hooksRead("secret-missing.txt"), live.Call("ask_client", live.Args{}))),
		hooksFile(t, "key.txt", "secret-in-file"), hooksSet(service.at("s", hooksAfterCall)...), phasesClientTool)
	s.Want("PARKED client_tool")
	hooksGive(s.Run, "call_1_2", "secret-of-the-client", false)
	s = s.WaitAfter(hooksVersion(s))
	s.Want("DONE agent_done accepted")
	for _, id := range []string{"call_1_0", "call_1_1", "call_1_2"} {
		if got := hooksResult(s, id); got != "redacted result of "+id {
			t.Errorf("the result of %s is %q", id, got)
		}
		hooksTold(t, s, 1, "Secrets are taken out of "+id+".")
	}
	for _, secret := range []string{"secret-in-file", "secret-of-the-client"} {
		if strings.Contains(s.Text(1), secret) {
			t.Errorf("the model reads %s", secret)
		}
	}
	all := s.Wait()
	for _, e := range all.Events {
		if text := e.String(); strings.Contains(text, "secret-in-file") || strings.Contains(text, "secret-of-the-client") {
			t.Errorf("watchers read what was redacted: %.300s", text)
		}
	}
	hooksStable(t, all)
}

// TestHooksTellTheModelFromEveryTopicThatIsHeard: a context is in the model's next
// request, and stays where it was said.
func TestHooksTellTheModelFromEveryTopicThatIsHeard(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		v := hooksVerdict(hooksContinue, "")
		if h.GetTopic() == hooksAgentStop && h.GetTurnNumber() == 2 {
			v = hooksVerdict(hooksBlock, "once more")
		}
		v.Context = fmt.Sprintf("Said by %s in turn %d.", hooksTopic(h.GetTopic()), h.GetTurnNumber())
		return v, nil
	})
	s := live.Play(t, hooksScript(live.Calls(hooksRead("missing.txt"))), hooksSet(service.at("s",
		hooksSessionStart, hooksBeforePlan, hooksAfterPlan, hooksBeforeStep, hooksBeforeCall, hooksOnError, hooksAfterCall, hooksAfterStep, hooksAgentStop)...))
	s.Want("DONE agent_done accepted")
	for _, topic := range []string{"session_start in turn 0", "before_plan in turn 0", "after_plan in turn 0", "before_step in turn 1"} {
		hooksTold(t, s, 0, "Said by "+topic+".")
	}
	for _, topic := range []string{"before_tool_call in turn 1", "on_error in turn 1", "after_tool_call in turn 1", "after_step in turn 1", "before_step in turn 2"} {
		hooksTold(t, s, 1, "Said by "+topic+".")
	}
	for _, topic := range []string{"before_tool_call in turn 2", "after_tool_call in turn 2", "after_step in turn 2", "agent_stop in turn 2", "before_step in turn 3"} {
		hooksTold(t, s, 2, "Said by "+topic+".")
	}
	hooksTold(t, s, 2, "once more")
	hooksStable(t, s)
}

// TestHooksAbortACallAndTheRunContinues: before a tool call an abort is an error of that
// call alone, told to on_error; the other calls of the turn run.
func TestHooksAbortACallAndTheRunContinues(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("bad.txt", "1"), hooksWrite("good.txt", "2"))),
		hooksSet(hooksRule(hooksBeforeCall, "args.path == 'bad.txt'", hooksAbort, "not this one")), hooksSet(service.at("s", hooksOnError, hooksAfterCall)...))
	s.Want("DONE agent_done accepted")
	if s.Exists("bad.txt") || !s.Exists("good.txt") {
		t.Errorf("bad.txt is there: %v, good.txt: %v", s.Exists("bad.txt"), s.Exists("good.txt"))
	}
	hooksSame(t, "the call that was broken off", hooksBetween(t, hooksTrail(s), "before_tool_call-1 abort", "s-after_tool_call continue"),
		"before_tool_call-1 abort", "tool.call", "tool.error", "s-on_error continue", "tool.call", "tool.result", "s-after_tool_call continue")
	if h := service.one(t, hooksOnError); h.payload["call_id"] != "call_1_0" || !strings.Contains(fmt.Sprint(h.payload["error"]), "not this one") {
		t.Errorf("on_error is given %s", h.GetPayload())
	}
	hooksTold(t, s, 1, "not this one")
}

// TestHooksAbortElsewhereEndsTheTurnWithTheError: the run fails with the hook's reason,
// and its end is reported once, also to on_error, on_complete and session_end.
func TestHooksAbortElsewhereEndsTheTurnWithTheError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic    harnessv1.HookTopic
		requests int
		steps    int
		wrote    bool
	}{
		{hooksBeforePlan, 0, 0, false}, {hooksAfterPlan, 0, 0, false}, {hooksBeforeStep, 0, 1, false},
		{hooksAfterStep, 1, 1, true}, {hooksAfterCall, 1, 1, true}, {hooksOnError, 1, 1, true}, {hooksAgentStop, 2, 2, true},
	} {
		t.Run(hooksTopic(c.topic), func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))),
				hooksSet(service.at("s", hooksOnError, hooksOnComplete, hooksSessionEnd)...), hooksSet(hooksRule(c.topic, "true", hooksAbort, "the guard breaks it off")))
			s.Want("FAILED failed")
			if !strings.Contains(s.Result.GetReason().GetMessage(), "the guard breaks it off") {
				t.Errorf("it failed because %q", s.Result.GetReason().GetMessage())
			}
			if len(s.Requests) != c.requests || len(s.Names("step.start")) != c.steps || len(s.Names("step.end")) != c.steps || s.Exists("a.txt") != c.wrote {
				t.Errorf("%d requests, steps %v, a.txt is there: %v", len(s.Requests), s.Names("step.start", "step.end"), s.Exists("a.txt"))
			}
			for _, topic := range []harnessv1.HookTopic{hooksOnComplete, hooksSessionEnd} {
				if h := service.one(t, topic); h.payload["status"] != "FAILED" || h.payload["accepted"] != false || !strings.Contains(fmt.Sprint(h.payload["message"]), "the guard breaks it off") {
					t.Errorf("%s is given %s", hooksTopic(topic), h.GetPayload())
				}
			}
			told := service.of(hooksOnError)
			if len(told) == 0 || !strings.Contains(fmt.Sprint(told[len(told)-1].payload["error"]), "the guard breaks it off") {
				t.Errorf("on_error gets %v", told)
			}
			if n := len(s.Names("session.complete")); n != 1 {
				t.Errorf("%d ends", n)
			}
		})
	}
}

// TestHooksSkipTheNextTurn: one turn counts without a call of the model; from
// before_step that is the turn that was to begin. The one after it is as ever.
func TestHooksSkipTheNextTurn(t *testing.T) {
	t.Parallel()
	for topic, skipped := range map[harnessv1.HookTopic]uint32{
		hooksBeforePlan: 1, hooksAfterPlan: 1, hooksBeforeStep: 1, hooksAfterStep: 2, hooksBeforeCall: 2, hooksAfterCall: 2, hooksOnError: 2,
	} {
		t.Run(hooksTopic(topic), func(t *testing.T) {
			t.Parallel()
			cel := "turn <= 1"
			if topic == hooksAfterStep { // a turn that was passed over ends too
				cel = "turn == 1 && outcome == 'completed'"
			}
			h := hooksRule(topic, cel, hooksSkip, "nothing to do in this one")
			if topic == hooksBeforeCall || topic == hooksAfterCall {
				h.Tools = []string{"write_file"}
			}
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))), hooksSet(h))
			s.Want("DONE agent_done accepted")
			if s.Result.GetTurnCount() != 3 || len(s.Requests) != 2 {
				t.Errorf("%d turns, %d requests; want 3 and 2", s.Result.GetTurnCount(), len(s.Requests))
			}
			asked := map[uint32]int{}
			var steps []string
			for _, e := range s.Events {
				switch {
				case e.GetModelResponse() != nil:
					asked[e.GetTurnNumber()]++
				case e.GetStepStart() != nil:
					steps = append(steps, fmt.Sprint("start ", e.GetTurnNumber()))
				case e.GetStepEnd() != nil:
					steps = append(steps, fmt.Sprint("end ", e.GetTurnNumber()))
				}
			}
			if asked[skipped] != 0 || len(asked) != 2 {
				t.Errorf("the model answered in %v, want not in turn %d", asked, skipped)
			}
			hooksSame(t, "steps", steps, "start 1", "end 1", "start 2", "end 2", "start 3", "end 3")
			if !s.Exists("a.txt") {
				t.Error("the calls of the other turn did not run")
			}
		})
	}
}
