package quality_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

func TestParsePlansTakesTheFirstThreeThatAreUsable(t *testing.T) {
	four := `[{"description":"a"},{"description":" "},7,{"prompt_modifier":"b"},{"description":"c","estimated_turns":0},{"description":"d"}]`
	for _, text := range []string{four, "```json\n" + four + "\n```", `see [1]: {"plans":` + four + `} ok`} {
		var names []string
		for _, p := range quality.ParsePlans(text) {
			names = append(names, p.GetDescription())
			if p.GetEstimatedTurns() != 1 {
				t.Errorf("%v", p)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("%s: %v", text, names)
		}
	}
	for _, text := range []string{"", "none", "[]", `{"plans":"x"}`, `[{"description":"cut`, `[1,2]`} {
		if got := quality.ParsePlans(text); got != nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestParsePlansBoundsTexts(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	subtasks := strings.TrimSuffix(strings.Repeat(`"`+long+`",`, 12), ",")
	p := quality.ParsePlans(`[{"description":"` + long + `","prompt_modifier":"` + long + `","subtasks":["x"],"suggested_workflow":"Deep Dive","estimated_turns":4.9}]`)[0]
	if len(p.GetDescription()) != 2000 || len(p.GetPromptModifier()) != 4000 || p.GetSuggestedWorkflow() != "Deep Dive" || p.GetEstimatedTurns() != 4 {
		t.Errorf("%d %d %q %d", len(p.GetDescription()), len(p.GetPromptModifier()), p.GetSuggestedWorkflow(), p.GetEstimatedTurns())
	}
	short := strings.ReplaceAll(subtasks, long, strings.Repeat("s", 400))
	p = quality.ParsePlans(`[{"description":"d","subtasks":[7,"",` + short + `]}]`)[0]
	if len(p.GetSubtasks()) != 10 || len(p.GetSubtasks()[0]) > 300 {
		t.Errorf("%d subtasks, %d bytes", len(p.GetSubtasks()), len(p.GetSubtasks()[0]))
	}
}

func TestScorePlanWeighsItsParts(t *testing.T) {
	for _, c := range []struct {
		name string
		plan *harnessv1.PlanCandidate
		on   quality.Ground
		want quality.PlanScore
	}{
		{"everything", &harnessv1.PlanCandidate{Description: "Compare PRICES", PromptModifier: "and churn", SuggestedWorkflow: "synthesis", EstimatedTurns: 1},
			quality.Ground{Kind: "synthesis", Sources: 1, Query: "compare prices, churn!"}, quality.PlanScore{Coverage: 1, Feasibility: 1, Efficiency: 1,
				Alignment: 1, Total: 1}},
		{"half of the words", &harnessv1.PlanCandidate{Description: "prices", EstimatedTurns: 4}, quality.Ground{Kind: "synthesis", Query: "prices churn"},
			quality.PlanScore{Coverage: 0.5, Feasibility: 0.2, Efficiency: 0.25, Total: 0.175 + 0.05 + 0.05}},
		{"no keywords", &harnessv1.PlanCandidate{SuggestedWorkflow: "full_pipeline"}, quality.Ground{Kind: "recommendation", Query: "do it about this"},
			quality.PlanScore{Coverage: 1, Feasibility: 0.3, Efficiency: 1, Alignment: 0.5, Total: 0.35 + 0.075 + 0.2 + 0.1}},
		{"full pipeline asked", &harnessv1.PlanCandidate{SuggestedWorkflow: "chat"}, quality.Ground{Kind: "full_pipeline"},
			quality.PlanScore{Coverage: 1, Feasibility: 0.2, Efficiency: 1, Alignment: 0.5, Total: 0.35 + 0.05 + 0.2 + 0.1}},
	} {
		got := quality.ScorePlan(c.plan, c.on)
		if math.Abs(got.Total-c.want.Total) > 1e-12 {
			t.Errorf("%s: total %v, expected %v", c.name, got.Total, c.want.Total)
		}
		if got.Total = c.want.Total; got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.name, got, c.want)
		}
	}
}

func TestFeasibilityDependsOnTheMaterial(t *testing.T) {
	for _, c := range []struct {
		on   quality.Ground
		want float64
	}{
		{quality.Ground{Kind: "chat"}, 1},
		{quality.Ground{Kind: "synthesis"}, 0.2}, {quality.Ground{Kind: "synthesis", Insights: 1}, 0.2}, {quality.Ground{Kind: "synthesis", Sources: 1}, 1},
		{quality.Ground{Kind: "full_pipeline"}, 0.2}, {quality.Ground{Kind: "full_pipeline", Sources: 1}, 1},
		{quality.Ground{Kind: "recommendation"}, 0.3}, {quality.Ground{Kind: "recommendation", Insights: 1}, 1}, {quality.Ground{Kind: "recommendation", Sources: 1}, 1},
		{quality.Ground{Kind: "drafting"}, 0.5}, {quality.Ground{Kind: "drafting", Insights: 1}, 1}, {quality.Ground{Kind: "drafting", Sources: 1}, 1},
		{quality.Ground{Kind: "triage", OwnKind: true}, 1},
	} {
		if got := quality.ScorePlan(nil, c.on).Feasibility; got != c.want {
			t.Errorf("%+v: %v", c.on, got)
		}
	}
}

func TestChoosePlanTakesTheFirstOfEquals(t *testing.T) {
	on := quality.Ground{Kind: "chat", Query: "count apples"}
	first := &harnessv1.PlanCandidate{Description: "count apples", EstimatedTurns: 2}
	second := &harnessv1.PlanCandidate{Description: "apples count", EstimatedTurns: 2}
	better := &harnessv1.PlanCandidate{Description: "count apples", EstimatedTurns: 1}
	if got, _ := quality.ChoosePlan([]*harnessv1.PlanCandidate{first, second}, on); got != first {
		t.Errorf("%v", got)
	}
	if got, score := quality.ChoosePlan([]*harnessv1.PlanCandidate{first, better}, on); got != better || score != quality.ScorePlan(better, on) {
		t.Errorf("%v", got)
	}
	got, score := quality.ChoosePlan(nil, quality.Ground{Kind: "drafting", Sources: 1, Query: "count apples"})
	if got.GetDescription() != "Execute drafting workflow directly" || len(got.GetSubtasks()) > 0 || got.GetPromptModifier() != "" || score.Alignment != 1 {
		t.Errorf("%v %+v", got, score)
	}
}

func TestKeywords(t *testing.T) {
	got := quality.Keywords("Which PRICES über-allem? a1b2 prices, the 2024-report; don't with")
	if want := []string{"prices", "über", "allem", "a1b2", "2024", "report"}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	for _, word := range strings.Fields(quality.StopWords) {
		if len(quality.Keywords(word)) > 0 || len(word) < 4 {
			t.Errorf("stop word %s", word)
		}
	}
}

// TestChoiceOfPlansIgnoresTheirOrder but for ties, of which the first wins.
func TestChoiceOfPlansIgnoresTheirOrder(t *testing.T) {
	words := []string{"compare", "prices", "churn", "interviews", "report", "x"}
	kinds := []string{"chat", "synthesis", "full_pipeline", "drafting", ""}
	rapid.Check(t, func(t *rapid.T) {
		g := quality.Ground{
			Kind: rapid.SampledFrom(kinds[:4]).Draw(t, "kind"), Sources: rapid.IntRange(0, 3).Draw(t, "sources"),
			Query: strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 5).Draw(t, "query"), " "),
		}
		var plans []*harnessv1.PlanCandidate
		for i := range rapid.IntRange(1, 3).Draw(t, "plans") {
			plans = append(plans, &harnessv1.PlanCandidate{
				Description:       strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "description"), " "),
				SuggestedWorkflow: rapid.SampledFrom(kinds).Draw(t, "suggested"), EstimatedTurns: rapid.Uint32Range(0, 4).Draw(t, "turns"),
				Subtasks: []string{strconv.Itoa(i)},
			})
		}
		_, score := quality.ChoosePlan(plans, g)
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			var other []*harnessv1.PlanCandidate
			for _, i := range order {
				if i < len(plans) {
					other = append(other, plans[i])
				}
			}
			got, same := quality.ChoosePlan(other, g)
			if same.Total != score.Total {
				t.Fatalf("in the order %v the best scores %v, not %v", order, same, score)
			}
			first := slices.IndexFunc(other, func(p *harnessv1.PlanCandidate) bool { return quality.ScorePlan(p, g).Total == score.Total })
			if got != other[first] {
				t.Fatalf("in the order %v %v is chosen, expected %v", order, got, other[first])
			}
		}
	})
}
