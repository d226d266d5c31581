package turn_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// described performs a turn whose request has facts, and returns its response and its state.
func described(t *testing.T, s *harnessv1.Snapshot, facts *turn.RequestFacts, input uint64) (*harnessv1.ModelResponded, *harnessv1.Snapshot) {
	t.Helper()
	w := newWorker(t, s)
	w.response.Usage.InputTokens = input
	w.facts = facts
	outcome := w.mustEnd()
	return w.journal[1].GetJournal().GetModelResponded(), outcome.GetStep().GetSnapshot()
}

// TestTheResponseDescribesItsRequest, and the state knows how far messages have weights and
// which tools were sent.
func TestTheResponseDescribesItsRequest(t *testing.T) {
	s := snapshot()
	s.Model, s.TokenBudget, s.ToolsDigest = "m", &harnessv1.TokenBudget{WeighedMessages: 1, FreedTokens: 40, Factor: 1.5, FactorModel: "m"}, "former"
	facts := &turn.RequestFacts{
		Weights: &harnessv1.Weights{FirstMessage: 2, Tokens: []uint32{7, 8, 9}}, ViewDigest: []byte("d"), Tools: &harnessv1.BlobRef{Digest: "tools", Size: 3},
	}
	r, after := described(t, s, facts, 100)
	if !proto.Equal(r.GetWeights(), facts.Weights) || string(r.GetViewDigest()) != "d" || r.GetTools().GetDigest() != "tools" || r.GetCountedTokens() != 0 {
		t.Errorf("the response is %v", r)
	}
	if b := after.GetTokenBudget(); b.GetWeighedMessages() != 4 || b.GetFreedTokens() != 0 || b.GetFactor() != 1.5 || after.GetToolsDigest() != "tools" {
		t.Errorf("the state has %v with the tools %s", b, after.GetToolsDigest())
	}
	r, after = described(t, s, nil, 0)
	if r.GetWeights() != nil || r.GetViewDigest() != nil || r.GetTools() != nil {
		t.Errorf("without a description the response is %v", r)
	}
	if b := after.GetTokenBudget(); b.GetWeighedMessages() != 1 || b.GetFreedTokens() != 40 || after.GetToolsDigest() != "former" {
		t.Errorf("without a description and a report the state has %v with the tools %s", b, after.GetToolsDigest())
	}
}

// TestFactorIsLearnt from the reports of the run's own model, if its vocabulary is unknown.
func TestFactorIsLearnt(t *testing.T) {
	for name, c := range map[string]struct {
		model    string
		fallback bool
		before   *harnessv1.TokenBudget
		reported uint64
		counted  uint32
		want     *harnessv1.TokenBudget
	}{
		"more than was counted":        {"anthropic:claude", false, nil, 160, 100, &harnessv1.TokenBudget{Factor: 1.6, FactorModel: "anthropic:claude"}},
		"less than was counted":        {"anthropic:claude", false, nil, 60, 100, &harnessv1.TokenBudget{Factor: 1, FactorModel: "anthropic:claude"}},
		"absurdly much":                {"anthropic:claude", false, nil, 900, 100, &harnessv1.TokenBudget{Factor: 2.5, FactorModel: "anthropic:claude"}},
		"nothing was counted":          {"anthropic:claude", false, nil, 160, 0, &harnessv1.TokenBudget{}},
		"nothing was reported":         {"anthropic:claude", false, nil, 0, 100, &harnessv1.TokenBudget{}},
		"a public vocabulary":          {"openai:gpt-4o", false, nil, 160, 100, &harnessv1.TokenBudget{}},
		"another model than the run's": {"anthropic:claude", true, nil, 160, 100, &harnessv1.TokenBudget{}},
		"a later report": {
			"m", false, &harnessv1.TokenBudget{Factor: 1.2, FactorModel: "m", WindowTokens: 9}, 160, 100, &harnessv1.TokenBudget{Factor: 1.6, FactorModel: "m", WindowTokens: 9},
		},
		"after another model": {
			"m", false, &harnessv1.TokenBudget{Factor: 1.2, FactorModel: "n", WindowTokens: 9}, 160, 100, &harnessv1.TokenBudget{Factor: 1.6, FactorModel: "m"},
		},
	} {
		s := snapshot()
		s.Model, s.TokenBudget = c.model, c.before
		if c.fallback {
			s.Model, s.FallbackModels = "nobody:knows", []string{c.model}
		}
		w := newWorker(t, s)
		w.unusable = map[string]bool{"nobody:knows": true}
		w.response.Usage.InputTokens, w.facts = c.reported, &turn.RequestFacts{Counted: c.counted}
		b := w.mustEnd().GetStep().GetSnapshot().GetTokenBudget()
		if b.GetFactor() != c.want.GetFactor() || b.GetFactorModel() != c.want.GetFactorModel() || b.GetWindowTokens() != c.want.GetWindowTokens() {
			t.Errorf("%s: %v, want %v", name, b, c.want)
		}
	}
}
