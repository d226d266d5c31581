package judgement

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func hooksFailingIn(turn uint32) hooksAnswer {
	return func(h hooksCall) (*harnessv1.HookVerdict, error) {
		if h.GetTurnNumber() == turn {
			return nil, status.Error(codes.Internal, "the service has raised an exception")
		}
		return nil, nil
	}
}

// hooksLong returns n turns, each with a separate command that writes a file.
func hooksLong(n int) []modeltest.Reply {
	var all []modeltest.Reply
	for i := range n {
		all = append(all, live.Calls(hooksShell(fmt.Sprintf("echo turn %d; touch t%d", i+1, i+1))))
	}
	return all
}

// TestHooksRaiseAtTurn27Of40: a hook that breaks a call off in turn 27 leaves tool.error
// and on_error; the run continues through the remaining turns, and every request
// begins with the one before it.
func TestHooksRaiseAtTurn27Of40(t *testing.T) {
	t.Parallel()
	abort := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		if h.GetTurnNumber() == 27 && h.GetTopic() == hooksBeforeCall {
			return hooksVerdict(hooksAbort, "the guard has raised"), nil
		}
		return nil, nil
	})
	s := live.Play(t, hooksScript(hooksLong(38)...), hooksMaxTurns(40), hooksSet(abort.at("s", hooksBeforeCall, hooksOnError, hooksAfterCall)...))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 39 {
		t.Errorf("%d turns, want 39", s.Result.GetTurnCount())
	}
	var failed []string
	for _, e := range s.Events {
		if f := e.GetToolError(); f != nil {
			failed = append(failed, fmt.Sprint(e.GetTurnNumber(), " ", f.GetCallId(), " ", strings.Contains(f.GetError().GetInline(), "the guard has raised")))
		}
	}
	hooksSame(t, "failed calls", failed, "27 call_27_0 true")
	if told := abort.one(t, hooksOnError); told.GetTurnNumber() != 27 || !strings.Contains(fmt.Sprint(told.payload["error"]), "the guard has raised") {
		t.Errorf("on_error gets %s in turn %d", told.GetPayload(), told.GetTurnNumber())
	}
	if s.Exists("t27") || !s.Exists("t26") || !s.Exists("t28") || !s.Exists("t38") {
		t.Error("other calls than that of turn 27 did not run, or it did")
	}
	hooksTold(t, s, 27, "the guard has raised")
	hooksStable(t, s)
}

// TestHooksThatCrashAtTurn27Of40: a hook that fails before a call counts against the
// call; it is an event, the model gets the error, and the run continues.
func TestHooksThatCrashAtTurn27Of40(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(hooksLong(38)...), hooksMaxTurns(40), hooksSet(hooksServe(t, hooksFailingIn(27)).at("s", hooksBeforeCall)...))
	s.Want("DONE agent_done accepted")
	hooksSame(t, "failures", hooksErrors(s), "s-before_tool_call before_tool_call closed")
	if s.Exists("t27") || !s.Exists("t26") || !s.Exists("t28") {
		t.Error("other calls than that of turn 27 did not run, or it did")
	}
	hooksTold(t, s, 27, "s-before_tool_call", "the service has raised an exception")
	hooksStable(t, s)
}

// TestHooksThatFailCountByTheirPolicy: before a tool call a failure is a no unless set
// otherwise, everywhere else it is nothing unless set otherwise; it is always an event.
func TestHooksThatFailCountByTheirPolicy(t *testing.T) {
	t.Parallel()
	const (
		byDefault = harnessv1.HookFailure_HOOK_FAILURE_UNSPECIFIED
		open      = harnessv1.HookFailure_HOOK_FAILURE_OPEN
		closed    = harnessv1.HookFailure_HOOK_FAILURE_CLOSED
	)
	for _, c := range []struct {
		topic   harnessv1.HookTopic
		policy  harnessv1.HookFailure
		verdict string
		closed  bool
		ran     bool
	}{
		{hooksBeforeCall, byDefault, "DONE agent_done accepted", true, false},
		{hooksBeforeCall, closed, "DONE agent_done accepted", true, false},
		{hooksBeforeCall, open, "DONE agent_done accepted", false, true},
		{hooksBeforePlan, byDefault, "DONE agent_done accepted", false, true},
		{hooksBeforePlan, closed, "FAILED failed", true, false},
		{hooksAfterPlan, byDefault, "DONE agent_done accepted", false, true},
		{hooksAfterPlan, closed, "FAILED failed", true, false},
		{hooksBeforeStep, byDefault, "DONE agent_done accepted", false, true},
		{hooksBeforeStep, closed, "FAILED failed", true, false},
		{hooksAfterStep, byDefault, "DONE agent_done accepted", false, true},
		{hooksAfterStep, closed, "FAILED failed", true, true},
		{hooksAfterCall, byDefault, "DONE agent_done accepted", false, true},
		{hooksAfterCall, closed, "FAILED failed", true, true},
		{hooksOnError, byDefault, "DONE agent_done accepted", false, true},
		{hooksOnError, closed, "FAILED failed", true, true},
		{hooksAgentStop, byDefault, "DONE agent_done accepted", false, true},
		{hooksAgentStop, closed, "DONE max_turns", true, true},
		{hooksSessionStart, byDefault, "DONE agent_done accepted", false, true},
		{hooksOnComplete, byDefault, "DONE agent_done accepted", false, true},
		{hooksSessionEnd, byDefault, "DONE agent_done accepted", false, true},
	} {
		t.Run(hooksTopic(c.topic)+"-"+strings.TrimPrefix(c.policy.String(), "HOOK_FAILURE_"), func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
				return nil, status.Error(codes.Unavailable, "out of order")
			})
			h := &harnessv1.Hook{Id: "guard", Topic: c.topic, Grpc: service.addr, OnFailure: c.policy}
			if c.topic == hooksBeforeCall || c.topic == hooksAfterCall {
				h.Tools = []string{"write_file"}
			}
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))), hooksMaxTurns(5), hooksSet(h))
			s.Want(c.verdict)
			if s.Exists("a.txt") != c.ran {
				t.Errorf("the call ran: %v, want %v", s.Exists("a.txt"), c.ran)
			}
			said := hooksErrors(s)
			want := "guard " + hooksTopic(c.topic) + " open"
			if c.closed {
				want = "guard " + hooksTopic(c.topic) + " closed"
			}
			if len(said) == 0 || said[0] != want {
				t.Errorf("failures are %q, want %q", said, want)
			}
			for _, e := range s.Events {
				if f := e.GetHookError(); f != nil && !strings.Contains(f.GetError(), "out of order") {
					t.Errorf("the failure says %q", f.GetError())
				}
			}
			if s.Result.GetStatus() == harnessv1.RunStatus_RUN_STATUS_FAILED && !strings.Contains(s.Result.GetReason().GetMessage(), "guard") {
				t.Errorf("the run failed because %q", s.Result.GetReason().GetMessage())
			}
		})
	}
}

// TestHooksThatTakeTooLongFail: the time of the hook, or of the run, is over; the same
// policies hold.
func TestHooksThatTakeTooLongFail(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]func(t *testing.T) *harnessv1.Hook{
		"grpc": func(t *testing.T) *harnessv1.Hook {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
				<-ctx.Done()
				return nil, nil
			})
			t.Cleanup(cancel)
			return &harnessv1.Hook{Grpc: service.addr}
		},
		"command": func(*testing.T) *harnessv1.Hook { return &harnessv1.Hook{Command: "exec tail -f /dev/null"} },
	} {
		for _, whose := range []string{"hook", "run"} {
			t.Run(name+"-"+whose, func(t *testing.T) {
				t.Parallel()
				limit := durationpb.New(100 * time.Millisecond)
				h := slow(t)
				h.Id, h.Topic, h.Tools = "slow", hooksBeforeCall, []string{"write_file"}
				s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(h), func(spec *harnessv1.RunSpec) {
					if whose == "hook" {
						h.Timeout = limit
					} else {
						spec.Config.Hooks = &harnessv1.HookConfig{Timeout: limit}
					}
				})
				s.Want("DONE agent_done accepted")
				hooksSame(t, "failures", hooksErrors(s), "slow before_tool_call closed")
				if s.Exists("a.txt") {
					t.Error("the call ran without a verdict")
				}
				hooksTold(t, s, 1, "slow", "100ms")
			})
		}
	}
}

// TestHooksThatFailInOtherWaysAreEvents: commands by their exit codes and outputs,
// expressions over fields of another type, services that want what their topic does not
// allow. Before a call each of them is a no.
func TestHooksThatFailInOtherWaysAreEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook func(t *testing.T) *harnessv1.Hook
		says string
	}{
		"exit-1":    {func(*testing.T) *harnessv1.Hook { return &harnessv1.Hook{Command: "echo broken >&2; exit 1"} }, "broken"},
		"no-script": {func(*testing.T) *harnessv1.Hook { return &harnessv1.Hook{Command: "./no-such-script"} }, "127"},
		"bad-json":  {func(*testing.T) *harnessv1.Hook { return &harnessv1.Hook{Command: `echo '{"action":'`} }, ""},
		"bad-field": {func(*testing.T) *harnessv1.Hook {
			return &harnessv1.Hook{Command: `echo '{"action":"deny","why":"x"}'`}
		}, "why"},
		"bad-type": {func(*testing.T) *harnessv1.Hook {
			return &harnessv1.Hook{Cel: "args.path > 3", Action: hooksDeny}
		}, ""},
		"block": {func(t *testing.T) *harnessv1.Hook {
			t.Helper()
			return &harnessv1.Hook{Grpc: hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return hooksVerdict(hooksBlock, ""), nil }).addr}
		}, "block"},
		"replace-tool": {func(t *testing.T) *harnessv1.Hook {
			t.Helper()
			return &harnessv1.Hook{Grpc: hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return hooksInstead("tool", "run_command"), nil }).addr}
		}, "tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.hook(t)
			h.Id, h.Topic, h.Tools = "guard", hooksBeforeCall, []string{"write_file"}
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(h))
			s.Want("DONE agent_done accepted")
			hooksSame(t, "failures", hooksErrors(s), "guard before_tool_call closed")
			if s.Exists("a.txt") {
				t.Error("the call ran")
			}
			hooksTold(t, s, 1, c.says)
		})
	}
}

// TestHooksWhoseServiceGoesAwayFail: one that was there at the start and is not when the
// call is made.
func TestHooksWhoseServiceGoesAwayFail(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, nil)
	script := hooksScript(live.Calls(hooksWrite("a.txt", "A")))
	s := live.Play(t, func(n int, req *modeltest.Request) modeltest.Reply {
		service.stop()
		return script(n, req)
	}, hooksSet(&harnessv1.Hook{Id: "guard", Topic: hooksBeforeCall, Grpc: service.addr, Tools: []string{"write_file"}}))
	s.Want("DONE agent_done accepted")
	hooksSame(t, "failures", hooksErrors(s), "guard before_tool_call closed")
	hooksTold(t, s, 1, service.addr)
	if s.Exists("a.txt") {
		t.Error("the call ran")
	}
}

// TestHooksThatOnlyObserveCannotBlock: an action there is a failure, and the run
// parks and ends as without it.
func TestHooksThatOnlyObserveCannotBlock(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return hooksVerdict(hooksAbort, "no"), nil })
	s := live.Play(t, hooksScript(live.Calls(hooksRead("a.txt"))), hooksFile(t, "a.txt", "A"), phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(1)}),
		hooksSet(service.at("s", hooksSessionStart, hooksOnBudget, hooksOnPause, hooksOnComplete, hooksSessionEnd)...))
	s.Want("PARKED budget_exceeded:turns")
	end := hooksResume(s, &harnessv1.Budgets{Turns: phasesNumber(5)})
	end.Want("DONE agent_done accepted")
	hooksSame(t, "failures", append(hooksErrors(s), hooksErrors(end)...),
		"s-session_start session_start open", "s-on_budget_exceeded on_budget_exceeded open", "s-on_pause on_pause open",
		"s-on_complete on_complete open", "s-session_end session_end open")
}

// TestHooksCanBeSwitchedOff: no subscriber is called and no trace is left.
func TestHooksCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return nil, status.Error(codes.Internal, "called") })
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(service.at("s", hooksAll()...)...), func(spec *harnessv1.RunSpec) {
		spec.Config.Hooks = &harnessv1.HookConfig{Enabled: phasesBool(false)}
	})
	s.Want("DONE agent_done accepted")
	if !s.Exists("a.txt") || len(service.all()) != 0 || len(s.Names("hook.result", "hook.error")) != 0 {
		t.Errorf("the service was called %d times; %v", len(service.all()), s.Names())
	}
}

// TestHooksAGuardThatFailsLetsTheWorkEnd: its failure denies every call but work_complete,
// which hooks that do not fail may still deny, and the reason of the end names it.
func TestHooksAGuardThatFailsLetsTheWorkEnd(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T, topic harnessv1.HookTopic, on harnessv1.HookFailure) *harnessv1.Hook {
		t.Helper()
		service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
			return nil, status.Error(codes.Unavailable, "out of order")
		})
		return &harnessv1.Hook{Id: "guard", Topic: topic, Grpc: service.addr, OnFailure: on}
	}
	write, done := live.Calls(hooksWrite("a.txt", "A")), live.Calls(live.Call("task_complete", live.Args{"summary": "given up"}))
	const closed = harnessv1.HookFailure_HOOK_FAILURE_CLOSED
	for name, c := range map[string]struct {
		script  []modeltest.Reply
		hooks   []*harnessv1.Hook
		verdict string
		names   bool
	}{
		"the agent ends it":      {[]modeltest.Reply{write, done}, []*harnessv1.Hook{broken(t, hooksBeforeCall, closed)}, "DONE agent_done accepted", true},
		"the agent repeats":      {[]modeltest.Reply{write, write, write, write, write, write, done}, []*harnessv1.Hook{broken(t, hooksBeforeCall, 0)}, "STALLED doom_loop", true},
		"no call was denied":     {[]modeltest.Reply{done}, []*harnessv1.Hook{broken(t, hooksBeforeCall, 0)}, "DONE agent_done accepted", false},
		"the end is blocked":     {[]modeltest.Reply{live.Calls(hooksRead("missing.txt")), done, done, done, done}, []*harnessv1.Hook{broken(t, hooksAgentStop, closed)}, "DONE max_turns", true},
		"another hook denies it": {[]modeltest.Reply{done, done, done, done, done, done, done}, []*harnessv1.Hook{broken(t, hooksBeforeCall, 0), hooksRule(hooksBeforeCall, "tool == 'work_complete'", hooksDeny, "not yet")}, "STALLED doom_loop", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := hooksMaxTurns(9)
			if c.verdict == "DONE max_turns" {
				limit = hooksMaxTurns(4)
			}
			s := live.Play(t, live.Replies(c.script...), limit, hooksSet(c.hooks...))
			s.Want(c.verdict)
			why := s.Result.GetReason().GetMessage()
			if names := strings.Contains(why, "guard") && strings.Contains(why, "out of order"); names != c.names {
				t.Errorf("the run ended because %q", why)
			}
			if s.Exists("a.txt") {
				t.Error("a call ran without its guard")
			}
		})
	}
}

// TestHooksAGuardThatWorksAgainIsNotNamed: the reason of the end names a hook that failed in
// the last turn with calls only.
func TestHooksAGuardThatWorksAgainIsNotNamed(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A")), live.Calls(hooksWrite("b.txt", "B"))), hooksSet(hooksServe(t, hooksFailingIn(1)).at("guard", hooksBeforeCall)...))
	s.Want("DONE agent_done accepted")
	if why := s.Result.GetReason().GetMessage(); strings.Contains(why, "guard") || s.Exists("a.txt") || !s.Exists("b.txt") {
		t.Errorf("a.txt %t, b.txt %t, the run ended because %q", s.Exists("a.txt"), s.Exists("b.txt"), why)
	}
}
