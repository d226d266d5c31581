package contract

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// holdsTogether checks what is true of every verdict.
func holdsTogether(t interface{ Errorf(string, ...any) }, c *harnessv1.TaskContract, l *harnessv1.CoverageLedger) Verdict {
	v := Judge(c, l)
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

// stands is a ledger in which the outputs of c stand so, in order.
func stands(c *harnessv1.TaskContract, of ...*harnessv1.RequirementCoverage) *harnessv1.CoverageLedger {
	l := Initial(c)
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
		stands        []*harnessv1.RequirementCoverage
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
			v := holdsTogether(t, contract, stands(contract, c.stands...))
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

func TestRequiredQuestionsAreAskedUntilTheyAreAnswered(t *testing.T) {
	c := Resolve(parse(t, `{"questions": [{"id": "a", "question": "A?", "required": true}, {"id": "b", "question": "B?"}, {"id": "c", "question": "C?", "required": true}]}`))
	l := Initial(c)
	v := holdsTogether(t, c, l)
	if v.Satisfied || len(v.Ask) != 2 || v.Ask[0].GetId() != "a" || v.Ask[1].GetId() != "c" || fmt.Sprint(v.Gap.GetUnansweredQuestions()) != "[A? C?]" {
		t.Errorf("%+v", v)
	}
	l.Answers = []*harnessv1.QuestionAnswer{{QuestionId: "c", Answer: inline("x")}, {QuestionId: "a"}}
	if v := holdsTogether(t, c, l); !v.Satisfied {
		t.Errorf("after the answers: %+v", v)
	}
}

func TestWhatTheLedgerDoesNotKnowIsUnmet(t *testing.T) {
	c := Resolve(parse(t, `{"requirements": ["x", "y"]}`))
	if v := holdsTogether(t, c, nil); v.Satisfied || len(v.Gap.GetUnmetRequirements()) != 2 {
		t.Errorf("without a ledger: %+v", v)
	}
	l := &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "R2", Status: isMet, Confidence: 1}}}
	if v := holdsTogether(t, c, l); v.Satisfied || v.Coverage.GetMet() != 1 || v.Coverage.GetUnmet()[0] != "R1" {
		t.Errorf("in another order: %+v", v)
	}
	if v := holdsTogether(t, nil, nil); !v.Satisfied {
		t.Errorf("without a contract: %+v", v)
	}
}

func TestRecordKeepsTheLedgerWithinItsBounds(t *testing.T) {
	c := Resolve(parse(t, `{"requirements": ["x", "y"]}`))
	l := Initial(c)
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
	if l := Initial(c); l.GetTurnNumber() != 0 || l.GetRequirements()[0].GetWhy() != "not looked at yet" {
		t.Errorf("the first ledger is %v", l)
	}
}

func TestTheFingerprintIsThatOfTheStatuses(t *testing.T) {
	c := Resolve(parse(t, `{"requirements": ["x", "y"]}`))
	l := Initial(c)
	first := Fingerprint(l)
	Record(l, []*harnessv1.RequirementCoverage{{RequirementId: "R1", Status: isUnmet, Why: "another reason", Confidence: 1}}, 9)
	if Fingerprint(l) != first {
		t.Error("a reason changes it")
	}
	Record(l, []*harnessv1.RequirementCoverage{{RequirementId: "R1", Status: isMet}}, 9)
	met := Fingerprint(l)
	Record(l, []*harnessv1.RequirementCoverage{{RequirementId: "R1"}, {RequirementId: "R2", Status: isMet}}, 9)
	if other := Fingerprint(l); met == first || other == first || other == met {
		t.Errorf("%d, %d, %d", first, met, other)
	}
	if Fingerprint(nil) != 0 || Fingerprint(&harnessv1.CoverageLedger{}) != 0 {
		t.Error("nothing has a fingerprint")
	}
}

func TestTheGapTellsWhatIsMissingAndWhatToDo(t *testing.T) {
	c := Resolve(parse(t, `{"required_outputs": [
		{"id": "report", "description": "The report exists", "predicate": {"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "report.md"}},
		{"id": "cites", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "file:report.md", "pattern": "\\[1\\]"}},
		{"id": "said", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "done"}},
		{"id": "seen", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "transcript", "pattern": "ok"}},
		{"id": "push", "predicate": {"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "run_command", "arguments": [{"name": "command", "pattern": "push"}]}},
		{"id": "tests", "predicate": {"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "make test"}},
		{"id": "data", "predicate": {"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "artifact:w1", "schema": "{}"}},
		{"id": "enough", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 2"}},
		{"id": "fine", "predicate": {"type": "PREDICATE_TYPE_ALWAYS_TRUE"}},
		{"id": "dark", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "grpc": "a:1"}}],
		"questions": [{"id": "q", "question": "Which format?", "required": true}]}`))
	l := Initial(c)
	Record(l, []*harnessv1.RequirementCoverage{
		{RequirementId: "report", Status: isUnmet, Why: "report.md: does not exist"}, {RequirementId: "fine", Status: isMet, Confidence: 1},
		{RequirementId: "dark", Unknown: true, Why: "the check gave no answer: refused"},
	}, 3)
	got := GapText(holdsTogether(t, c, l).Gap)
	const want = `The work does not count as done yet: its contract is not fulfilled.

Not met (9):
- report (The report exists): report.md: does not exist
- cites: not looked at yet
- said: not looked at yet
- seen: not looked at yet
- push: not looked at yet
- tests: not looked at yet
- data: not looked at yet
- enough: not looked at yet
- dark: the check gave no answer: refused

Questions that only the user can answer, without an answer so far (1):
- Which format?

What to do:
- Write the file report.md (report).
- Work on the file report.md until it contains text that matches /\[1\]/ (cites).
- Give a final answer with text that matches /done/ (said).
- Bring about a tool result or an answer that matches /ok/ (seen).
- Call run_command with command matching /push/ again and make it succeed; only the latest such call counts (push).
- Make this command exit with 0; it is run again when you next finish: make test (tests).
- Make the artifact of w1 valid JSON that fits its schema (data).
- Make this hold: writes > 2 (enough).
- dark could not be checked. It is checked again when you next finish; mend what stands in its way if you can.

Bring about what is missing, then finish again. Saying that it is there does not count: it is looked at.
`
	if got != want {
		t.Errorf("the gap reads\n%s", got)
	}
}

func TestALongGapEndsInACount(t *testing.T) {
	c := &harnessv1.TaskContract{}
	for i := range MaxOutputs {
		c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprintf("output-%03d", i), Description: strings.Repeat("long ", 60),
			Predicate: &harnessv1.Predicate{Type: fileExists, Path: strings.Repeat("p", 300)}})
	}
	for i := range MaxQuestions {
		c.Questions = append(c.Questions, &harnessv1.UserQuestion{Id: fmt.Sprint(i), Question: strings.Repeat("why ", 60), Required: true})
	}
	l := Initial(c)
	for _, r := range l.GetRequirements() {
		r.Why = strings.Repeat("because ", 30)
	}
	v := holdsTogether(t, c, l)
	text := GapText(v.Gap)
	if n := len(v.Gap.GetUnmetRequirements()); n != MaxOutputs || strings.Count(text, "… and ") != 3 || !strings.Contains(text, "Not met (200):") {
		t.Errorf("%d outputs are reported; the gap reads\n%s", n, text)
	}
}

// coverages draws how an output may stand.
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
		c.Questions = append(c.Questions, &harnessv1.UserQuestion{Id: fmt.Sprint("q", i), Question: "?", Required: rapid.Bool().Draw(t, "required")})
	}
	c = Resolve(c)
	l := Initial(c)
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

func TestMoreThatIsMetNeverMakesTheVerdictWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawn(t)
		before := holdsTogether(t, c, l)
		if n := len(c.GetRequiredOutputs()); n > 0 {
			id := c.GetRequiredOutputs()[rapid.IntRange(0, n-1).Draw(t, "which")].GetId()
			Record(l, []*harnessv1.RequirementCoverage{{RequirementId: id, Status: isMet, Confidence: 1}}, 2)
		}
		for _, q := range c.GetQuestions() {
			l.Answers = append(l.Answers, &harnessv1.QuestionAnswer{QuestionId: q.GetId()})
		}
		after := holdsTogether(t, c, l)
		if before.Satisfied && !after.Satisfied || after.Coverage.GetMet() < before.Coverage.GetMet() || len(after.Ask) > 0 ||
			len(after.Gap.GetUnmetRequirements()) > len(before.Gap.GetUnmetRequirements()) {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

func TestLessStrictNeverMakesTheVerdictWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawn(t)
		before := holdsTogether(t, c, l)
		a := c.Acceptability
		a.MaxUnknowns = proto.Uint32(a.GetMaxUnknowns() + rapid.Uint32Range(0, 2).Draw(t, "more"))
		a.MinConfidence = proto.Float64(a.GetMinConfidence() * rapid.Float64Range(0, 1).Draw(t, "less"))
		a.AllowPartial = proto.Bool(true)
		if after := holdsTogether(t, c, l); before.Satisfied && !after.Satisfied || after.Coverage.GetMet() < before.Coverage.GetMet() {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	c := &harnessv1.TaskContract{}
	for i := range 30 {
		p := &harnessv1.Predicate{Type: fileExists, Path: fmt.Sprintf("out/%d.md", i)}
		switch i % 3 {
		case 1:
			p = &harnessv1.Predicate{Type: containsText, In: "artifact:w1", Pattern: "a b"}
		case 2:
			p = &harnessv1.Predicate{Type: command, Command: "make test"}
		}
		c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprint("output-", i), Description: "A part of the work", Predicate: p})
	}
	c = Resolve(c)
	l := Initial(c)
	for i, r := range l.GetRequirements() {
		r.Why = "out/report.md: does not exist"
		if i%2 == 0 {
			r.Status, r.Confidence = isMet, 1
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := Judge(c, l); Fingerprint(l) == 0 || GapText(v.Gap) == "" {
			b.Fatal("nothing is missing")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	c := parse(b, `{"required_outputs": [{"id": "a", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 0"}},
		{"id": "b", "predicate": {"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"type\": \"object\"}"}},
		{"id": "c", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "tests? pass(ed)?"}}]}`)
	for b.Loop() {
		if _, err := Compile(c); err != nil {
			b.Fatal(err)
		}
	}
}
