package narration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

// specimen is an artifact of testdata/corpus.jsonl, by an author who did not know the check.
type specimen struct {
	Name, Language, Kind, Text string
	// Label is clean; refused, if it is nothing but narration; edges, if Content remains;
	// tools, if it names a tool of the harness amid its content.
	Label, Content string
}

func corpus(t testing.TB) []specimen {
	t.Helper()
	f, err := os.Open("testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []specimen
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var s specimen
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("case %d: %v", len(all)+1, err)
		}
		all = append(all, s)
	}
	return all
}

// found counts the results of the check for the artifacts of a label or a language.
type found struct{ right, missed, touched, exact int }

// TestNarrationInCorpus measures recall (the share of narration that is found) and precision (the
// share of narration in all that the check changes or refuses). The first figure for the corpus is in
// docs/workitems.md; the figures here are those after its errors were corrected.
func TestNarrationInCorpus(t *testing.T) {
	t.Parallel()
	sums := map[string]*found{}
	for _, s := range corpus(t) {
		level, stripped, why := narration.Check(s.Text)
		for _, name := range []string{"all", "label " + s.Label, "language " + s.Language} {
			if sums[name] == nil {
				sums[name] = &found{}
			}
			sum := sums[name]
			switch clean, kept := s.Label == "clean", level == narration.Clean; {
			case clean && !kept:
				sum.touched++
			case !clean && kept:
				sum.missed++
			case !clean:
				sum.right++
				if s.Label == "edges" && level == narration.Light && stripped == strings.Trim(s.Content, "\n") || s.Label != "edges" && level == narration.Heavy {
					sum.exact++
				}
			}
		}
		if (s.Label == "clean") != (level == narration.Clean) {
			t.Logf("%s (%s, %s): %s %s", s.Name, s.Label, s.Language, level, why)
		}
	}
	if all := sums["all"]; all.recall() < 0.94 || all.precision() < 0.99 || all.exact < 88 {
		t.Errorf("%s", all)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		t.Logf("%-16s %s", name, sums[name])
	}
}

func (f *found) recall() float64    { return float64(f.right) / float64(max(1, f.right+f.missed)) }
func (f *found) precision() float64 { return float64(f.right) / float64(max(1, f.right+f.touched)) }

func (f *found) String() string {
	return fmt.Sprintf("recall %.3f precision %.3f: %d found (%d exactly as labelled), %d missed, %d clean ones touched", f.recall(), f.precision(), f.right, f.exact, f.missed, f.touched)
}
