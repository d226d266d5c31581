package catalogue_test

import (
	"math"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func TestLookup(t *testing.T) {
	for ref, want := range map[string]catalogue.Entry{
		"openai:gpt-4o":            {128000, 2_500_000, 1_250_000, 10_000_000, true},
		"openai:gpt-4o-2024-08-06": {128000, 2_500_000, 1_250_000, 10_000_000, true},
		"openai:gpt-4":             {8192, 30_000_000, 30_000_000, 60_000_000, true},
		"openai:gpt-4o-2024-8-06":  {Window: catalogue.FallbackWindow},
		"openai:gpt-4o-0000-00-0x": {Window: catalogue.FallbackWindow},
		"openai:qwen":              {Window: catalogue.FallbackWindow},
		"script:a.yaml":            {Window: catalogue.FallbackWindow},
		"":                         {Window: catalogue.FallbackWindow},
	} {
		if got := catalogue.Lookup(ref); got != want {
			t.Errorf("%q is %+v, want %+v", ref, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	gpt5 := catalogue.Lookup("openai:gpt-5")
	for _, c := range []struct {
		usage *harnessv1.Usage
		want  uint64
	}{
		{nil, 0},
		{&harnessv1.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}, 2_250_000},
		{&harnessv1.Usage{InputTokens: 1000, CachedInputTokens: 800, OutputTokens: 10}, 250 + 100 + 100},
		{&harnessv1.Usage{InputTokens: 10, CachedInputTokens: 99}, 1},
		{&harnessv1.Usage{InputTokens: math.MaxUint64}, math.MaxUint64 / 1_000_000},
	} {
		if got := gpt5.Cost(c.usage); got != c.want {
			t.Errorf("%v costs %d, want %d", c.usage, got, c.want)
		}
	}
	if got := catalogue.Lookup("openai:unknown").Cost(&harnessv1.Usage{InputTokens: 5}); got != 0 {
		t.Errorf("a model without a price costs %d", got)
	}
}

func TestExtend(t *testing.T) {
	c, err := catalogue.Default().Extend("own.yaml", []byte("models:\n- {ref: openai:gpt-4o, window: 9}\n- {ref: openai:local, window: 32768, input: 0.1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Lookup("openai:gpt-4o"); got != (catalogue.Entry{Window: 9, Known: true}) {
		t.Errorf("the file's entry is %+v", got)
	}
	if got := c.Lookup("openai:local"); got != (catalogue.Entry{32768, 100_000, 100_000, 0, true}) {
		t.Errorf("the new entry is %+v", got)
	}
	if c.Lookup("openai:gpt-5") != catalogue.Lookup("openai:gpt-5") || catalogue.Lookup("openai:gpt-4o").Window == 9 {
		t.Errorf("extending changed what it should not")
	}
	for _, bad := range []string{
		"models: 1", "model: []", "models: [{ref: openai:x, windows: 1}]", "models: [{ref: gpt, window: 1}]", "models: [{ref: 'openai:', window: 1}]",
		"models: [{ref: openai:x}]", "models: [{ref: openai:x, window: 1, input: -1}]", "models: [{ref: openai:x, window: 1, output: .nan}]",
		"models: [{ref: openai:x, window: 1}, {ref: openai:x, window: 2}]",
	} {
		if _, err := catalogue.Default().Extend("own.yaml", []byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "own.yaml: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with the file", bad, err)
		}
	}
}
