package workitem_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// labelled is an artifact with what a reader says of it.
type labelled struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Label    string `json:"label"`
	Content  string `json:"content"`
	Stripped string `json:"stripped"`
}

func labelledArtifacts(t testing.TB) []labelled {
	t.Helper()
	f, err := os.Open("testdata/dev.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []labelled
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var a labelled
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("case %d: %v", len(all)+1, err)
		}
		all = append(all, a)
	}
	return all
}

func TestNarrationIsFoundInLabelledArtifactsAndInThemOnly(t *testing.T) {
	found, missed, wrong, level := 0, 0, 0, 0
	for _, a := range labelledArtifacts(t) {
		got, stripped, why := workitem.Narration(a.Content)
		switch contaminated := a.Label != "CLEAN"; {
		case contaminated && got == workitem.Clean:
			missed++
			t.Logf("%s %s: missed:\n%s", a.ID, a.Kind, a.Content)
		case !contaminated && got != workitem.Clean:
			wrong++
			t.Logf("%s %s: %s because of %s", a.ID, a.Kind, got, why)
		case contaminated:
			found++
		}
		if got.String() != a.Label && got != workitem.Clean && a.Label != "CLEAN" {
			level++
			t.Logf("%s %s: %s, a reader says %s: %s", a.ID, a.Kind, got, a.Label, why)
		}
		if got == workitem.Light && a.Label == "LIGHT" && stripped != a.Stripped {
			t.Errorf("%s %s: stripped to\n%s\nwant\n%s", a.ID, a.Kind, stripped, a.Stripped)
		}
	}
	precision, recall := float64(found)/float64(found+wrong), float64(found)/float64(found+missed)
	t.Logf("precision %.3f, recall %.3f, other level %d", precision, recall, level)
	if precision < 0.97 || recall < 0.95 || level > 3 {
		t.Errorf("precision %.3f (at least 0.97), recall %.3f (at least 0.95), other level %d (at most 3)", precision, recall, level)
	}
	if found+missed < 60 || len(labelledArtifacts(t)) < 120 {
		t.Errorf("the labelled artifacts are too few to say anything")
	}
}
