package catalogue_test

import (
	"math"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func TestImageTokens(t *testing.T) {
	for _, c := range []struct {
		ref           string
		width, height uint32
		want          uint64
	}{
		{"openai:unknown", 1000, 750, 1000},
		{"openai:unknown", 1, 1, 1},
		{"openai:unknown", 0, 10, 0},
		// ⌈w/28⌉·⌈h/28⌉
		{"anthropic:claude-opus-5-5", 1092, 1092, 39 * 39},
		{"anthropic:claude-opus-5-5", 28, 29, 2},
		{"anthropic:claude-opus-5-5", 5152, 280, 92 * 5},
		{"anthropic:claude-haiku-4-5", 3136, 560, 56 * 10},
		// The examples that OpenAI documents.
		{"openai:gpt-4o", 1024, 1024, 765},
		{"openai:gpt-4o", 2048, 4096, 1105},
		{"openai:gpt-4.1-mini", 1024, 1024, 1659}, // 1024 · 1.62
		{"openai:gpt-4.1-mini", 1800, 2400, 2353}, // 1452 · 1.62
		{"openai:gpt-5.2", 1024, 1024, 1229},      // 1024 · 1.2
		{"openai:gpt-6-astra", 1024, 1024, 1229},
	} {
		if got := catalogue.Lookup(c.ref).ImageTokens.Tokens(c.width, c.height); got != c.want {
			t.Errorf("%d×%d of %s are %d tokens, want %d", c.width, c.height, c.ref, got, c.want)
		}
	}
}

func TestImageTokensAreBounded(t *testing.T) {
	for _, ref := range []string{"anthropic:claude-opus-5-5", "anthropic:claude-haiku-4-5", "openai:gpt-6-astra", "openai:gpt-5-nano"} {
		f := catalogue.Lookup(ref).ImageTokens
		limit := uint64(math.Ceil(float64(f.MaxPatches) * f.Each))
		for _, size := range [][2]uint32{{10_000, 10_000}, {1, 50_000}, {50_000, 1}, {1999, 2001}, {math.MaxUint32, math.MaxUint32}, {math.MaxUint32, 3}} {
			if got := f.Tokens(size[0], size[1]); got == 0 || got > limit {
				t.Errorf("%v of %s are %d tokens, want 1 to %d", size, ref, got, limit)
			}
		}
		if large := f.Tokens(10_000, 10_000); large*10 < limit*9 {
			t.Errorf("an image that is scaled down for %s has %d tokens, want about %d", ref, large, limit)
		}
	}
}
