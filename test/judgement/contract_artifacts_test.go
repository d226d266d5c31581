package judgement

import (
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// contractCount is an output that counts saved artifacts.
func contractCount(id, kind string, least uint32, cited bool) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{
		Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind, Min: proto.Uint32(least), Cited: cited,
	})
}

// contractSave saves an artifact, with a quote of s1 unless it is empty.
func contractSave(id, kind, text, quote string) modeltest.Call {
	a := live.Args{"kind": kind, "title": "Of " + kind, "content": text}
	if id != "" {
		a["id"] = id
	}
	if quote != "" {
		a["citations"] = []live.Args{{"source": "s1", "quote": quote}}
	}
	return live.Call("save_artifact", a)
}

func contractTools(s *live.Transcript, n int) []string {
	var names []string
	for _, tool := range s.Requests[n].Tools {
		names = append(names, tool.Name)
	}
	return names
}

// A contract that counts artifacts gives the agent save_artifact with the kinds that count, and
// tells it what counts. Too few, or too few with a quote, are reported with have and want; with
// enough the run is done and they are its deliverables.
func TestContractCountsArtifacts(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractFinish("first"),
		live.Calls(contractSave("", "finding", "Prices rose by 4 %.", "by 4 %"), contractSave("", "finding", "Rents rose.", ""), contractSave("", "letter", "Dear all.", "")),
		contractFinish("second"),
		live.Calls(
			contractSave("", "finding", "I have completed the task. I read all of the files and wrote the report.", "x"), // is narration
			contractSave("", "insight", "Wages fell.", "wages"),                                                          // is no kind that counts
			contractSave("a2", "finding", "Rents rose by 2 %.", "by 2 %"),
		),
		contractFinish("third"),
	), contractOf(contractCount("findings", "finding", 2, true), contractOptional(contractCount("letters", "letter", 3, false))), func(spec *harnessv1.RunSpec) {
		spec.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "s1", Title: "Prices"}}}
	})
	s.Want("DONE agent_done accepted")
	if tools := contractTools(s, 0); !slices.Contains(tools, "save_artifact") {
		t.Errorf("the tools are %v", tools)
	}
	itemsHas(t, "the first request", s.Text(0), "at least 2 artifacts of kind finding, each with a citation that quotes its source",
		"at least 3 artifacts of kind letter", "save_artifact", "- s1, Prices")
	itemsEqual(t, "gaps", contractGaps(s), "1: findings", "3: findings")
	itemsHas(t, "the first gap report", contractToldGap(t, s, 1), "The findings is right", "have 0 of kind finding with a quote, want 2")
	itemsHas(t, "the second gap report", contractToldGap(t, s, 3), "have 1 of kind finding with a quote (and 1 without), want 2",
		"Save with save_artifact: at least 2 artifacts of kind finding")
	answers := itemsAnswers(t, s, 3)
	if len(answers) != 3 || !strings.Contains(answers[0].text, "Not stored") || !strings.Contains(answers[1].text, "finding") || answers[2].id() != "a2" {
		t.Errorf("the calls returned %+v", answers)
	}
	itemsEqual(t, "evaluations", contractEvaluations(s), "1: 0/2", "3: 0/2", "5: 1/2 satisfied")
	itemsEqual(t, "the state", contractStatuses(s.State()), "findings MET artifacts", "letters UNMET")
	e := contractRequirement(t, s.State(), "findings").GetEvidence()
	if want := contractSum("a1 " + contractSum("Prices rose by 4 %.") + "\na2 " + contractSum("Rents rose by 2 %.") + "\n"); len(e) != 1 ||
		e[0].GetText() != "2 of finding: a1, a2" || e[0].GetDigest() != want || e[0].GetTurnNumber() != 5 {
		t.Errorf("evidence %v, want the digest %s", e, want)
	}
	var delivered []string
	for _, d := range s.Result.GetDeliverables() {
		delivered = append(delivered, d.GetItemId()+" "+d.GetKind()+": "+content.Text(d.GetContent()))
	}
	itemsEqual(t, "deliverables", delivered, "a1 finding: Prices rose by 4 %.", "a2 finding: Rents rose by 2 %.", "a3 letter: Dear all.")
}

// Without an output that counts artifacts there is no tool that saves any.
func TestContractWithoutArtifactsHasNoToolForThem(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first")), contractOf(contractOutput("taste", &harnessv1.Predicate{Type: contractAlwaysTrue})))
	s.Want("DONE agent_done accepted")
	if tools := contractTools(s, 0); slices.Contains(tools, "save_artifact") || strings.Contains(s.Text(0), "save_artifact") {
		t.Errorf("the tools are %v", tools)
	}
}

// Texts and documents are read in saved artifacts, and again when they are replaced.
func TestContractTextInSavedArtifacts(t *testing.T) {
	t.Parallel()
	document := &harnessv1.Predicate{Type: contractSchemaValid, In: "artifact:data", Schema: `{"type":"object","required":["n"]}`}
	s := live.Play(t, live.Replies(
		live.Calls(contractSave("", "note", "See [1].", ""), contractSave("data", "note", `{"m":1}`, "")),
		contractFinish("first"),
		live.Calls(contractSave("a1", "note", "See nothing.", ""), contractSave("data", "note", `{"n":1}`, "")),
		contractFinish("second"),
		live.Calls(contractSave("a1", "note", "See [2].", "")),
		contractFinish("third"),
	), contractOf(contractCount("notes", "note", 2, false), contractText("cites", "artifact:a1", `\[\d\]`), contractOutput("data", document)))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: data", "4: cites")
	itemsHas(t, "the first gap report", contractToldGap(t, s, 2), "the artifact data", "n")
	if e := contractRequirement(t, s.State(), "cites").GetEvidence(); len(e) != 1 || e[0].GetDigest() != contractSum("See [2].") {
		t.Errorf("evidence %v", e)
	}
}
