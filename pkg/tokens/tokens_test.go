package tokens_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// oracle is another implementation of the encodings, by a model that uses each.
var oracle = sync.OnceValue(func() map[string]*tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	out := map[string]*tiktoken.Tiktoken{}
	for model, name := range map[string]string{"gpt-4o": tiktoken.MODEL_O200K_BASE, "gpt-4": tiktoken.MODEL_CL100K_BASE} {
		enc, err := tiktoken.GetEncoding(name)
		if err != nil {
			panic(err)
		}
		out[model] = enc
	}
	return out
})

type errorf interface {
	Errorf(format string, args ...any)
}

func compare(t errorf, text string) {
	for model, enc := range oracle() {
		if got, want := tokens.Count(model, text), len(enc.EncodeOrdinary(text)); got != want {
			t.Errorf("%s: %d tokens in %.200q (%d bytes), want %d", model, got, text, len(text), want)
		}
	}
}

var samples = []string{
	"", " ", "a", "hello world", "Hello, World! It's 12345 o'clock; we'LL see.", "don't DON'T don'T 're 've'll 'x",
	"func main() {\n\tfmt.Println(\"hi\")\n}\n\n\n  // end  \n", "   indented\n\t\ttabs \r\n\r\nmixed \u00a0\u2003 spaces",
	"Grüße aus Köln, 世界こんにちは안녕 Привет مرحبا שלום हिन्दी ไทย", "ǅungla ʰʲ ªº ÀÉÎ é́́x e\u0301\u0301 \u0301abc \u0301\u0301",
	"camelCase HTTPServer XMLHttpRequest snake_case SCREAMING_CASE", "😀👨‍👩‍👧‍👦🇩🇪 ✓ ── ═══ ½ Ⅷ ٣٤٥٦ ²³",
	"https://example.com/a/b//c?x=1&y=2#z", "<|endoftext|> <|fim_prefix|> <|im_start|>", "\x00\x01\x7f\ufffd\ufeff", "///\n/ /\r\n//x",
	"''s'S 'T'tt", "a\n b\n  c", "     x", " \n ", "\n\n\n", "x \n", "1 22 333 4444 55555", "{\"a\": [1, 2.5, null], \"b\": \"\\u00e9\"}",
	"\u0301ABC", "1\u0301AB's", "\n\u0301\u0301AB\u0301C", "\u0301ʰAB", "\u0301A\u0301'", "ſ's 'ſ K'd", "Aé aÉ ABcÉ ABÉ 'é's", "a\nb\rc\n\rD",
	strings.Repeat("=", 200), strings.Repeat(" ", 300) + "x", strings.Repeat("ab", 150), strings.Repeat("あ", 120), strings.Repeat("A", 150) + "b",
}

func TestCountIsExact(t *testing.T) {
	for _, text := range samples {
		compare(t, text)
	}
	if got := tokens.Count("gpt-4o", "a\xff\xfeb"); got != tokens.Count("gpt-4o", "a\ufffd\ufffdb") {
		t.Errorf("invalid UTF-8 counts %d", got)
	}
}

// sources returns the contents of the files that match patterns.
func sources(t testing.TB, patterns ...string) []string {
	var texts []string
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
	}
	return texts
}

func TestCountIsExactOnSources(t *testing.T) {
	if testing.Short() {
		t.Skip("counts many files")
	}
	for _, text := range sources(t, "*.go", "../../docs/*.md", "../../go.sum") {
		compare(t, text)
	}
}

var pieces = rapid.SampledFrom(append([]string{"'", "'s", "'LL", " ", "  ", "\n", "\r\n", "\t", "/", "a", "B", "Zz", "é", "É", "e\u0301", "\u0301", "ʰ", "世", "ǅ", "7", "½", "-", "😀", "_", "\u00a0", "\u0085"}, samples...))

func TestCountIsExactOnAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compare(t, strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), ""))
		compare(t, rapid.String().Draw(t, "text"))
	})
}

// TestCountIsExactOnRuns compares runs that are merged in many windows, as long as the
// oracle, which is quadratic, can count them in milliseconds.
func TestCountIsExactOnRuns(t *testing.T) {
	for _, run := range runs {
		compare(t, run.text(rand.New(rand.NewPCG(1, 2)), 4000))
	}
}

func TestCountIsExactOnAnyRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
			b.WriteString(rapid.SampledFrom(runs).Draw(t, "run").text(r, rapid.IntRange(0, 3000).Draw(t, "bytes")))
			b.WriteString(pieces.Draw(t, "between"))
		}
		compare(t, b.String())
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range samples {
		f.Add(s, uint16(1))
	}
	f.Add("ab", uint16(900))
	f.Fuzz(func(t *testing.T, text string, times uint16) {
		if text = strings.Repeat(text, int(times)); len(text) < 4096 {
			compare(t, text)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := tokens.Count("openai:gpt-3.5-turbo", "hello world"); got != 2 {
				t.Errorf("%d tokens, want 2", got)
			}
		})
	}
	wg.Wait()
}

func TestModels(t *testing.T) {
	const text = "नमस्ते दुनिया" // o200k needs far fewer tokens for it
	old, recent := tokens.Count("gpt-4", text), tokens.Count("gpt-4o", text)
	if old == recent {
		t.Fatal("the sample does not tell the encodings apart")
	}
	for model, want := range map[string]struct {
		count int
		known bool
	}{
		"gpt-4": {old, true}, "openai:gpt-4": {old, true}, "gpt-4-0613": {old, true}, "gpt-4-turbo-2024-04-09": {old, true}, "gpt-3.5-turbo": {old, true}, "OpenAI/GPT-4": {old, true},
		"gpt-4o": {recent, true}, "gpt-4.1-mini": {recent, true}, "gpt-5": {recent, true}, "openai:gpt-5.4-nano": {recent, true}, "gpt-6.1-sol": {recent, true},
		"o3": {recent, true}, "o4-mini": {recent, true}, "groq:openai/gpt-oss-120b": {recent, true},
		"openai:qwen3": {recent, false}, "": {recent, false}, "script:a.yaml": {recent, false}, "anthropic:claude-opus-5-5": {recent, false},
		"gpt-4.9": {recent, false}, "gpt-50": {recent, false}, "gpt-neox": {recent, false}, "o3x": {recent, false},
	} {
		if got := tokens.Count(model, text); got != want.count {
			t.Errorf("%s counts %d, want %d", model, got, want.count)
		}
		if tokens.Known(model) != want.known {
			t.Errorf("%s: known is %v, want %v", model, !want.known, want.known)
		}
	}
}

// TestModelsOfTiktoken compares the families with the table of tiktoken-go.
func TestModelsOfTiktoken(t *testing.T) {
	const text = "नमस्ते दुनिया"
	counts := map[string]int{tiktoken.MODEL_O200K_BASE: tokens.Count("gpt-4o", text), tiktoken.MODEL_CL100K_BASE: tokens.Count("gpt-4", text)}
	models := map[string]string{}
	for model, encoding := range tiktoken.MODEL_TO_ENCODING {
		models[model] = encoding
	}
	for prefix, encoding := range tiktoken.MODEL_PREFIX_TO_ENCODING {
		models[prefix+"2030-01-01"] = encoding
	}
	for model, encoding := range models {
		want, known := counts[encoding]
		if tokens.Known(model) != known {
			t.Errorf("%s with %s: known is %v", model, encoding, !known)
		}
		if got := tokens.Count(model, text); known && got != want {
			t.Errorf("%s with %s counts %d, want %d", model, encoding, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	inline := func(s string) *harnessv1.Content {
		return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: s}}
	}
	for want, m := range map[int]*harnessv1.Message{
		tokens.MessageOverhead:     {},
		tokens.MessageOverhead + 2: {Role: harnessv1.Role_ROLE_USER, Content: inline("hello world")},
		tokens.MessageOverhead + 3: {ToolCalls: []*harnessv1.ToolCall{{Id: "a", Name: "b", Arguments: inline("c")}}},
		tokens.MessageOverhead + 1: {Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Size: 9999, Preview: "hello"}}}},
	} {
		if got := tokens.Message("gpt-4o", m); got != want {
			t.Errorf("%v counts %d, want %d", m, got, want)
		}
	}
	if got := tokens.Tool("gpt-4o", &harnessv1.ToolSpec{Name: "a", Description: "b", ParametersSchema: "c"}); got != tokens.MessageOverhead+3 {
		t.Errorf("the tool counts %d", got)
	}
}
