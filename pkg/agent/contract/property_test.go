package contract

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// isConsistent checks what holds for every verdict.
func isConsistent(t interface{ Errorf(string, ...any) }, c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) Verdict {
	v := Evaluate(c, l)
	if empty := len(v.Gap.GetUnmetRequirements()) == 0 && len(v.Gap.GetUnansweredQuestions()) == 0 && len(v.Gap.GetSuggestions()) == 0; v.Satisfied != (empty && len(v.Ask) == 0) {
		t.Errorf("satisfied is %v with %v and %v", v.Satisfied, v.Gap, v.Ask)
	}
	if n := len(c.GetRequiredOutputs()); int(v.Coverage.GetTotal()) != n || int(v.Coverage.GetMet())+len(v.Coverage.GetUnmet()) != n {
		t.Errorf("the coverage of %d outputs is %v", n, v.Coverage)
	}
	text := GapText(v.Gap)
	if (text == "") != v.Satisfied || len(text) > 6000 || !utf8.ValidString(text) {
		t.Errorf("satisfied is %v, and the gap has %d bytes", v.Satisfied, len(text))
	}
	if size := proto.Size(v.Gap); size > 64<<10 {
		t.Errorf("the gap report has %d bytes", size)
	}
	return v
}

// coverages draws a coverage.
func coverages(id string) *rapid.Generator[*harnessv1.RequirementCoverage] {
	return rapid.Custom(func(t *rapid.T) *harnessv1.RequirementCoverage {
		return &harnessv1.RequirementCoverage{
			RequirementId: id, Status: harnessv1.RequirementStatus(rapid.IntRange(0, 4).Draw(t, "status")),
			Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"), Unknown: rapid.Bool().Draw(t, "unknown"),
			Why: rapid.StringN(0, 40, 400).Draw(t, "why"),
		}
	})
}

func drawn(t *rapid.T) (*harnessv1.TaskContract, *harnessv1.CoverageLedger) {
	c := &harnessv1.TaskContract{Acceptability: &harnessv1.Acceptability{
		MaxUnknowns: proto.Uint32(rapid.Uint32Range(0, 3).Draw(t, "unknowns")), MinConfidence: proto.Float64(rapid.Float64Range(0, 1).Draw(t, "min")),
		AllowPartial: proto.Bool(rapid.Bool().Draw(t, "partial")),
	}}
	for i := range rapid.IntRange(0, 8).Draw(t, "outputs") {
		c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprint("o", i), Optional: rapid.Bool().Draw(t, "optional")})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "questions") {
		c.Questions = append(c.Questions, &harnessv1.UserQuestion{Id: fmt.Sprint("q", i), Question: "?", Required: proto.Bool(rapid.Bool().Draw(t, "required"))})
	}
	c = Resolve(c)
	l := NewLedger(c)
	for _, o := range c.GetRequiredOutputs() {
		Record(l, []*harnessv1.RequirementCoverage{coverages(o.GetId()).Draw(t, "coverage")}, 1)
	}
	for _, q := range c.GetQuestions() {
		if rapid.Bool().Draw(t, "answered") {
			l.Answers = append(l.Answers, &harnessv1.QuestionAnswer{QuestionId: q.GetId()})
		}
	}
	return c, l
}

func TestMoreMetOutputsNeverWorsenTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawn(t)
		before := isConsistent(t, c, l)
		if n := len(c.GetRequiredOutputs()); n > 0 {
			id := c.GetRequiredOutputs()[rapid.IntRange(0, n-1).Draw(t, "which")].GetId()
			Record(l, []*harnessv1.RequirementCoverage{{RequirementId: id, Status: isMet, Confidence: 1}}, 2)
		}
		for _, q := range c.GetQuestions() {
			l.Answers = append(l.Answers, &harnessv1.QuestionAnswer{QuestionId: q.GetId()})
		}
		after := isConsistent(t, c, l)
		if before.Satisfied && !after.Satisfied || after.Coverage.GetMet() < before.Coverage.GetMet() || len(after.Ask) > 0 ||
			len(after.Gap.GetUnmetRequirements()) > len(before.Gap.GetUnmetRequirements()) {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

func TestLaxerAcceptabilityNeverWorsensTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawn(t)
		before := isConsistent(t, c, l)
		a := c.Acceptability
		a.MaxUnknowns = proto.Uint32(a.GetMaxUnknowns() + rapid.Uint32Range(0, 2).Draw(t, "more"))
		a.MinConfidence = proto.Float64(a.GetMinConfidence() * rapid.Float64Range(0, 1).Draw(t, "less"))
		a.AllowPartial = proto.Bool(true)
		if after := isConsistent(t, c, l); before.Satisfied && !after.Satisfied || after.Coverage.GetMet() < before.Coverage.GetMet() {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}
