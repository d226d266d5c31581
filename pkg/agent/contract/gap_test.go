package contract

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestGapTextNamesWhatIsMissingAndWhatToDo(t *testing.T) {
	c := Resolve(parse(t, `{"required_outputs": [
		{"id": "report", "description": "The report exists", "predicate": {"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "report.md"}},
		{"id": "cites", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "file:report.md", "pattern": "\\[1\\]"}},
		{"id": "said", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "done"}},
		{"id": "seen", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "transcript", "pattern": "ok"}},
		{"id": "push", "predicate": {"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "run_command", "arguments": [{"name": "command", "pattern": "push"}]}},
		{"id": "tests", "predicate": {"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "make test"}},
		{"id": "data", "predicate": {"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "artifact:w1", "schema": "{}"}},
		{"id": "findings", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "finding", "min": 3, "cited": true}},
		{"id": "letter", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "letter"}},
		{"id": "enough", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 2"}},
		{"id": "fine", "predicate": {"type": "PREDICATE_TYPE_ALWAYS_TRUE"}},
		{"id": "dark", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "grpc": "a:1"}}],
		"questions": [{"id": "q", "question": "Which format?", "required": true}]}`))
	l := NewLedger(c)
	Record(l, []*harnessv1.RequirementCoverage{
		{RequirementId: "report", Status: isUnmet, Why: "report.md: does not exist"}, {RequirementId: "fine", Status: isMet, Confidence: 1},
		{RequirementId: "findings", Status: isUnmet, Why: "have 2 of kind finding with a quote (and 1 without), want 3"},
		{RequirementId: "dark", Unknown: true, Why: "the check gave no answer: refused"},
	}, 3)
	got := GapText(isConsistent(t, c, l).Gap)
	const want = `The work does not count as done yet: its contract is not fulfilled.

Not met (11):
- report (The report exists): report.md: does not exist
- cites: not looked at yet
- said: not looked at yet
- seen: not looked at yet
- push: not looked at yet
- tests: not looked at yet
- data: not looked at yet
- findings: have 2 of kind finding with a quote (and 1 without), want 3
- letter: not looked at yet
- enough: not looked at yet
- dark: the check gave no answer: refused

Questions that only the user can answer, without an answer so far (1):
- Which format?

What to do:
- Write the file report.md (report).
- Work on the file report.md until it contains text that matches /\[1\]/ (cites).
- Give a final answer with text that matches /done/ (said).
- Bring about a tool result or an answer that matches /ok/ (seen).
- Call run_command with command matching /push/ and make it succeed; only the latest such call counts (push).
- Make this command exit with 0; it is run again when you next finish: make test (tests).
- Make the artifact w1 valid JSON that fits its schema (data).
- Save with save_artifact: at least 3 artifacts of kind finding, each with a citation that quotes its source (findings).
- Save with save_artifact: at least 1 artifact of kind letter (letter).
- Make this hold: writes > 2 (enough).
- dark could not be checked. It is checked again when you next finish; mend what stands in its way if you can.

Bring about what is missing, then finish again. Saying that it is there does not count: it is looked at.
`
	if got != want {
		t.Errorf("the gap reads\n%s", got)
	}
}

func TestLongGapTextEndsWithACount(t *testing.T) {
	c := &harnessv1.TaskContract{}
	for i := range maxOutputs {
		c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprintf("output-%03d", i), Description: strings.Repeat("long ", 60),
			Predicate: &harnessv1.Predicate{Type: fileExists, Path: strings.Repeat("p", 300)}})
	}
	for i := range maxQuestions {
		c.Questions = append(c.Questions, &harnessv1.UserQuestion{Id: fmt.Sprint(i), Question: strings.Repeat("why ", 60), Required: proto.Bool(true)})
	}
	l := NewLedger(c)
	for _, r := range l.GetRequirements() {
		r.Why = strings.Repeat("because ", 30)
	}
	v := isConsistent(t, c, l)
	text := GapText(v.Gap)
	if n := len(v.Gap.GetUnmetRequirements()); n != maxOutputs || strings.Count(text, "… and ") != 3 || !strings.Contains(text, "Not met (200):") {
		t.Errorf("%d outputs are reported; the gap reads\n%s", n, text)
	}
}
