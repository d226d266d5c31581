package catalogue

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

func TestTokenFactor(t *testing.T) {
	own, err := Default().Extend("own.yaml", []byte(`models:
  - {ref: "openai:gpt-5", window: 5, token_factor: 1.1}
  - {ref: "openai:gpt-4o", window: 5}
  - {ref: "openai:local", window: 5}
  - {ref: "openai:equal", window: 5, token_factor: 1}
  - {ref: "anthropic:claude-opus-5-5", window: 5}
`))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]float64{
		"openai:gpt-4": 1, "openai:gpt-6.1-sol": 1, "azure:gpt-5": 1, "groq:openai/gpt-oss-120b": 1, "openai:gpt-5.99": 1,
		"anthropic:claude-opus-5-5": 1.6, "anthropic:claude-opus-4-7": 1.6, "anthropic:claude-haiku-5-5": 1.6,
		"anthropic:claude-opus-4-6": 1.35, "anthropic:claude-haiku-4-5-20251001": 1.35, "anthropic:claude-unknown": 1.25,
		"qwen:qwen3.8-max": 1.4, "openai:local": 1.25, "unknown": 1.25, "": 1.25, "script:turns.yaml": 1,
	} {
		if got := Lookup(ref).TokenFactor; got != want {
			t.Errorf("%q has the token factor %g, want %g", ref, got, want)
		}
	}
	for ref, want := range map[string]float64{"openai:gpt-5": 1.1, "openai:gpt-4o": 1, "openai:local": 1.25, "openai:equal": 1, "anthropic:claude-opus-5-5": 1.25} {
		if got := own.Lookup(ref).TokenFactor; got != want {
			t.Errorf("%q of the file has the token factor %g, want %g", ref, got, want)
		}
	}
}

// TestEmbeddedTokenFactors requires a factor of each model whose vocabulary is unknown, and
// of no other.
func TestEmbeddedTokenFactors(t *testing.T) {
	for ref, e := range Default().entries {
		if known := tokens.Known(ref); known != (e.TokenFactor == 0) {
			t.Errorf("%s: the vocabulary is known: %v; token_factor: %g", ref, known, e.TokenFactor)
		}
	}
}
