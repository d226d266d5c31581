package contract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ledgerOf returns a ledger with the given coverages of the outputs of c, in order.
func ledgerOf(c *harnessv1.TaskContract, of ...*harnessv1.RequirementCoverage) *harnessv1.CoverageLedger {
	l := NewLedger(c)
	for i, seen := range of {
		seen = proto.CloneOf(seen)
		seen.RequirementId = c.GetRequiredOutputs()[i].GetId()
		Record(l, []*harnessv1.RequirementCoverage{seen}, 3)
	}
	return l
}

func TestAcceptabilityChangesTheVerdict(t *testing.T) {
	yes := &harnessv1.RequirementCoverage{Status: isMet, Confidence: 1}
	word := &harnessv1.RequirementCoverage{Status: isMet, Confidence: 0.6}
	part := &harnessv1.RequirementCoverage{Status: partly, Confidence: 1, Why: "half of it"}
	left := &harnessv1.RequirementCoverage{Status: skipped, Confidence: 1}
	no := &harnessv1.RequirementCoverage{Status: isUnmet, Confidence: 1, Why: "not there"}
	dark := &harnessv1.RequirementCoverage{Status: isUnmet, Unknown: true, Why: "host away"}
	for _, c := range []struct {
		name          string
		acceptability string
		optional      string // Ids.
		coverage      []*harnessv1.RequirementCoverage
		satisfied     bool
		met           int
		gap           string
	}{
		{"all met", `{}`, "", []*harnessv1.RequirementCoverage{yes, word}, true, 2, ""},
		{"one unmet", `{}`, "", []*harnessv1.RequirementCoverage{yes, no}, false, 1, "o1: not there"},
		{"nobody looked", `{}`, "", nil, false, 0, "o0: not looked at yet|o1: not looked at yet"},
		{"an optional one unmet", `{}`, "o1", []*harnessv1.RequirementCoverage{yes, no}, true, 1, ""},
		{"an optional one met", `{}`, "o1", []*harnessv1.RequirementCoverage{yes, yes}, true, 2, ""},
		{"an optional one unknown", `{}`, "o1", []*harnessv1.RequirementCoverage{yes, dark}, true, 1, ""},
		{"the model's word is not enough", `{"min_confidence": 0.9}`, "", []*harnessv1.RequirementCoverage{yes, word}, false, 1,
			"o1: met with a confidence of 0.6, where at least 0.9 is needed"},
		{"no confidence is asked for", `{"min_confidence": 0}`, "", []*harnessv1.RequirementCoverage{{Status: isMet}, yes}, true, 2, ""},
		{"in part", `{}`, "", []*harnessv1.RequirementCoverage{part, yes}, false, 1, "o0: met in part only: half of it"},
		{"in part is allowed", `{"allow_partial": true}`, "", []*harnessv1.RequirementCoverage{part, yes}, true, 2, ""},
		{"in part is allowed but not sure", `{"allow_partial": true}`, "", []*harnessv1.RequirementCoverage{{Status: partly, Confidence: 0.5}, yes}, false, 1,
			"o0: met in part with a confidence of 0.5, where at least 0.6 is needed"},
		{"left out", `{"allow_partial": true}`, "", []*harnessv1.RequirementCoverage{left, yes}, false, 1, "o0: left out, and it is required"},
		{"an optional one left out", `{}`, "o0", []*harnessv1.RequirementCoverage{left, yes}, true, 1, ""},
		{"unknown", `{}`, "", []*harnessv1.RequirementCoverage{dark, yes}, false, 1, "o0: host away"},
		{"unknown is tolerated", `{"max_unknowns": 1}`, "", []*harnessv1.RequirementCoverage{dark, yes}, true, 1, ""},
		{"more unknown than tolerated", `{"max_unknowns": 1}`, "", []*harnessv1.RequirementCoverage{dark, dark}, false, 0, "o0: host away|o1: host away"},
		{"unmet beside a tolerated one", `{"max_unknowns": 1}`, "", []*harnessv1.RequirementCoverage{dark, no}, false, 0, "o1: not there"},
		{"met by an unknown check", `{}`, "", []*harnessv1.RequirementCoverage{{Status: isMet, Confidence: 1, Unknown: true, Why: "?"}, yes}, false, 1, "o0: ?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			contract := Resolve(parse(t, `{"required_outputs": [{"id": "o0"}, {"id": "o1"}], "acceptability": `+c.acceptability+`}`))
			for _, o := range contract.GetRequiredOutputs() {
				o.Optional = o.GetId() == c.optional
			}
			v := isConsistent(t, contract, ledgerOf(contract, c.coverage...))
			var gap []string
			for _, u := range v.Gap.GetUnmetRequirements() {
				gap = append(gap, u.GetId()+": "+u.GetWhy())
			}
			if v.Satisfied != c.satisfied || int(v.Coverage.GetMet()) != c.met || strings.Join(gap, "|") != c.gap {
				t.Errorf("%v, %v, %q", v.Satisfied, v.Coverage, gap)
			}
		})
	}
}

func TestRequiredQuestionsStayOpenUntilAnswered(t *testing.T) {
	c := Resolve(parse(t, `{"questions": [{"id": "a", "question": "A?", "required": true}, {"id": "b", "question": "B?"}, {"id": "c", "question": "C?", "required": true}]}`))
	l := NewLedger(c)
	v := isConsistent(t, c, l)
	if v.Satisfied || len(v.Ask) != 2 || v.Ask[0].GetId() != "a" || v.Ask[1].GetId() != "c" || fmt.Sprint(v.Gap.GetUnansweredQuestions()) != "[A? B? C?]" {
		t.Errorf("%+v", v)
	}
	l.Answers = []*harnessv1.QuestionAnswer{{QuestionId: "c", Answer: inline("x")}, {QuestionId: "a"}}
	if v := isConsistent(t, c, l); !v.Satisfied {
		t.Errorf("after the answers: %+v", v)
	}
}

func TestMissingLedgerEntryIsUnmet(t *testing.T) {
	c := Resolve(parse(t, `{"requirements": ["x", "y"]}`))
	if v := isConsistent(t, c, nil); v.Satisfied || len(v.Gap.GetUnmetRequirements()) != 2 {
		t.Errorf("without a ledger: %+v", v)
	}
	l := &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "R2", Status: isMet, Confidence: 1}}}
	if v := isConsistent(t, c, l); v.Satisfied || v.Coverage.GetMet() != 1 || v.Coverage.GetUnmet()[0] != "R1" {
		t.Errorf("in another order: %+v", v)
	}
	if v := isConsistent(t, nil, nil); !v.Satisfied {
		t.Errorf("without a contract: %+v", v)
	}
}

func TestRecordLimitsTexts(t *testing.T) {
	c := Resolve(parse(t, `{"requirements": ["x", "y"]}`))
	l := NewLedger(c)
	l.Stored = inline("old")
	seen := &harnessv1.RequirementCoverage{RequirementId: "R2", Status: isMet, Confidence: 2, Why: strings.Repeat("é\n", 500)}
	for range 9 {
		seen.Evidence = append(seen.Evidence, &harnessv1.Evidence{Kind: "file", Text: strings.Repeat("é\n", 500)})
	}
	before := proto.CloneOf(seen)
	Record(l, []*harnessv1.RequirementCoverage{seen, {RequirementId: "R9", Status: isMet}}, 5)
	got := l.GetRequirements()[1]
	if len(l.GetRequirements()) != 2 || l.GetRequirements()[0].GetStatus() != isUnmet || l.GetTurnNumber() != 5 || l.GetStored() != nil {
		t.Errorf("the ledger is %v", l)
	}
	if got.GetStatus() != isMet || got.GetConfidence() != 1 || len(got.GetWhy()) > 256 || len(got.GetEvidence()) > maxEvidence ||
		len(got.GetEvidence()[0].GetText()) > 128 || !utf8.ValidString(got.GetWhy()) {
		t.Errorf("recorded: %v", got)
	}
	if !proto.Equal(before, seen) {
		t.Error("what was seen was changed")
	}
	if l := NewLedger(c); l.GetTurnNumber() != 0 || l.GetRequirements()[0].GetWhy() != "not looked at yet" {
		t.Errorf("the first ledger is %v", l)
	}
}

func TestStatusesOfOutputs(t *testing.T) {
	l := NewLedger(Resolve(parse(t, `{"requirements": ["x", "y"]}`)))
	want := func(statuses ...harnessv1.RequirementStatus) {
		t.Helper()
		if got := Statuses(l); !bytes.Equal(got, statusBytes(statuses)) {
			t.Errorf("%v, want %v", got, statuses)
		}
	}
	want(isUnmet, isUnmet)
	Record(l, []*harnessv1.RequirementCoverage{{RequirementId: "R1"}, {RequirementId: "R2", Status: isMet}}, 9)
	want(isUnmet, isMet)
	if len(Statuses(nil)) > 0 {
		t.Error("no ledger has statuses")
	}
}

func statusBytes(statuses []harnessv1.RequirementStatus) []byte {
	var all []byte
	for _, s := range statuses {
		all = append(all, byte(s))
	}
	return all
}
