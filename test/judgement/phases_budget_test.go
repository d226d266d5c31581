package judgement

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// phasesPriced is a model whose price is known.
const phasesPriced = "gpt-4o"

// phasesWhole fails the test unless nothing is recorded by halves: each step that began
// has ended, and each call of the conversation has one result.
func phasesWhole(t *testing.T, all *live.Transcript) {
	t.Helper()
	if starts, ends := len(all.Names("step.start")), len(all.Names("step.end")); starts != ends {
		t.Errorf("%d steps began and %d ended", starts, ends)
	}
	got, err := live.Gateway(t).GetConversation(t.Context(), &harnessv1.GetConversationRequest{RunId: all.ID})
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]int{}
	for _, m := range got.GetMessages() {
		for _, c := range m.GetToolCalls() {
			open[c.GetId()]++
		}
		if id := m.GetToolCallId(); id != "" {
			open[id]--
		}
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s has %d results too few", id, n)
		}
	}
}

// TestPhasesABudgetThatIsUsedUpParksTheRun: of each budget. The hooks hear of it, then
// budget.warn and session.pause; a resume without more parks it again immediately, one with
// more continues it.
func TestPhasesABudgetThatIsUsedUpParksTheRun(t *testing.T) {
	t.Parallel()
	two := live.Calls(hooksWrite("a.txt", "A"), hooksWrite("b.txt", "B"))
	two.Usage = &modeltest.Usage{Input: 100_000, Output: 1000}
	for _, c := range []struct {
		name        string
		limit, more *harnessv1.Budgets
		at          float64
		used        float64
	}{
		{"turns", &harnessv1.Budgets{Turns: proto.Uint32(1)}, &harnessv1.Budgets{Turns: proto.Uint32(9)}, 1, 1},
		{"tool_calls", &harnessv1.Budgets{ToolCalls: proto.Uint32(1)}, &harnessv1.Budgets{ToolCalls: proto.Uint32(9)}, 1, 2},
		{"tokens", &harnessv1.Budgets{Tokens: proto.Uint64(101_000)}, &harnessv1.Budgets{Tokens: proto.Uint64(1_000_000)}, 101_000, 101_000},
		{"cost", &harnessv1.Budgets{CostUsd: proto.Float64(0.01)}, &harnessv1.Budgets{CostUsd: proto.Float64(100)}, 0.01, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(two), phasesBudgets(c.limit), hooksSet(service.at("s", hooksOnBudget, hooksOnPause)...), func(spec *harnessv1.RunSpec) {
				if c.name == "cost" {
					phasesSell(spec)
				}
			})
			s.Want("PARKED budget_exceeded:" + c.name)
			hooksSame(t, "the park", hooksBetween(t, hooksTrail(s), "step.end", "s-on_pause continue"),
				"step.end", "s-on_budget_exceeded continue", "budget.warn", "session.pause", "s-on_pause continue")
			if !s.Exists("a.txt") || !s.Exists("b.txt") {
				t.Error("the calls of the turn did not all run")
			}
			for _, e := range s.Events {
				if w := e.GetBudgetWarn(); w != nil && (w.GetBudget() != c.name || w.GetLimit() != c.at || c.used > 0 && w.GetUsed() != c.used || w.GetUsed() < w.GetLimit()) {
					t.Errorf("budget.warn says %v", w)
				}
			}
			phasesWhole(t, s)

			again := hooksResume(s, nil)
			again.Want("PARKED budget_exceeded:" + c.name)
			hooksSame(t, "a resume without more", again.Names("session.resume", "step.start", "model.response", "budget.warn", "session.pause"), "session.resume", "budget.warn", "session.pause")
			if len(again.Requests) != 1 || len(service.of(hooksOnBudget)) != 2 {
				t.Errorf("%d requests; on_budget_exceeded was called %d times", len(again.Requests), len(service.of(hooksOnBudget)))
			}

			end := hooksResume(again, c.more)
			end.Want("DONE agent_done accepted")
			if end.Result.GetTurnCount() != 2 {
				t.Errorf("%d turns", end.Result.GetTurnCount())
			}
			all := end.Wait()
			hooksSame(t, "starts and ends", all.Names("session.start", "session.complete"), "session.start", "session.complete")
			phasesWhole(t, all)
			hooksStable(t, all)
		})
	}
}

// phasesSell renames the model of a run to one with a known price.
func phasesSell(spec *harnessv1.RunSpec) { live.RenameModel(spec, phasesPriced) }

// TestPhasesTheFirstBudgetInTheirOrderIsNamed: turns, tool calls, tokens.
func TestPhasesTheFirstBudgetInTheirOrderIsNamed(t *testing.T) {
	t.Parallel()
	reply := live.Calls(hooksWrite("a.txt", "A"))
	reply.Usage = &modeltest.Usage{Input: 1000, Output: 10}
	s := live.Play(t, hooksScript(reply), phasesBudgets(&harnessv1.Budgets{Turns: proto.Uint32(1), ToolCalls: proto.Uint32(1), Tokens: proto.Uint64(1)}))
	for _, c := range []struct {
		name string
		more *harnessv1.Budgets
	}{
		{"turns", &harnessv1.Budgets{Turns: proto.Uint32(9)}}, {"tool_calls", &harnessv1.Budgets{ToolCalls: proto.Uint32(9)}}, {"tokens", &harnessv1.Budgets{Tokens: proto.Uint64(1_000_000)}},
	} {
		s.Want("PARKED budget_exceeded:" + c.name)
		s = hooksResume(s, c.more)
	}
	s.Want("DONE agent_done accepted")
}

// TestPhasesTurnsAreAHardStopAndBudgetsAreNot: where both are reached the run ends.
func TestPhasesTurnsAreAHardStopAndBudgetsAreNot(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksMaxTurns(1), phasesBudgets(&harnessv1.Budgets{Turns: proto.Uint32(1)}))
	s.Want("DONE max_turns")
	if len(s.Names("budget.warn", "session.pause")) != 0 {
		t.Errorf("it paused: %v", s.Names())
	}
}

// TestPhasesWallClockEndsWhatHangs: a command, a model and a hook that never answer are
// broken off when the time of the run is over; what was recorded is whole, and with more time
// the run continues to its end.
func TestPhasesWallClockEndsWhatHangs(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]modeltest.Reply{
		"command": live.Calls(hooksShell("exec tail -f /dev/null")),
		"model":   {Fault: modeltest.FaultHang},
		"hook":    live.Calls(hooksWrite("a.txt", "A")),
		"stream":  {Text: strings.Repeat("half of an answer ", 20), Fault: modeltest.FaultSilence},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, release := context.WithCancel(t.Context())
			service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
				if h.GetTopic() == hooksBeforeCall && name == "hook" {
					<-ctx.Done()
				}
				return nil, nil
			})
			t.Cleanup(release)
			slow := service.at("s", hooksBeforeCall)[0]
			slow.Timeout = durationpb.New(5 * time.Minute)
			s := live.Play(t, hooksScript(first), phasesBudgets(&harnessv1.Budgets{WallClock: durationpb.New(1500 * time.Millisecond)}), hooksSet(slow), hooksSet(service.at("s", hooksOnBudget)...))
			s.Want("PARKED budget_exceeded:wall_clock")
			if h := service.one(t, hooksOnBudget); h.payload["budget"] != "wall_clock" || fmt.Sprint(h.payload["limit"]) != "1.5" {
				t.Errorf("on_budget_exceeded is given %s", h.GetPayload())
			}
			hooksSame(t, "the park", s.Names("budget.warn", "session.pause"), "budget.warn", "session.pause")
			phasesWhole(t, s)
			release()
			end := hooksResume(s, &harnessv1.Budgets{WallClock: durationpb.New(time.Hour)})
			end.Want("DONE agent_done accepted")
			phasesWhole(t, end.Wait())
		})
	}
}

// TestPhasesAPausedRunCanBeEndedInstead: a cancel ends it with the reason given, once, and
// no turn follows.
func TestPhasesAPausedRunCanBeEndedInstead(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), phasesBudgets(&harnessv1.Budgets{ToolCalls: proto.Uint32(1)}))
	s.Want("PARKED budget_exceeded:tool_calls")
	if _, err := live.Gateway(t).CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: s.ID, Reason: "too dear"}); err != nil {
		t.Fatal(err)
	}
	end := s.WaitAfter(hooksVersion(s))
	end.Want("CANCELLED cancelled")
	if !strings.Contains(end.Result.GetReason().GetMessage(), "too dear") || len(end.Requests) != 1 {
		t.Errorf("it ended because %q after %d requests", end.Result.GetReason().GetMessage(), len(end.Requests))
	}
	hooksSame(t, "the end", end.Names("session.resume", "step.start", "run.cancelled", "session.complete"), "run.cancelled", "session.complete")
}

// TestPhasesABudgetCountsFromTheMessage: tool calls of an earlier segment do not count.
func TestPhasesABudgetCountsFromTheMessage(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(hooksWrite("a.txt", "A"), hooksWrite("b.txt", "B")), live.Done(), live.Calls(hooksWrite("c.txt", "C"), hooksWrite("d.txt", "D")), live.Calls(live.Call("work_complete", live.Args{"summary": "again"}))),
		phasesBudgets(&harnessv1.Budgets{ToolCalls: proto.Uint32(4)}))
	s.Want("DONE agent_done accepted")
	hooksSay(s.Run, "Go on.")
	second := s.WaitAfter(hooksVersion(s))
	second.Want("DONE agent_done accepted")
	if !second.Exists("d.txt") {
		t.Error("the calls of the second segment did not run")
	}
}

// TestPhasesAMessageAfterTheLastCallOpensASegment: a run that is parked because its turns or
// tool calls are used up ends its segment for that reason, and the message is the goal of
// the next, which has all of them again. For another budget the message waits.
func TestPhasesAMessageAfterTheLastCallOpensASegment(t *testing.T) {
	t.Parallel()
	work := live.Calls(hooksWrite("a.txt", "A"))
	work.Usage = &modeltest.Usage{Input: 1000, Output: 10}
	for name, b := range map[string]*harnessv1.Budgets{
		"tool_calls": {ToolCalls: proto.Uint32(1)}, "turns": {Turns: proto.Uint32(1)}, "tokens": {Tokens: proto.Uint64(500)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := hooksServe(t, nil)
			s := live.Play(t, live.Replies(work, live.Calls(live.Call("work_complete", live.Args{"summary": "done"}))), phasesBudgets(b),
				hooksSet(service.at("s", hooksOnComplete, hooksSessionEnd, hooksSessionStart)...))
			kind := "budget_exceeded:" + name
			s.Want("PARKED " + kind)
			hooksSay(s.Run, "Now do this.")
			end := s.WaitAfter(hooksVersion(s))
			if name == "tokens" {
				end.Want("PARKED " + kind)
				hooksSame(t, "the message", end.Names("session.complete", "session.start"))
				return
			}
			end.Want("DONE agent_done accepted")
			hooksSame(t, "the segments", hooksBetween(t, hooksTrail(end), "session.complete", "plan.commit"),
				"session.complete", "s-on_complete continue", "s-session_end continue", "session.start", "s-session_start continue", "plan.draft", "plan.commit")
			for _, e := range end.Events {
				if c := e.GetSessionComplete(); c != nil && c.GetReason().GetKind() != "agent_done" {
					if c.GetReason().GetKind() != kind || c.GetAccepted() || c.GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
						t.Errorf("the segment ended %v", c)
					}
				}
				if start := e.GetSessionStart(); start != nil && (start.GetSegment() != 2 || start.GetGoal() != "Now do this.") {
					t.Errorf("the next segment is %v", start)
				}
			}
			if len(end.Names("session.complete")) != 2 || len(end.Requests) != 2 || end.State().GetSpent().GetToolCalls() != 1 {
				t.Errorf("%v; %d requests, %v", end.Names("session.complete", "session.start"), len(end.Requests), end.State().GetSpent())
			}
			hooksTold(t, end, 1, "Now do this.")
		})
	}
}

// TestPhasesABudgetInDollarsNeedsAPrice: a run is refused if the price of one of its models
// is not known, unless it sets allow_unpriced, or the catalogue has the price.
func TestPhasesABudgetInDollarsNeedsAPrice(t *testing.T) {
	t.Parallel()
	dollars := func(allow bool) func(*harnessv1.RunSpec) {
		return phasesBudgets(&harnessv1.Budgets{CostUsd: proto.Float64(1), AllowUnpriced: &allow})
	}
	fallback := func(spec *harnessv1.RunSpec) { spec.Agent.FallbackModels = []string{"openai:unpriced"} }
	summarizer := func(spec *harnessv1.RunSpec) {
		spec.Config.Context = &harnessv1.ContextConfig{Summarizer: &harnessv1.SummarizerConfig{Model: "openai:unpriced"}}
	}
	for name, c := range map[string]struct {
		edits []func(*harnessv1.RunSpec)
		names string // the model that the refusal names; empty for none
	}{
		"no price":                 {[]func(*harnessv1.RunSpec){dollars(false)}, "TestPhasesABudgetInDollarsNeedsAPrice"},
		"no price, allowed":        {[]func(*harnessv1.RunSpec){dollars(true)}, ""},
		"no price, another budget": {[]func(*harnessv1.RunSpec){phasesBudgets(&harnessv1.Budgets{Tokens: proto.Uint64(1e6)})}, ""},
		"fallback":                 {[]func(*harnessv1.RunSpec){dollars(false), phasesSell, fallback}, "openai:unpriced"},
		"summarizer":               {[]func(*harnessv1.RunSpec){dollars(false), phasesSell, summarizer}, "openai:unpriced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(live.Done()))
			_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(c.edits...)})
			if c.names == "" {
				if err != nil {
					t.Fatal(err)
				}
				r.Wait().Want("DONE agent_done accepted")
				return
			}
			if status.Code(err) != codes.InvalidArgument {
				t.Fatalf("the start gives %v", err)
			}
			for _, word := range []string{"spec.config.budgets.cost_usd", c.names, "--catalogue", "allow_unpriced"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
		})
	}
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), phasesBudgets(&harnessv1.Budgets{Turns: proto.Uint32(1)}))
	s.Want("PARKED budget_exceeded:turns")
	_, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: s.ID, Budgets: &harnessv1.Budgets{Turns: proto.Uint32(9), CostUsd: proto.Float64(1)}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "budgets.cost_usd") {
		t.Errorf("a resume with a budget that would not count: %v", err)
	}
	hooksResume(s, &harnessv1.Budgets{Turns: proto.Uint32(9), CostUsd: proto.Float64(1), AllowUnpriced: proto.Bool(true)}).Want("DONE agent_done accepted")
}
