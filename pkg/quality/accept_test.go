package quality_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// TestAcceptedInEveryCell compares acceptance with its table: by the results of the contract and of the verifier, and the
// place of the score.
func TestAcceptedInEveryCell(t *testing.T) {
	const low, between, good = 0, 1, 2 // of the score: below the low one, at least the low one, at least the good one
	accepted := map[string][3]bool{    // by the place of the score
		"contract passed, verifier passed": {true, true, true},
		"contract passed, verifier failed": {false, true, true},
		"contract passed, no verdict":      {true, true, true},
		"too short, verifier passed":       {false, false, true}, // in chat
		"too short, verifier failed":       {false, false, false},
		"too short, no verdict":            {false, false, false},
		"contract failed, verifier passed": {false, false, false},
		"contract failed, verifier failed": {false, false, false},
		"contract failed, no verdict":      {false, false, false},
	}
	own := []*harnessv1.WorkKind{{Name: "own"}}
	for kind := range limits {
		most, goodScore, lowScore := quality.Limits(quality.KindOf(kind, own, 0), nil)
		for hundredths := range 101 {
			score := float64(hundredths) / 100
			place := low
			switch {
			case score >= goodScore:
				place = good
			case score >= lowScore:
				place = between
			}
			for cell, want := range accepted {
				for number := uint32(1); number <= most; number++ { // the number of the attempt does not matter
					a := quality.Attempt{Number: number, Max: most, Good: goodScore, Low: lowScore, Score: score}
					contract, verifier := cell[:9], cell[len(cell)-6:]
					a.ContractPassed = contract == "contract " && cell[9:15] == "passed"
					a.ShortAnswer, a.VerifierPassed = contract == "too short", verifier == "passed"
					if a.Fallback = verifier == "erdict"; a.Fallback {
						a.Score = 0
					}
					if a.ShortAnswer && kind != "chat" {
						continue
					}
					if got := quality.Accepted(a); got != want[place] {
						t.Fatalf("%s, %s, score %v: accepted %t", kind, cell, score, got)
					}
				}
			}
		}
	}
}

// TestShortOnly is true only if the length is all that is missing.
func TestShortOnly(t *testing.T) {
	chat, drafting := quality.KindOf("chat", nil, 0), quality.KindOf("drafting", nil, 0)
	for _, c := range []struct {
		name     string
		contract *harnessv1.QualityContract
		want     bool
	}{
		{"six characters", quality.Evaluate(chat, nil, 100, quality.Produced{Chars: 6}), true},
		{"enough", quality.Evaluate(chat, nil, 100, quality.Produced{Chars: 50}), false},
		{"no document either", quality.Evaluate(chat, &harnessv1.Expected{MinDocuments: ptr[uint32](1)}, 100, quality.Produced{Chars: 6}), false},
		{"only a document is missing", quality.Evaluate(chat, &harnessv1.Expected{MinDocuments: ptr[uint32](1)}, 100, quality.Produced{Chars: 50}), false},
		{"a short text beside its document", quality.Evaluate(drafting, nil, 100, quality.Produced{Chars: 6, Artifacts: artifactsOf(0, 0, 1)}), true},
		{"nothing", nil, false},
	} {
		if got := quality.ShortOnly(c.contract); got != c.want {
			t.Errorf("%s: %t, %v", c.name, got, c.contract.GetIssues())
		}
	}
}
