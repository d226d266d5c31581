package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// stream returns the events of a run over HTTP with the seed's names.
func stream(t *testing.T, id string) string {
	t.Helper()
	return live.Get(t, "/v1/runs/"+id+"/events?names=seed", "")
}

// TestComplexWork: complex work is classified, planned, judged from three perspectives, healed
// and delivered, and each step is an event under the seed's name with the seed's fields.
func TestComplexWork(t *testing.T) {
	t.Parallel()
	const secret = "SECRET-OF-THE-AGENT"
	wholeGoal := "Compare quarry output across regions. " + strings.Repeat("g", 500) + "END-OF-GOAL"
	long := "According to the survey, output rises. " + strings.Repeat("o", 8000) + "END-OF-OUTPUT"
	before, perspectives := newBarrier(2), map[int]*barrier{1: newBarrier(3), 2: newBarrier(3)}
	ctx := t.Context()
	model := func(_ int, req *modeltest.Request) modeltest.Reply {
		switch purpose(req) {
		case "complexity":
			before.wait(ctx)
			return complexity("COMPLEX", live.Args{"min_insights": 3})
		case "intent":
			before.wait(ctx)
			return answer(live.Args{"kind": "synthesis", "confidence": 0.9})
		case "plan":
			plan := func(what, kind string, turns int) live.Args {
				return live.Args{"description": what, "prompt_modifier": "MODIFIER " + what, "subtasks": []string{"SUBTASK " + what}, "suggested_workflow": kind, "estimated_turns": turns}
			}
			return answer(live.Args{"plans": []live.Args{
				plan("something else", "chat", 9), plan("compare quarry output across regions", "synthesis", 1), plan("quarry", "synthesis", 5),
			}})
		case "verify":
			attempt, score := 1, 0.4
			if strings.Contains(req.Messages[1].Content, "According to the survey") {
				attempt, score = 2, 0.9
			}
			perspectives[attempt].wait(ctx)
			if strings.Contains(req.Messages[0].Content, "accuracy") {
				return verdict(score, "a figure is wrong")
			}
			return verdict(0.95)
		}
		if number(req) == 1 {
			return finish("Too short.")
		}
		return finish(long, insight("output rises"), insight("words that no source has"))
	}
	r := live.Prepare(t, model)
	r.Write("s1.txt", "In all regions output rises.\n")
	spec := r.Spec(withJudge("", "s1", "s2"), func(s *harnessv1.RunSpec) {
		s.Goal, s.Agent.Instructions = content.Inline(wholeGoal), secret
	})
	if _, err := live.Gateway(t).StartRun(ctx, &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	verify := of(s, "verify")
	if len(of(s, "complexity")) != 1 || len(of(s, "intent")) != 1 || len(of(s, "plan")) != 1 || len(verify) != 6 {
		t.Errorf("%d complexity, %d intent, %d plan, %d verify", len(of(s, "complexity")), len(of(s, "intent")), len(of(s, "plan")), len(verify))
	}
	for i, req := range verify {
		p := parts(t, req)
		if len(p) != 3 || p["GOAL"] != wholeGoal[:500] {
			t.Errorf("verifier %d has the parts %q", i, p)
		}
		if i < 3 && (!strings.Contains(p["OUTPUT"], "Too short.") || p["ARTIFACTS"] != "no artifacts") || i >= 3 && (p["OUTPUT"] != long[:8000] || p["ARTIFACTS"] != "2 insights") {
			t.Errorf("verifier %d: output %.60q, artifacts %q", i, p["OUTPUT"], p["ARTIFACTS"])
		}
		for _, m := range req.Messages {
			for _, hidden := range []string{secret, "END-OF-GOAL", "END-OF-OUTPUT", "words of the artifact", "MODIFIER"} {
				if strings.Contains(m.Content, hidden) {
					t.Errorf("verifier %d has %s", i, hidden)
				}
			}
		}
	}
	agent := of(s, "")
	if len(agent) != 2 {
		t.Fatalf("%d requests of the agent", len(agent))
	}
	system, first, healing := agent[0].Messages[0].Content, "", agent[1].Messages[len(agent[1].Messages)-1].Content
	for _, m := range agent[0].Messages {
		first += m.Content
	}
	for what, missing := range map[string][]string{
		"the system prompt":  absent(system, "At least 2 of kind insight", "Citations:", "An output of at least 85 characters."),
		"the first request":  absent(first, "MODIFIER compare quarry", "SUBTASK compare quarry"),
		"the healing prompt": absent(healing, wholeGoal, "Attempt 2 of 3.", "Missing: Insufficient insights: 0 created (minimum 2)", "Quality: [accuracy] a figure is wrong", "Feedback of the reviewer: "),
	} {
		if len(missing) > 0 {
			t.Errorf("%s has no %q", what, missing)
		}
	}
	var verified []*harnessv1.QualityVerified
	for _, e := range s.Events {
		if v := e.GetQualityVerified(); v != nil {
			verified = append(verified, v)
		}
		if p := e.GetQualityPlanSelected(); p != nil && (p.GetPlan() != "compare quarry output across regions" || p.GetCandidatesCount() != 3) {
			t.Errorf("the plan is %v", p)
		}
	}
	if len(verified) != 2 || verified[0].GetScore() != 0.4 || verified[0].GetPassed() || !verified[0].GetContrastive() || verified[1].GetScore() != 0.9 || !verified[1].GetPassed() {
		t.Errorf("verified %v", verified)
	}
	checkStream(t, stream(t, s.ID))
}

// absent returns the texts that another text does not have.
func absent(text string, want ...string) []string {
	return slices.DeleteFunc(want, func(w string) bool { return strings.Contains(text, w) })
}

// checkStream fails the test unless the events have the seed's names, fields and order.
func checkStream(t *testing.T, body string) {
	t.Helper()
	fields := []struct{ name, fields string }{
		{"harness_complexity", "level reason subtask_count"},
		{"harness_plan_selected", "plan score candidates_count subtasks breakdown"},
		{"harness_contract", "passed score issues artifact_counts"},
		{"harness_verifier", "passed score issues feedback contrastive"},
		{"harness_rqs", "score grade label breakdown"},
		{"harness_retry", "attempt reason previous_score"},
		{"harness_contract", "passed score issues"},
		{"harness_verifier", "passed score issues"},
		{"harness_rqs", "score grade label breakdown"},
		{"harness_workspace_profile", "maturity total_runs avg_quality feedback_rate common_issues quality_multiplier"},
		{"context_metrics", "total_tool_calls cumulative_result_chars estimated_tool_result_tokens largest_result calls_per_tool"},
		{"harness_completed", "status"},
	}
	var got []string
	for _, e := range strings.Split(body, "\n\n") {
		name := ""
		for _, line := range strings.Split(e, "\n") {
			name = strings.TrimPrefix(line, "event: ")
			if name != line {
				break
			}
		}
		if n := len(got); n < len(fields) && name == fields[n].name {
			for _, field := range strings.Fields(fields[n].fields) {
				if !strings.Contains(e, `"`+field+`":`) {
					t.Errorf("%s has no %s: %s", name, field, e)
				}
			}
			got = append(got, name)
		}
	}
	if len(got) != len(fields) {
		t.Errorf("after %s no event is %s", got, fields[len(got)].name)
	}
}

// TestAlerts: the monitor reports at each checkpoint once, without a model.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text := "Sure, unfortunately I cannot do that. " + strings.Repeat("and so on and on ", 330)
	s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch {
		case purpose(req) == "complexity":
			return complexity("MEDIUM", nil)
		case purpose(req) == "verify":
			return verdict(0.9)
		case len(req.Messages) < 4 && number(req) == 1:
			return modeltest.Reply{Text: text, Calls: []modeltest.Call{insight("x")}}
		}
		return finish(text)
	}, withJudge("synthesis", "s1"))
	s.Want("DONE agent_done accepted")
	var got []string
	for _, e := range s.Events {
		if a := e.GetQualityAlert(); a != nil {
			got = append(got, fmt.Sprint(a.GetCheckpoint(), " ", a.GetSeverity()))
			if a.GetIssue() == "" || a.GetSuggestion() == "" {
				t.Errorf("the alert is %v", a)
			}
		}
	}
	if want := "500 critical, 500 warning, 2000 warning, 5000 warning"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if n := len(s.Requests) - len(of(s, "")); n != 2 {
		t.Errorf("%d calls of the judge", n)
	}
}

// TestNoAttemptIsGoodEnough: the best attempt is delivered, and the run is not accepted.
func TestNoAttemptIsGoodEnough(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch {
		case purpose(req) == "complexity":
			return complexity("SIMPLE", nil)
		case purpose(req) == "verify" && strings.Contains(req.Messages[1].Content, "first"):
			return verdict(0.5)
		case purpose(req) == "verify":
			return verdict(0.3)
		}
		return finish([]string{"The first.", "The second."}[number(req)-1])
	}, withJudge("chat"))
	s.Want("DONE agent_done")
	names := s.Names("quality.retry", "quality.degraded")
	if v := s.Result.GetQuality(); v.GetDelivered() != 1 || v.GetAttempts() != 2 || !v.GetDegraded() || content.Text(s.Result.GetAnswer()) != "The first." || fmt.Sprint(names) != "[quality.retry quality.degraded]" {
		t.Errorf("%s, delivered %v, verdict %v", names, s.Result.GetAnswer(), v)
	}
}

// TestIterations: the best of two passes is delivered, and reported once.
func TestIterations(t *testing.T) {
	t.Parallel()
	good, worse := "The first answer, which is long enough to count as one.", "The other answer, which is long enough to count too."
	s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch {
		case purpose(req) == "complexity":
			return complexity("SIMPLE", nil)
		case purpose(req) == "verify" && strings.Contains(req.Messages[1].Content, good):
			return verdict(0.9)
		case purpose(req) == "verify":
			return verdict(0.7)
		case slices.ContainsFunc(req.Messages, func(m modeltest.RequestMessage) bool { return m.Role == "assistant" }):
			return finish(worse)
		}
		return finish(good)
	}, withJudge("chat"), func(s *harnessv1.RunSpec) { s.Config.Quality.Iterations = proto.Uint32(2) })
	s.Want("DONE agent_done accepted")
	if v := s.Result.GetQuality(); v.GetIterations() != 2 || content.Text(s.Result.GetAnswer()) != good || len(s.Names("quality.iterated")) != 1 {
		t.Errorf("%v, delivered %v", v, s.Result.GetAnswer())
	}
}

// TestProfile: the tenth segment of a profile is a milestone, and the segments up to it have lower
// requirements.
func TestProfile(t *testing.T) {
	t.Parallel()
	text := "An answer that is long enough, and that a user reads once."
	play := func(n int) (s *live.Transcript) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s = live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
				switch purpose(req) {
				case "complexity":
					return complexity("SIMPLE", live.Args{"min_output_chars": 60})
				case "verify":
					return verdict(0.9)
				}
				return finish(text)
			}, withJudge("chat"), func(s *harnessv1.RunSpec) { s.Task.Profile = "profile-of-the-test" })
			s.Want("DONE agent_done accepted")
		})
		return s
	}
	milestones := 0
	for n := 1; n <= 10; n++ {
		s := play(n)
		if t.Failed() {
			return
		}
		for _, e := range s.Events {
			if m := e.GetQualityMilestone(); m != nil {
				milestones++
				if n != 10 || m.GetThreshold() != 10 || m.GetLevel() != "developing" || m.GetQualityMultiplier() != 1 {
					t.Errorf("segment %d: milestone %v", n, m)
				}
			}
		}
		if got := of(s, "")[0].Messages[0].Content; !strings.Contains(got, "at least 51 characters") {
			t.Errorf("segment %d: the system prompt has no scaled length", n)
		}
	}
	if milestones != 1 {
		t.Errorf("%d milestones", milestones)
	}
}
