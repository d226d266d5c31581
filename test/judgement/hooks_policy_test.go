package judgement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hooksPolicy replaces yolo by rules for tools.
func hooksPolicy(rules ...*harnessv1.ToolRule) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Tools, spec.Agent.Tools = nil, rules }
}

// TestHooksAndThePolicyBothHaveToAgree: what the policy refuses no hook lets through,
// a call that a hook denies needs no approval, and the policy judges the arguments
// that a hook put there.
func TestHooksAndThePolicyBothHaveToAgree(t *testing.T) {
	t.Parallel()
	t.Run("policy-denies", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksPolicy(&harnessv1.ToolRule{Name: "write_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}),
			hooksSet(hooksRule(hooksBeforeCall, "true", hooksContinue, "fine with me")))
		s.Want("DONE agent_done accepted")
		if s.Exists("a.txt") || len(s.Names("tool.denied")) != 1 {
			t.Errorf("a.txt is there: %v; %v", s.Exists("a.txt"), s.Names())
		}
	})
	t.Run("policy-asks-hook-denies", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksPolicy(&harnessv1.ToolRule{Name: "write_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}),
			hooksSet(hooksRule(hooksBeforeCall, "tool == 'write_file'", hooksDeny, "nobody needs to be asked")))
		s.Want("DONE agent_done accepted")
		if s.Exists("a.txt") || len(s.Names("approval.requested")) != 0 {
			t.Errorf("a.txt is there: %v; %v", s.Exists("a.txt"), s.Names())
		}
	})
	t.Run("policy-asks-hook-agrees", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksPolicy(&harnessv1.ToolRule{Name: "write_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}),
			hooksSet(hooksRule(hooksBeforeCall, "true", hooksContinue, "fine with me")))
		s.Want("PARKED approval")
	})
	t.Run("policy-judges-what-was-put-there", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
			return hooksInstead("arguments", live.Args{"command": "rm -rf build; touch ran"}), nil
		})
		s := live.Play(t, hooksScript(live.Calls(hooksShell("make"))),
			hooksPolicy(&harnessv1.ToolRule{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, Pattern: "rm -rf"}, &harnessv1.ToolRule{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}),
			hooksSet(&harnessv1.Hook{Topic: hooksBeforeCall, Tools: []string{"run_command"}, Grpc: service.addr}))
		s.Want("DONE agent_done accepted")
		if s.Exists("ran") || len(s.Names("tool.denied")) != 1 {
			t.Errorf("it ran: %v; %v", s.Exists("ran"), s.Names())
		}
	})
}

// TestHooksDenyTheEndOfTheWork: work_complete that is denied ends nothing, under its name
// and under its other one, and the model reads why.
func TestHooksDenyTheEndOfTheWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"work_complete", "task_complete"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			early := hooksRule(hooksBeforeCall, "turn == 1", hooksDeny, "not before the second turn")
			early.Tools = []string{"work_complete"}
			s := live.Play(t, live.Replies(live.Calls(live.Call(name, live.Args{"summary": "early"})), live.Done()), hooksSet(early))
			s.Want("DONE agent_done accepted")
			if s.Result.GetTurnCount() != 2 || s.Result.GetSummary().GetInline() != "done" {
				t.Errorf("%d turns, summary %q", s.Result.GetTurnCount(), s.Result.GetSummary().GetInline())
			}
			hooksTold(t, s, 1, "not before the second turn")
		})
	}
}

// TestHooksReviewOfTheEndOfTheWork: the call has no effect outside, so the run parks
// after its turn, and ends after the review.
func TestHooksReviewOfTheEndOfTheWork(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksBeforeCall, "tool == 'work_complete'", hooksPause, "look at the result")))
	s.Want("PARKED review")
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
	if len(end.Requests) != 2 {
		t.Errorf("requests = %d, want 2", len(end.Requests))
	}
}

// TestHooksAtTheStopKnowWhetherWorkCompleteWasCalled: a silent agent is blocked by a rule
// over called_work_complete, and gets its value.
func TestHooksAtTheStopKnowWhetherWorkCompleteWasCalled(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("I think that is all."), live.Done()), hooksSet(hooksRule(hooksAgentStop, "!called_work_complete", hooksBlock, "say that you are done")),
		func(spec *harnessv1.RunSpec) {
			spec.Config.Stop = &harnessv1.StopConfig{RequireWorkComplete: phasesBool(false)}
			spec.Config.Continuation = &harnessv1.ContinuationConfig{Enabled: phasesBool(false)}
		})
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 2 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	hooksTold(t, s, 1, "say that you are done")
}

// TestHooksLongWordsReachTheModelWhole: a reason of 4 KiB and a context of 8 KiB.
func TestHooksLongWordsReachTheModelWhole(t *testing.T) {
	t.Parallel()
	long := func(n int, end string) string { return strings.Repeat("x", n-len(end)) + end }
	service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		switch {
		case h.GetTopic() == hooksBeforeCall && h.payload["tool"] == "write_file":
			v := hooksVerdict(hooksDeny, long(4<<10, "end-of-the-denial"))
			v.Context = long(8<<10, "end-of-the-context")
			return v, nil
		case h.GetTopic() == hooksAgentStop && h.GetTurnNumber() == 2:
			return hooksVerdict(hooksBlock, long(4<<10, "end-of-the-block")), nil
		}
		return nil, nil
	})
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(service.at("s", hooksBeforeCall, hooksAgentStop)...))
	s.Want("DONE agent_done accepted")
	hooksTold(t, s, 1, "end-of-the-denial", "end-of-the-context")
	hooksTold(t, s, 2, "end-of-the-block")
}

// TestHooksSeeLargeArgumentsAndResultsWhole: of a tool and of a client's tool, 200 KiB
// each.
func TestHooksSeeLargeArgumentsAndResultsWhole(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcde\n", 200<<10/16)
	service := hooksServe(t, nil)
	reply := live.Calls(hooksWrite("large.txt", large), live.Call("ask_client", live.Args{"v": large}))
	reply.Fragment = 16 << 10
	s := live.Play(t, hooksScript(reply), phasesClientTool,
		hooksSet(service.at("s", hooksBeforeCall, hooksAfterCall, hooksOnError)...))
	s.Want("PARKED client_tool")
	hooksGive(s.Run, "call_1_1", large, true)
	s = s.WaitAfter(hooksVersion(s))
	s.Want("DONE agent_done accepted")
	for topic, fields := range map[harnessv1.HookTopic]map[string]string{
		hooksBeforeCall: {"call_1_0": "content", "call_1_1": "v"}, hooksAfterCall: {"call_1_0": "content", "call_1_1": "v"}, hooksOnError: {"call_1_1": "v"},
	} {
		seen := 0
		for _, h := range service.of(topic) {
			id := fmt.Sprint(h.payload["call_id"])
			field, ok := fields[id]
			if !ok {
				continue
			}
			seen++
			a, ok := h.payload["arguments"].(live.Args)
			if !ok || a[field] != large {
				t.Errorf("%s of %s is given the arguments %.80v", hooksTopic(topic), id, h.payload["arguments"])
			}
			if id == "call_1_1" && topic == hooksAfterCall && h.payload["result"] != large {
				t.Errorf("after_tool_call of %s is given a result of %d bytes, want %d", id, len(fmt.Sprint(h.payload["result"])), len(large))
			}
			if topic == hooksOnError && h.payload["error"] != large {
				t.Errorf("on_error of %s is given an error of %d bytes, want %d", id, len(fmt.Sprint(h.payload["error"])), len(large))
			}
		}
		if seen != len(fields) {
			t.Errorf("%s was called for %d of %d calls", hooksTopic(topic), seen, len(fields))
		}
	}
}

// TestHooksHearOfAToolThatTookTooLong: its end is an error like any other.
func TestHooksHearOfAToolThatTookTooLong(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	s := live.Play(t, hooksScript(live.Calls(hooksShell("exec tail -f /dev/null"))), hooksSet(service.at("s", hooksOnError, hooksAfterCall)...), func(spec *harnessv1.RunSpec) {
		spec.Config.Tools.Timeout = durationpb.New(time.Second)
	})
	s.Want("DONE agent_done accepted")
	hooksSame(t, "the call", hooksBetween(t, hooksTrail(s), "tool.call", "step.end"), "tool.call", "tool.error", "s-on_error continue", "s-after_tool_call continue", "step.end")
}

// TestHooksOfOneFiringAreAllHeard: a pause with a skip, and with another plan, takes
// neither away: both follow once the run is resumed.
func TestHooksOfOneFiringAreAllHeard(t *testing.T) {
	t.Parallel()
	for _, topic := range []harnessv1.HookTopic{hooksBeforeStep, hooksAfterStep, hooksAfterCall} {
		for action, reason := range map[harnessv1.HookAction]string{hooksSkip: "nothing to do", hooksReplan: "a better way"} {
			name := hooksTopic(topic) + "-" + strings.ToLower(strings.TrimPrefix(action.String(), "HOOK_ACTION_"))
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))),
					hooksSet(hooksRule(topic, "turn == 1", hooksPause, "look at this"), hooksRule(topic, "turn == 1", action, reason)))
				s.Want("PARKED review")
				end := hooksResume(s, nil)
				end.Want("DONE agent_done accepted")
				all := end.Wait()
				if action == hooksReplan {
					if plans := phasesPlans(all); len(plans) != 4 || !strings.Contains(plans[3], reason) {
						t.Errorf("plans are %q", plans)
					}
					return
				}
				if all.Result.GetTurnCount() != 3 || len(all.Requests) != 2 {
					t.Errorf("%d turns, %d requests: the turn was not passed over", all.Result.GetTurnCount(), len(all.Requests))
				}
			})
		}
	}
}

// TestHooksThatCannotBeAreRefusedAtTheStart: with the field that is wrong, and nothing of
// the run is there.
func TestHooksThatCannotBeAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	fine := hooksRule(hooksAgentStop, "true", hooksBlock, "x")
	fine.Id = "guard"
	for name, c := range map[string]struct {
		hook *harnessv1.Hook
		says string
	}{
		"no-topic":      {&harnessv1.Hook{Command: "true"}, "topic"},
		"nobody":        {&harnessv1.Hook{Topic: hooksBeforeStep}, "hooks[1]"},
		"two":           {&harnessv1.Hook{Topic: hooksBeforeStep, Command: "true", Callback: true}, "hooks[1]"},
		"bad-cel":       {hooksRule(hooksBeforeCall, "args.path ==", hooksDeny, ""), "hooks[1].cel"},
		"no-variable":   {hooksRule(hooksBeforeCall, "nonsense == 1", hooksDeny, ""), "nonsense"},
		"no-bool":       {hooksRule(hooksBeforeCall, "turn + 1", hooksDeny, ""), "hooks[1].cel"},
		"deny-step":     {hooksRule(hooksAfterStep, "true", hooksDeny, ""), "deny"},
		"block-call":    {hooksRule(hooksBeforeCall, "true", hooksBlock, ""), "block"},
		"cel-replace":   {hooksRule(hooksBeforeCall, "true", hooksReplace, ""), "replace"},
		"abort-pause":   {hooksRule(hooksOnPause, "true", hooksAbort, ""), "abort"},
		"closed":        {&harnessv1.Hook{Topic: hooksSessionEnd, Command: "true", OnFailure: harnessv1.HookFailure_HOOK_FAILURE_CLOSED}, "hooks[1].on_failure"},
		"bad-target":    {&harnessv1.Hook{Topic: hooksBeforeStep, Grpc: "http://x/y"}, "hooks[1].grpc"},
		"unreachable":   {&harnessv1.Hook{Topic: hooksBeforeCall, Grpc: "127.0.0.1:1"}, "hooks[1].grpc"},
		"tools-step":    {&harnessv1.Hook{Topic: hooksBeforeStep, Command: "true", Tools: []string{"write_file"}}, "hooks[1].tools"},
		"same-id":       {&harnessv1.Hook{Id: "guard", Topic: hooksAgentStop, Command: "true"}, "hooks[1].id"},
		"too-long":      {&harnessv1.Hook{Topic: hooksBeforeStep, Command: "true", Timeout: durationpb.New(time.Hour)}, "hooks[1].timeout"},
		"reason-beside": {&harnessv1.Hook{Topic: hooksBeforeStep, Command: "true", Reason: "x"}, "hooks[1].reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, hooksScript())
			_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(hooksSet(fine, c.hook))})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the start gives %v, want an invalid argument that names %s", err, c.says)
			}
			if _, err := live.Gateway(t).GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: r.ID}); status.Code(err) != codes.NotFound {
				t.Errorf("there is a run: %v", err)
			}
		})
	}
}

// TestHooksThatCannotBeReachedAndFailOpenAreNoHindrance: the run starts, and each call
// without a client is an event.
func TestHooksThatCannotBeReachedAndFailOpenAreNoHindrance(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(&harnessv1.Hook{
		Id: "guard", Topic: hooksBeforeCall, Grpc: "127.0.0.1:1", OnFailure: harnessv1.HookFailure_HOOK_FAILURE_OPEN,
	}))
	s.Want("DONE agent_done accepted")
	hooksSame(t, "failures", hooksErrors(s), "guard before_tool_call open", "guard before_tool_call open")
	if !s.Exists("a.txt") {
		t.Error("the call did not run")
	}
}
