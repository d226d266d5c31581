package repair_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// agreed returns the first state of a run with a contract of these predicates, and the text about
// the contract for the model.
func agreed(t *testing.T, change func(*harnessv1.RunSpec), predicates ...*harnessv1.Predicate) (*harnessv1.Snapshot, string) {
	t.Helper()
	s := spec()
	s.Contract = &harnessv1.TaskContract{Goal: "g"}
	for i, p := range predicates {
		s.Contract.RequiredOutputs = append(s.Contract.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprintf("o%d", i+1), Description: "It", Predicate: p})
	}
	if change != nil {
		change(s)
	}
	o := decide(t, first(begun(), s, nothing()...))
	var told string
	for _, m := range o.GetAppended() {
		if m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE && m.GetKept() {
			told += content.Text(m.GetContent())
		}
	}
	return o.GetStep().GetSnapshot(), told
}

func counts(kind string, least uint32, cited bool) *harnessv1.Predicate {
	return &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind, Min: proto.Uint32(least), Cited: cited}
}

// TestContractTextNamesWhatCounts: the model reads at the start what counts, how to save it
// and, if artifacts have to cite, which sources there are.
func TestContractTextNamesWhatCounts(t *testing.T) {
	file := &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "a.md"}
	withSources := func(s *harnessv1.RunSpec) {
		s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "s1", Title: "Interviews", Path: "notes/i.md"}, {Id: "s2", Uri: "https://example.com/s"}}}
	}
	const closing = "Artifacts count once you have saved them with save_artifact"
	plain, told := agreed(t, withSources, file)
	if strings.Contains(told, "save_artifact") || strings.Contains(told, "s1") {
		t.Errorf("without artifacts the model reads\n%s", told)
	}
	counting, told := agreed(t, withSources, file, counts("letter", 1, false))
	for _, want := range []string{"- o1: It (the file a.md)", "- o2: It (at least 1 artifact of kind letter)", closing} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in\n%s", want, told)
		}
	}
	if strings.Contains(told, "s1") {
		t.Errorf("nothing has to be cited, and the model reads\n%s", told)
	}
	if a, b := plain.GetTokenBudget().GetToolTokens(), counting.GetTokenBudget().GetToolTokens(); a >= b {
		t.Errorf("the tools have %d tokens, with save_artifact %d", a, b)
	}
	_, told = agreed(t, withSources, counts("finding", 3, true))
	for _, want := range []string{
		"- o1: It (at least 3 artifacts of kind finding, each with a citation that quotes its source)", closing,
		"Artifacts cite these sources by their ids:\n- s1, Interviews, notes/i.md\n- s2, https://example.com/s",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in\n%s", want, told)
		}
	}
	if _, told = agreed(t, nil, counts("finding", 3, true)); strings.Contains(told, "by their ids") {
		t.Errorf("without sources the model reads\n%s", told)
	}
	if s, told := agreed(t, func(s *harnessv1.RunSpec) { s.Config.Contract = &harnessv1.ContractConfig{Enabled: proto.Bool(false)} }, counts("letter", 1, false)); told != "" ||
		s.GetTokenBudget().GetToolTokens() >= counting.GetTokenBudget().GetToolTokens() {
		t.Errorf("with contracts off the model reads %q", told)
	}
}

// TestTextOfManySourcesIsBounded: what does not fit is counted.
func TestTextOfManySourcesIsBounded(t *testing.T) {
	_, told := agreed(t, func(s *harnessv1.RunSpec) {
		s.Task = &harnessv1.Task{}
		for i := range 200 {
			s.Task.Sources = append(s.Task.Sources, &harnessv1.Source{Id: fmt.Sprintf("s%d", i+1), Title: strings.Repeat("t", 300), Uri: strings.Repeat("u", 2000)})
		}
	}, counts("finding", 1, true))
	if !strings.Contains(told, "- s1, ttt") || !strings.Contains(told, " more.") || len(told) > 10<<10 {
		t.Errorf("%d bytes: %.300s", len(told), told)
	}
}
