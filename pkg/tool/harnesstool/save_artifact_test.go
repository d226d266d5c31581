package harnesstool_test

import (
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// TestSaveArtifactTakesKindsOfTheRun: it is listed where the run has kinds of artifacts, and
// takes these and no others. The specs of runs do not change each other.
func TestSaveArtifactTakesKindsOfTheRun(t *testing.T) {
	if slices.Contains(namesOf(harnesstool.Specs(harnesstool.Setting{WorkItems: true, Questions: true, Compaction: true, Wait: true})), workitem.SaveArtifact) {
		t.Error("a run without kinds of artifacts is offered the tool")
	}
	before := harnesstool.Find(workitem.SaveArtifact).Spec.GetParametersSchema()
	for _, c := range []struct{ kinds, others []string }{
		{[]string{"insight", "document"}, []string{"finding", "", "Insight"}},
		{[]string{`fin"ding`}, []string{"insight", "document"}},
	} {
		set, err := tool.NewSet(harnesstool.Specs(harnesstool.Setting{ArtifactKinds: c.kinds}))
		if err != nil {
			t.Fatal(err)
		}
		valid := func(kind string) bool {
			return set.Validate(workitem.SaveArtifact, `{"kind":"`+strings.ReplaceAll(kind, `"`, `\"`)+`","title":"T","content":"C"}`) == nil
		}
		for _, kind := range c.kinds {
			if !valid(kind) {
				t.Errorf("%v: %q is refused", c.kinds, kind)
			}
		}
		for _, kind := range c.others {
			if valid(kind) {
				t.Errorf("%v: %q is valid", c.kinds, kind)
			}
		}
	}
	if harnesstool.Find(workitem.SaveArtifact).Spec.GetParametersSchema() != before {
		t.Error("the spec of all runs was changed")
	}
}

func TestSaveArtifactArguments(t *testing.T) {
	set, err := tool.NewSet(harnesstool.Specs(everything))
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"source":"s"},`, n), ",") }
	for more, valid := range map[string]bool{
		``: true, `,"data":null,"citations":null`: true, `,"data":{"priority":"high"}`: true, `,"id":"a_1.b-2"`: true, `,"citations":[{"source":"s","quote":"q"}]`: true,
		`,"citations":[` + many(50) + `]`: true, `,"citations":[` + many(51) + `]`: false, `,"citations":[{"quote":"q"}]`: false, `,"citations":[{"source":"","quote":"q"}]`: false,
		`,"id":""`: false, `,"id":"a b"`: false, `,"id":"` + strings.Repeat("x", 33) + `"`: false, `,"data":[]`: false, `,"other":1`: false,
		`,"citations":[{"source":"s","quote":"` + strings.Repeat("q", 1001) + `"}]`: false,
	} {
		if err := set.Validate(workitem.SaveArtifact, `{"kind":"insight","title":"T","content":"C"`+more+`}`); (err == nil) != valid {
			t.Errorf("%.100s: %v", more, err)
		}
	}
	for _, missing := range []string{`{"title":"T","content":"C"}`, `{"kind":"insight","content":"C"}`, `{"kind":"insight","title":"T"}`, `{"kind":"insight","title":"T","content":""}`} {
		if set.Validate(workitem.SaveArtifact, missing) == nil {
			t.Errorf("%s is valid", missing)
		}
	}
	save := harnesstool.Find(workitem.SaveArtifact)
	if a := save.Spec.GetAnnotations(); a.GetWrites() || a.GetIdempotent() || a.GetParallelSafe() || !save.Product || save.Unrestricted {
		t.Errorf("the tool is %+v", save)
	}
	ledger := &harnessv1.WorkItemLedger{}
	if o := save.Run(ledger, `{"kind":"insight","title":"T","content":"Prices rose."}`); o.IsError || len(ledger.GetArtifacts()) != 1 {
		t.Errorf("%+v", o)
	}
}
