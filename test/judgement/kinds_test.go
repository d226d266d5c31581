package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestKindsRequire: what each kind requires of work in a new workspace with 12 sources, and its
// number of attempts.
func TestKindsRequire(t *testing.T) {
	t.Parallel()
	const (
		insights        = "Insufficient insights: 0 created (minimum 8)"
		recommendations = "Insufficient recommendations: 0 created (minimum 1)"
		documents       = "Insufficient documents: 0 created (minimum 1)"
		citations       = "Citations required but none found"
		artifacts       = "No artifacts created"
	)
	chars := func(n int) string { return fmt.Sprintf("minimum %d", n) }
	var sources []string
	for n := range 12 {
		sources = append(sources, fmt.Sprint("s", n))
	}
	for kind, c := range map[string]struct {
		want     []string
		attempts uint32
	}{
		"synthesis":      {[]string{insights, citations, artifacts, chars(85)}, 3},
		"recommendation": {[]string{recommendations, artifacts, chars(85)}, 3},
		"drafting":       {[]string{documents, artifacts, chars(170)}, 3},
		"full_pipeline":  {[]string{insights, recommendations, documents, citations, artifacts, chars(170)}, 3},
		"chat":           {[]string{chars(50)}, 2},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
				switch purpose(req) {
				case "complexity":
					return complexity("MEDIUM", nil)
				case "verify":
					return verdict(0.6)
				}
				return finish(fmt.Sprint("No ", number(req)))
			}, withJudge(kind, sources...))
			s.Want("DONE agent_done")
			for _, e := range s.Events {
				got := e.GetQualityContract()
				if got == nil {
					continue
				}
				if got.GetPassed() || got.GetScore() != 0 || len(got.GetIssues()) != len(c.want) {
					t.Errorf("contract %v", got)
				}
				for _, want := range c.want {
					if !slices.ContainsFunc(got.GetIssues(), func(issue string) bool { return strings.Contains(issue, want) }) {
						t.Errorf("no issue has %q: %q", want, got.GetIssues())
					}
				}
			}
			if got := s.Result.GetQuality().GetAttempts(); got != c.attempts {
				t.Errorf("%d attempts, want %d", got, c.attempts)
			}
		})
	}
}

// TestPlannerIsDown: without plans, complex work is done directly.
func TestPlannerIsDown(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch purpose(req) {
		case "complexity":
			return complexity("COMPLEX", nil)
		case "plan":
			return modeltest.Reply{Status: 401, ErrorMessage: "the key has expired"}
		case "verify":
			return verdict(0.9)
		}
		return finish("An answer that is long enough to count as one of a chat.")
	}, withJudge("chat"))
	s.Want("DONE agent_done accepted")
	i := slices.IndexFunc(s.Events, func(e *harnessv1.Event) bool { return e.GetQualityPlanSelected() != nil })
	if i < 0 {
		t.Fatal("no plan is selected")
	}
	p := s.Events[i].GetQualityPlanSelected()
	if p.GetPlan() != "Execute chat workflow directly" || p.GetCandidatesCount() != 1 || !strings.HasPrefix(p.GetReason(), "[is_fallback] ") {
		t.Errorf("the plan is %v", p)
	}
}

// TestSimpleWorkHasNoPlan: work that is not complex costs one call before it begins.
func TestSimpleWorkHasNoPlan(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
		switch purpose(req) {
		case "complexity":
			return complexity("SIMPLE", nil)
		case "verify":
			return verdict(0.9)
		}
		return finish("An answer that is long enough to count as one of a chat.")
	}, withJudge("chat"))
	s.Want("DONE agent_done accepted")
	if len(of(s, "plan")) > 0 || len(s.Names("quality.plan_selected", "quality.alert", "quality.retry")) > 0 || len(s.Requests) != 3 {
		t.Errorf("%d requests, %s", len(s.Requests), s.Names())
	}
}
