package catalogue_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func TestLookup(t *testing.T) {
	gpt4o := catalogue.Entry{Window: 128000, MaxOutput: 16384, Known: true, Priced: true,
		Prices: catalogue.Prices{Input: 2_500_000, Cached: 1_250_000, Written: 2_500_000, Output: 10_000_000}}
	haiku := catalogue.Entry{Window: 200000, MaxOutput: 64000, Known: true, Priced: true,
		Prices: catalogue.Prices{Input: 1_000_000, Cached: 100_000, Written: 1_250_000, Output: 5_000_000}}
	for ref, want := range map[string]catalogue.Entry{
		"openai:gpt-4o":                       gpt4o,
		"openai:gpt-4o-2024-08-06":            gpt4o,
		"anthropic:claude-haiku-4-5":          haiku,
		"anthropic:claude-haiku-4-5-20251001": haiku,
		"openai:gpt-4o-2024-8-06":             {Window: catalogue.FallbackWindow},
		"openai:gpt-4o-0000-00-0x":            {Window: catalogue.FallbackWindow},
		"openai:qwen":                         {Window: catalogue.FallbackWindow},
		"script:a.yaml":                       {Window: catalogue.FallbackWindow},
		"":                                    {Window: catalogue.FallbackWindow},
	} {
		got := catalogue.Lookup(ref)
		got = catalogue.Entry{Window: got.Window, MaxOutput: got.MaxOutput, Prices: got.Prices, Known: got.Known, Priced: got.Priced}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", ref, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		ref     string
		usage   *harnessv1.Usage
		written uint64
		want    uint64
	}{
		{"openai:gpt-5", nil, 0, 0},
		{"openai:gpt-5", &harnessv1.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}, 0, 2_250_000},
		{"openai:gpt-5", &harnessv1.Usage{InputTokens: 1000, CachedInputTokens: 800, OutputTokens: 10}, 0, 250 + 100 + 100},
		{"openai:gpt-5", &harnessv1.Usage{InputTokens: 10, CachedInputTokens: 99}, 0, 1},
		{"openai:gpt-5", &harnessv1.Usage{InputTokens: math.MaxUint64}, 0, math.MaxUint64 / 1_000_000},
		{"anthropic:claude-haiku-4-5", &harnessv1.Usage{InputTokens: 1000, CachedInputTokens: 600, OutputTokens: 100}, 300, 100 + 60 + 375 + 500},
		{"anthropic:claude-haiku-4-5", &harnessv1.Usage{InputTokens: 100}, math.MaxUint64, 125},
		{"anthropic:claude-haiku-5-5", &harnessv1.Usage{InputTokens: 100_000, OutputTokens: 1000}, 0, 10_000 + 500},
		{"anthropic:claude-haiku-5-5", &harnessv1.Usage{InputTokens: 100_001, CachedInputTokens: 100_001, OutputTokens: 1000}, 0, 5_000 + 2_500},
		{"openai:unknown", &harnessv1.Usage{InputTokens: 5}, 0, 0},
	} {
		if c.usage != nil {
			c.usage.CacheWriteTokens = c.written
		}
		if got := catalogue.Lookup(c.ref).Cost(c.usage); got != c.want {
			t.Errorf("%v of %s costs %d, want %d", c.usage, c.ref, got, c.want)
		}
	}
}

func TestExtend(t *testing.T) {
	const own = `models:
  - {ref: openai:gpt-4o, window: 9}
  - ref: openai:local
    window: 32_768
    max_output: 4096
    input: 0.1
    long: {above: 16000, input: 0.2, output: 1}
`
	c, err := catalogue.Default().Extend("own.yaml", []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Lookup("openai:gpt-4o"); !reflect.DeepEqual(got, catalogue.Entry{Window: 9, Known: true, TokenFactor: 1}) {
		t.Errorf("the file's entry is %+v", got)
	}
	if got := c.Lookup("openai:local"); !reflect.DeepEqual(got, catalogue.Entry{
		Window: 32768, MaxOutput: 4096, Known: true, Priced: true, Prices: catalogue.Prices{Input: 100_000, Cached: 100_000, Written: 100_000},
		LongAbove: 16000, Long: catalogue.Prices{Input: 200_000, Cached: 200_000, Written: 200_000, Output: 1_000_000}, TokenFactor: 1.25,
	}) {
		t.Errorf("the new entry is %+v", got)
	}
	if !reflect.DeepEqual(c.Lookup("openai:gpt-5"), catalogue.Lookup("openai:gpt-5")) || catalogue.Lookup("openai:gpt-4o").Window == 9 {
		t.Errorf("extending changed what it should not")
	}
}

var place = regexp.MustCompile(`^own\.yaml:\d+:\d+: `)

func TestExtendReportsThePlace(t *testing.T) {
	for file, says := range map[string]string{
		"": "1:1: the catalogue is empty", "# nothing": "1:1: the catalogue is empty", "models: 1": "1:9: models must be a list",
		"[]": "1:1: a catalogue must be a mapping", "{}": "1:1: the catalogue is empty", "model: []": `1:1: a catalogue has no field "model"`,
		"models: []\nmodels: []": "2:1: duplicate field models", "models: []\n---\nmodels: []": "a catalogue is one document", "models: [": "did not find expected",
		"models:\n- {ref: openai:x, windows: 1}": `2:19: a model has no field "windows"`, "models: [1]": "1:10: a model must be a mapping",
		"models: [{ref: gpt, window: 1}]": "1:16: ref must be a provider and a name", "models: [{ref: 'openai:', window: 1}]": "1:16: ref must be",
		"models: [{window: 1}]": "1:10: ref must be", "models: [{ref: openai:x}]": "1:10: openai:x has no window", "models: [{ref: openai:x, window: 0}]": "1:34: window must be",
		"models: [{ref: openai:x, window: 5000000000}]": "1:34: window must be", "models: [{ref: openai:x, window: [1]}]": "window must be",
		"models: [{ref: openai:x, window: 1, max_output: -3}]": "1:49: max_output must be", "models: [{ref: openai:x, window: 1, input: -1}]": "1:44: input must be a price",
		"models: [{ref: openai:x, window: 1, output: .nan}]": "1:45: output must be a price", "models: [{ref: openai:x, window: 1, output: NaN}]": "1:45: output must be a price",
		"models: [{ref: openai:x, window: 1, output: 1e7}]": "1000000 US dollars", "models: [{ref: openai:x, window: 1, cached: 1}]": "1:10: openai:x has prices without",
		"models: [{ref: openai:x, window: 1, input: 1, long: 3}]": "1:53: long must be a mapping", "models: [{ref: openai:x, window: 1, input: 1, long: {above: 3}}]": "long must say",
		"models:\n- {ref: openai:x, window: 1}\n- {ref: openai:x, window: 2}": "3:3: duplicate model openai:x",
	} {
		_, err := catalogue.Default().Extend("own.yaml", []byte(file))
		if err == nil || !place.MatchString(err.Error()) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one line with the place and %q", file, err, says)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.yaml")
	if _, err := catalogue.Load(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("error %v, want one with the file", err)
	}
	if err := os.WriteFile(path, []byte("models: [{ref: openai:own, window: 5}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Load(path)
	if err != nil || c.Lookup("openai:own").Window != 5 || !c.Lookup("openai:gpt-5").Known {
		t.Errorf("%v: the file is not laid over what is embedded", err)
	}
}

func FuzzExtend(f *testing.F) {
	f.Add([]byte("models: [{ref: openai:x, window: 1, input: 1, long: {above: 3, input: 1, output: 2}}]"))
	f.Add([]byte("a: &a {ref: openai:x}\nmodels: [*a]"))
	f.Add([]byte(corp))
	f.Add([]byte("models: [{ref: openai:x, window: 1, efforts: &e [low], reads: [y], image_tokens: {patch: 28, each: 1.5}}, {ref: openai:y, window: 1, efforts: *e}]"))
	f.Add([]byte("providers: [{name: p, wire: [chat], address: http://h, body: &b {a: {c: [1, .inf, 2026-01-01]}}}, {name: q, body: *b}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := catalogue.Default().Extend("own.yaml", data)
		if (c == nil) == (err == nil) {
			t.Errorf("%v and %v: want a catalogue or an error", c, err)
		}
		if err != nil && !place.MatchString(err.Error()) {
			t.Errorf("error %q does not name the place", err)
		}
	})
}
