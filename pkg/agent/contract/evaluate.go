package contract

import (
	"slices"
	"strconv"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Limits of a gap report, which is in an event and in the model's next request.
const (
	// maxExplained bounds the outputs with a description and a reason; further outputs
	// have their id only.
	maxExplained   = 50
	maxDescription = 160
	maxSuggestions = 20
)

// Verdict is the result of an evaluation.
type Verdict struct {
	// Satisfied is true if nothing is missing: no output, and no answer to a required
	// question.
	Satisfied bool
	// Gap names the unmet requirements, with all questions without an answer; never nil, and empty if
	// the contract is satisfied.
	Gap *harnessv1.GapReport
	// Coverage counts the outputs that count as met.
	Coverage *harnessv1.Coverage
	// Ask has the required questions without an answer, in the order of the contract.
	Ask []*harnessv1.UserQuestion
}

// Evaluate decides from the ledger alone whether a resolved contract is satisfied. An
// output without an entry in the ledger is unmet.
func Evaluate(c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) Verdict {
	v := Verdict{Gap: &harnessv1.GapReport{}, Coverage: &harnessv1.Coverage{Total: uint32(len(c.GetRequiredOutputs()))}} //nolint:gosec // limited by the contract
	find := finder(c, l)
	var missing, blank []int // indices of required outputs that are not met, and of those that are unknown
	for i, o := range c.GetRequiredOutputs() {
		seen := find(i)
		switch {
		case countsAsMet(c.GetAcceptability(), seen):
			v.Coverage.Met++
			continue
		case o.GetOptional():
		case seen.GetUnknown():
			blank = append(blank, i)
			missing = append(missing, i)
		default:
			missing = append(missing, i)
		}
		v.Coverage.Unmet = append(v.Coverage.Unmet, o.GetId())
	}
	v.Gap.UnmetRequirements = make([]*harnessv1.UnmetRequirement, 0, len(missing))
	tolerated := uint64(len(blank)) <= uint64(c.GetAcceptability().GetMaxUnknowns())
	for _, i := range missing {
		if seen := find(i); !tolerated || !seen.GetUnknown() {
			report(v.Gap, c, c.GetRequiredOutputs()[i], seen)
		}
	}
	v.Ask = OpenQuestions(c, l)
	if v.Satisfied = len(v.Gap.UnmetRequirements) == 0 && len(v.Ask) == 0; v.Satisfied {
		return v
	}
	for _, q := range c.GetQuestions() {
		if !hasAnswer(l, q.GetId()) {
			v.Gap.UnansweredQuestions = append(v.Gap.UnansweredQuestions, clip(q.GetQuestion(), maxWhy))
		}
	}
	return v
}

// OpenQuestions returns the required questions without an answer, in the order of the
// contract.
func OpenQuestions(c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) []*harnessv1.UserQuestion {
	var open []*harnessv1.UserQuestion
	for _, q := range c.GetQuestions() {
		if q.GetRequired() && !hasAnswer(l, q.GetId()) {
			open = append(open, q)
		}
	}
	return open
}

func hasAnswer(l *harnessv1.CoverageLedger, question string) bool {
	return slices.ContainsFunc(l.GetAnswers(), func(a *harnessv1.QuestionAnswer) bool { return a.GetQuestionId() == question })
}

// finder returns a function that finds the coverage of an output. The ledger is in the
// order of the contract, unless a client wrote it.
func finder(c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) func(i int) *harnessv1.RequirementCoverage {
	var byID map[string]*harnessv1.RequirementCoverage
	return func(i int) *harnessv1.RequirementCoverage {
		id, all := c.GetRequiredOutputs()[i].GetId(), l.GetRequirements()
		if i < len(all) && all[i].GetRequirementId() == id {
			return all[i]
		}
		if byID == nil {
			byID = make(map[string]*harnessv1.RequirementCoverage, len(all))
			for _, r := range all {
				byID[r.GetRequirementId()] = r
			}
		}
		return byID[id]
	}
}

func countsAsMet(a *harnessv1.Acceptability, seen *harnessv1.RequirementCoverage) bool {
	if seen.GetUnknown() || seen.GetConfidence() < minConfidence(a) {
		return false
	}
	switch seen.GetStatus() {
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET:
		return true
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET:
		return a.GetAllowPartial()
	default:
		return false
	}
}

func minConfidence(a *harnessv1.Acceptability) float64 {
	if a == nil || a.MinConfidence == nil {
		return defaultMinConfidence
	}
	return a.GetMinConfidence()
}

func report(gap *harnessv1.GapReport, c *harnessv1.TaskContract, o *harnessv1.RequiredOutput, seen *harnessv1.RequirementCoverage) {
	entry := &harnessv1.UnmetRequirement{Id: o.GetId()}
	gap.UnmetRequirements = append(gap.UnmetRequirements, entry)
	if len(gap.UnmetRequirements) > maxExplained {
		return
	}
	entry.Description = clip(o.GetDescription(), maxDescription)
	entry.Why = why(c.GetAcceptability(), seen)
	if len(gap.Suggestions) < maxSuggestions {
		if text := suggestion(o, seen); text != "" {
			gap.Suggestions = append(gap.Suggestions, text)
		}
	}
}

// why returns the reason why an output does not count as met.
func why(a *harnessv1.Acceptability, seen *harnessv1.RequirementCoverage) string {
	text := clip(seen.GetWhy(), maxWhy)
	if seen.GetUnknown() {
		return text
	}
	prefix := ""
	switch seen.GetStatus() {
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET:
		return "met with a confidence of " + number(seen.GetConfidence()) + ", where at least " + number(minConfidence(a)) + " is needed"
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET:
		if a.GetAllowPartial() {
			return "met in part with a confidence of " + number(seen.GetConfidence()) + ", where at least " + number(minConfidence(a)) + " is needed"
		}
		prefix = "met in part only"
	case harnessv1.RequirementStatus_REQUIREMENT_STATUS_SKIPPED:
		prefix = "left out, and it is required"
	default: // not met, or not checked yet
	}
	switch {
	case prefix == "" && text == "":
		return "not looked at yet"
	case prefix == "":
		return text
	case text == "":
		return prefix
	}
	return clip(prefix+": "+text, maxWhy)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }

// suggestion returns the step that would meet an output; empty if its description
// already names the step.
func suggestion(o *harnessv1.RequiredOutput, seen *harnessv1.RequirementCoverage) string {
	p, id := o.GetPredicate(), " ("+o.GetId()+")."
	if seen.GetUnknown() {
		return o.GetId() + " could not be checked. It is checked again when you next finish; mend what stands in its way if you can."
	}
	switch p.GetType() {
	case fileExists:
		return "Write the file " + clip(p.GetPath(), 120) + id
	case containsText:
		pattern := "/" + clip(p.GetPattern(), 100) + "/" + id
		switch in := placeOf(p); in.kind {
		case inTranscript:
			return "Bring about a tool result or an answer that matches " + pattern
		case inArtifact, inFile:
			return "Work on " + in.String() + " until it contains text that matches " + pattern
		default: // a response, below
		}
		return "Give a final answer with text that matches " + pattern
	case toolSuccess:
		return "Call " + (&output{spec: o}).shownCall() + " and make it succeed; only the latest such call counts" + id
	case command:
		return "Make this command exit with 0; it is run again when you next finish: " + clip(p.GetCommand(), 120) + id
	case schemaValid:
		return "Make " + placeOf(p).String() + " valid JSON that fits its schema" + id
	case artifactCount:
		return "Save with " + workitem.SaveArtifact + ": " + CountText(p) + id
	case custom:
		if p.GetCel() != "" {
			return "Make this hold: " + clip(p.GetCel(), 160) + id
		}
	default: // always_true cannot fail
	}
	return ""
}
