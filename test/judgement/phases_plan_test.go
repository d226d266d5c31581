package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPhasesAnEmptyPlanEndsTheRun: whether it is empty as a draft or as it is to be
// committed; the model is not called, and nothing is accepted.
func TestPhasesAnEmptyPlanEndsTheRun(t *testing.T) {
	t.Parallel()
	for topic, plan := range map[harnessv1.HookTopic]string{hooksBeforePlan: "", hooksAfterPlan: " \n "} {
		t.Run(hooksTopic(topic), func(t *testing.T) {
			t.Parallel()
			emptied := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) { return hooksInstead("plan", plan), nil })
			service := hooksServe(t, nil)
			s := live.Play(t, hooksScript(), hooksSet(emptied.at("e", topic)...), hooksSet(service.at("s", hooksOnComplete, hooksSessionEnd, hooksBeforeStep)...))
			s.Want("DONE no_plan")
			if len(s.Requests) != 0 || s.Result.GetTurnCount() != 0 || len(service.of(hooksBeforeStep)) != 0 {
				t.Errorf("%d requests, %d turns", len(s.Requests), s.Result.GetTurnCount())
			}
			hooksSame(t, "events", s.Names("session.start", "plan.draft", "plan.commit", "step.start", "session.complete"), "session.start", "plan.draft", "session.complete")
			for _, topic := range []harnessv1.HookTopic{hooksOnComplete, hooksSessionEnd} {
				if h := service.one(t, topic); h.payload["kind"] != "no_plan" || h.payload["status"] != "DONE" || h.payload["accepted"] != false {
					t.Errorf("%s is given %s", hooksTopic(topic), h.GetPayload())
				}
			}
			if p := s.State().GetPhase(); p != harnessv1.Phase_PHASE_DONE {
				t.Errorf("it ends in %s", p)
			}
		})
	}
}

// phasesReplanned fails the test unless another plan was made once, before a turn, and
// the model got the reason.
func phasesReplanned(t *testing.T, all *live.Transcript, turn uint32, reason string) {
	t.Helper()
	plans := phasesPlans(all)
	if len(plans) != 4 || plans[0] != "draft Do the task." || plans[1] != "commit Do the task." || !strings.HasPrefix(plans[2], "draft Do the task.") || !strings.Contains(plans[3], reason) {
		t.Fatalf("plans are %q", plans)
	}
	var order []string
	for _, e := range all.Events {
		switch {
		case e.GetPlanCommit() != nil:
			order = append(order, "plan")
		case e.GetStepStart() != nil && !e.GetStepStart().GetResumed():
			order = append(order, fmt.Sprint("turn ", e.GetTurnNumber()))
		}
	}
	if at := slices.Index(order, fmt.Sprint("turn ", turn)); at < 1 || order[at-1] != "plan" {
		t.Errorf("another plan was to be made before turn %d: %q", turn, order)
	}
	last := all.Text(len(all.Requests) - 1)
	if n := strings.Count(last, reason); n != 1 {
		t.Errorf("the model reads the reason %d times:\n%s", n, last)
	}
}

// TestPhasesAHookAsksForAnotherPlan: a draft and a commit follow before the next turn,
// also for an agent that was done: what it did is judged by the new plan.
func TestPhasesAHookAsksForAnotherPlan(t *testing.T) {
	t.Parallel()
	for topic, cel := range map[harnessv1.HookTopic]string{
		hooksAfterStep: "turn == 1", hooksBeforeCall: "turn == 1 && tool == 'write_file'", hooksAfterCall: "turn == 1 && tool == 'write_file'",
		hooksOnError: "turn == 1", hooksAgentStop: "turn == 2",
	} {
		t.Run(hooksTopic(topic), func(t *testing.T) {
			t.Parallel()
			const reason = "the task is larger than it seemed"
			s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))), hooksSet(hooksRule(topic, cel, hooksReplan, reason)))
			s.Want("DONE agent_done accepted")
			before := uint32(2)
			if topic == hooksAgentStop {
				before = 3
			}
			if !s.Exists("a.txt") {
				t.Error("the calls of the turn did not run")
			}
			phasesReplanned(t, s, before, reason)
			hooksStable(t, s)
		})
	}
}

// TestPhasesBeforeAStepAHookAsksForAnotherPlan: it is made, once, and the run continues.
func TestPhasesBeforeAStepAHookAsksForAnotherPlan(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksBeforeStep, "turn == 1", hooksReplan, "there is a better way")))
	s.Want("DONE agent_done accepted")
	plans := phasesPlans(s)
	if len(plans) != 4 || !strings.Contains(plans[3], "there is a better way") {
		t.Errorf("plans are %q", plans)
	}
	hooksStable(t, s)
}

// TestPhasesAClientRequestsAnotherPlan: before the next turn, whether the run waits in a
// turn or is parked between two; the hooks of a plan fire again.
func TestPhasesAClientRequestsAnotherPlan(t *testing.T) {
	t.Parallel()
	replan := func(s *live.Transcript) {
		hooksSend(s.Run, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Replan{Replan: &harnessv1.ReplanRequest{Reason: "the customer called"}}})
	}
	t.Run("in-a-turn", func(t *testing.T) {
		t.Parallel()
		service := hooksServe(t, nil)
		s := live.Play(t, hooksScript(live.Calls(live.Call("ask_client", live.Args{}))), phasesClientTool, hooksSet(service.at("s", hooksBeforePlan, hooksAfterPlan)...))
		s.Want("PARKED client_tool")
		replan(s)
		hooksGive(s.Run, "call_1_0", "an answer", false)
		end := s.WaitAfter(hooksVersion(s))
		end.Want("DONE agent_done accepted")
		phasesReplanned(t, end.Wait(), 2, "the customer called")
		if n := len(service.of(hooksBeforePlan)); n != 2 {
			t.Errorf("before_plan was called %d times", n)
		}
	})
	t.Run("at-rest", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), phasesBudgets(&harnessv1.Budgets{Turns: phasesNumber(1)}))
		s.Want("PARKED budget_exceeded:turns")
		replan(s)
		end := hooksResume(s, &harnessv1.Budgets{Turns: phasesNumber(5)})
		end.Want("DONE agent_done accepted")
		phasesReplanned(t, end.Wait(), 2, "the customer called")
	})
	t.Run("at-the-end", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, hooksScript())
		s.Want("DONE agent_done accepted")
		_, err := live.Gateway(t).SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: s.ID, Input: &harnessv1.SendInputRequest_Replan{Replan: &harnessv1.ReplanRequest{}}})
		if status.Code(err) != codes.FailedPrecondition {
			after := s.WaitAfter(hooksVersion(s))
			if err != nil || len(after.Names("input.rejected")) != 1 || len(after.Names("plan.draft")) != 0 {
				t.Errorf("a run that has ended takes it: %v, %v", err, after.Names())
			}
		}
	})
}

// TestPhasesTheGoalIsThePlan: whole, without a planner; and another plan starts
// with it.
func TestPhasesTheGoalIsThePlan(t *testing.T) {
	t.Parallel()
	goal := "Do the long task.\n" + strings.Repeat("One of its many conditions. ", 100) + "The last condition."
	s := live.Play(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), hooksSet(hooksRule(hooksAfterStep, "turn == 1", hooksReplan, "there is more to it")), func(spec *harnessv1.RunSpec) {
		spec.Goal = content.Inline(goal)
	})
	s.Want("DONE agent_done accepted")
	plans := phasesPlans(s)
	if len(plans) != 4 || plans[0] != "draft "+goal || plans[1] != "commit "+goal {
		t.Errorf("plans are %.700q", plans)
	}
	if len(plans) == 4 && !strings.HasPrefix(plans[3], "commit "+goal) {
		t.Errorf("the second plan is %.700q", plans[3])
	}
}
