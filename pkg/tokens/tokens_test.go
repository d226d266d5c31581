package tokens_test

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	for model, name := range map[string]string{"gpt-4o": "o200k_base", "gpt-4": "cl100k_base"} {
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
			t.Errorf("%s: %d tokens in %q, want %d", model, got, text, want)
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
	"\u0301ABC", "1\u0301AB's", "\n\u0301\u0301AB\u0301C", "\u0301ʰAB", "\u0301A\u0301'", "ſ's 'ſ K'd", strings.Repeat("=", 200), strings.Repeat(" ", 300) + "x", strings.Repeat("ab", 150), strings.Repeat("あ", 120), strings.Repeat("A", 150) + "b",
}

func TestCountIsExact(t *testing.T) {
	for _, text := range samples {
		compare(t, text)
	}
	if got := tokens.Count("gpt-4o", "a\xff\xfeb"); got != tokens.Count("gpt-4o", "a\ufffd\ufffdb") {
		t.Errorf("invalid UTF-8 counts %d", got)
	}
}

func TestCountIsExactOnSources(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, string(b))
	}
}

func TestCountIsExactOnAnyText(t *testing.T) {
	pieces := rapid.SampledFrom(append([]string{"'", "'s", "'LL", " ", "  ", "\n", "\r\n", "\t", "/", "a", "B", "Zz", "é", "e\u0301", "\u0301", "ʰ", "世", "ǅ", "7", "½", "-", "😀", "_", "\u00a0", "\u0085"}, samples...))
	rapid.Check(t, func(t *rapid.T) {
		compare(t, strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), ""))
		compare(t, rapid.String().Draw(t, "text"))
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4096 {
			compare(t, text)
		}
	})
}

// TestLongPieces compares long runs with the oracle as far as it can count them.
func TestLongPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 6000)
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyz"[random.IntN(26)]
	}
	for _, text := range []string{strings.Repeat("a", 6000), string(letters), strings.Repeat("=-", 3000), strings.Repeat(" ", 5000), strings.Repeat("漢字", 1000)} {
		compare(t, text)
	}
}

// longRuns are texts of a megabyte that take a quadratic encoder hours.
func longRuns() map[string]string {
	random := rand.New(rand.NewPCG(3, 4))
	bytes := make([]byte, 768<<10)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	letters := make([]byte, 1<<20)
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyz"[random.IntN(26)]
	}
	return map[string]string{
		"one letter": strings.Repeat("a", 1<<20), "letters": string(letters), "base64": base64.StdEncoding.EncodeToString(bytes),
		"blanks": strings.Repeat(" ", 1<<20), "symbols": strings.Repeat("=", 1<<20), "kanji": strings.Repeat("漢字", 1<<20/6),
		"marks": strings.Repeat("A\u0301", 1<<20/3), "upper": strings.Repeat("A", 1<<20), "newlines": strings.Repeat(" \n", 1<<19),
	}
}

func TestLongRunsTakeBoundedTime(t *testing.T) {
	tokens.Count("gpt-4o", "load")
	for name, text := range longRuns() {
		begin := time.Now()
		n := tokens.Count("gpt-4o", text)
		took := time.Since(begin)
		t.Logf("%s: %d tokens in %s", name, n, took)
		if took > 30*time.Second { // some 50 times what it takes
			t.Errorf("%s took %s", name, took)
		}
	}
}

// TestCutError holds the bound of the package comment: a cut changes the count
// by at most 4.
func TestCutError(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for name, alphabet := range map[string]string{
		"letters": "abcdefghijklmnopqrstuvwxyz", "few letters": "aeint", "one": "a", "capitals": "ABCDE",
		"kanji": "漢字世界日本", "blanks": " ", "symbols": "=-_*#/", "marks": "a\u0301\u0302",
	} {
		runes := []rune(alphabet)
		for range 100 {
			text := make([]rune, 600)
			for i := range text {
				text[i] = runes[random.IntN(len(runes))]
			}
			at := 200 + random.IntN(200)
			l, r := string(text[:at]), string(text[at:])
			whole, cut := tokens.Count("gpt-4o", l+r), tokens.Count("gpt-4o", l)+tokens.Count("gpt-4o", r)
			if cut-whole > 4 || whole-cut > 4 {
				t.Errorf("%s: cut %d tokens, whole %d", name, cut, whole)
			}
		}
	}
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
	for model, want := range map[string]int{
		"gpt-4": old, "openai:gpt-4": old, "gpt-4-0613": old, "gpt-4-turbo-2024-04-09": old, "gpt-3.5-turbo": old, "OpenAI/GPT-4": old,
		"gpt-4o": recent, "gpt-4.1-mini": recent, "gpt-5": recent, "o3": recent, "openai:qwen3": recent, "": recent, "script:a.yaml": recent,
	} {
		if got := tokens.Count(model, text); got != want {
			t.Errorf("%s counts %d, want %d", model, got, want)
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

func BenchmarkCount(b *testing.B) {
	source, err := os.ReadFile("scan.go")
	if err != nil {
		b.Fatal(err)
	}
	texts := map[string]string{"source": strings.Repeat(string(source), 10), "prose": strings.Repeat("The quick brown fox jumps over the lazy dog, and then it rests. ", 1000)}
	for name, text := range longRuns() {
		texts[name] = text
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			tokens.Count("gpt-4o", "load")
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tokens.Count("gpt-4o", text)
			}
		})
	}
}

// BenchmarkOracle is the floor to compare with.
func BenchmarkOracle(b *testing.B) {
	source, err := os.ReadFile("scan.go")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(source), 10)
	enc := oracle()["gpt-4o"]
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		enc.EncodeOrdinary(text)
	}
}
