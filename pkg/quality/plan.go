package quality

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	maxPlans       = 3
	maxDescription = 2000 // bytes
	maxModifier    = 4000 // bytes
	maxSubtasks    = 10
	maxSubtask     = 300 // bytes
	maxSuggested   = 64  // bytes
	maxTurns       = 1000
	minKeyword     = 4 // code points
)

// Weights of a plan's score.
const (
	weightCoverage    = 0.35
	weightFeasibility = 0.25
	weightEfficiency  = 0.20
	weightAlignment   = 0.20
)

// Ground is what a plan is scored against.
type Ground struct {
	Kind     string // of the work
	OwnKind  bool   // the kind is the agent's
	Sources  int    // of the task
	Insights int    // that exist
	Query    string // the goal
}

// PlanScore is the score of a plan and its parts, each 0 to 1.
type PlanScore struct {
	Coverage, Feasibility, Efficiency, Alignment, Total float64
}

// ParsePlans reads a model's answer to PlanJob: a JSON array of plans or an object with
// plans, with or without text around it. It returns the first three that have a description
// or a modifier.
func ParsePlans(text string) []*harnessv1.PlanCandidate {
	for _, value := range values(text) {
		elements := list(value)
		if elements == nil {
			elements = list(object(value)["plans"])
		}
		if plans := candidates(elements); len(plans) > 0 {
			return plans
		}
	}
	return nil
}

func candidates(elements []json.RawMessage) []*harnessv1.PlanCandidate {
	var plans []*harnessv1.PlanCandidate
	for _, element := range elements {
		o := object(element)
		description, modifier := content.Cut(o.text("description"), maxDescription), content.Cut(o.text("prompt_modifier"), maxModifier)
		if description == "" {
			description = content.Line(modifier, maxSubtask)
		}
		if description == "" || len(plans) == maxPlans {
			continue
		}
		p := &harnessv1.PlanCandidate{
			Description: description, PromptModifier: modifier, Subtasks: o.strings("subtasks", maxSubtasks, maxSubtask),
			SuggestedWorkflow: content.Cut(o.text("suggested_workflow"), maxSuggested), EstimatedTurns: 1,
		}
		if n := o.figure("estimated_turns", 1, maxTurns); n != nil {
			p.EstimatedTurns = *n
		}
		plans = append(plans, p)
	}
	return plans
}

// ChoosePlan returns the plan with the highest total, the first of equals, and its score.
// Without plans it returns one that has no modifier.
func ChoosePlan(plans []*harnessv1.PlanCandidate, g Ground) (chosen *harnessv1.PlanCandidate, score PlanScore) {
	if len(plans) == 0 {
		plans = []*harnessv1.PlanCandidate{{Description: "Execute " + g.Kind + " workflow directly", SuggestedWorkflow: g.Kind, EstimatedTurns: 1}}
	}
	for _, p := range plans {
		if s := ScorePlan(p, g); chosen == nil || s.Total > score.Total {
			chosen, score = p, s
		}
	}
	return chosen, score
}

// ScorePlan scores a plan: 0.35 coverage, 0.25 feasibility, 0.20 efficiency and 0.20
// alignment. The products are rounded before they are added, so that every processor
// computes the same.
func ScorePlan(p *harnessv1.PlanCandidate, g Ground) PlanScore {
	s := PlanScore{
		Coverage:    coverage(p, g.Query),
		Feasibility: feasibility(g),
		Efficiency:  1 / float64(max(1, p.GetEstimatedTurns())),
		Alignment:   alignment(p.GetSuggestedWorkflow(), g.Kind),
	}
	s.Total = float64(weightCoverage*s.Coverage) + float64(weightFeasibility*s.Feasibility) +
		float64(weightEfficiency*s.Efficiency) + float64(weightAlignment*s.Alignment)
	return s
}

// coverage is the share of the query's keywords that the plan has.
func coverage(p *harnessv1.PlanCandidate, query string) float64 {
	needed := Keywords(query)
	if len(needed) == 0 {
		return 1
	}
	has := map[string]bool{}
	for _, word := range Keywords(p.GetDescription() + "\n" + p.GetPromptModifier()) {
		has[word] = true
	}
	found := 0
	for _, word := range needed {
		if has[word] {
			found++
		}
	}
	return float64(found) / float64(len(needed))
}

// feasibility is lower for work that lacks what it is made from.
func feasibility(g Ground) float64 {
	if g.OwnKind {
		return 1
	}
	with := func(has bool, without float64) float64 {
		if has {
			return 1
		}
		return without
	}
	switch g.Kind {
	case Synthesis, FullPipeline:
		return with(g.Sources > 0, 0.2)
	case Recommendation:
		return with(g.Sources > 0 || g.Insights > 0, 0.3)
	case Drafting:
		return with(g.Sources > 0 || g.Insights > 0, 0.5)
	}
	return 1
}

// alignment compares the kind that a plan suggests with that of the work.
func alignment(suggested, kind string) float64 {
	switch {
	case suggested == kind:
		return 1
	case suggested == FullPipeline || kind == FullPipeline:
		return 0.5
	}
	return 0
}

// Keywords returns the distinct runs of at least 4 letters or digits of text in lower case,
// in order, without StopWords.
func Keywords(text string) []string {
	var words []string
	known := map[string]bool{}
	for _, word := range wordsOf(text) {
		if utf8.RuneCountInString(word) < minKeyword || known[word] || stopWord[word] {
			continue
		}
		known[word] = true
		words = append(words, word)
	}
	return words
}

// wordsOf returns the runs of letters and digits of text, in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
