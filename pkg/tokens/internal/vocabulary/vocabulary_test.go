package vocabulary_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"
)

var encodings = []string{"o200k_base", "cl100k_base"}

// open opens a vocabulary with the committed index.
func open(t testing.TB, encoding string) *vocabulary.Vocabulary {
	index, err := os.ReadFile("../../" + encoding + ".index")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := vocabulary.Lines(encoding)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vocabulary.Open(lines, string(index))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ranks are the ranks that the loader returns.
func ranks(t testing.TB, encoding string) map[string]int {
	all, err := loader.NewOfflineLoader().LoadTiktokenBpe(encoding + ".tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rank is Rank in a text that begins before the token and ends after it, which must not
// matter.
func rank(t testing.TB, v *vocabulary.Vocabulary, token string) uint32 {
	got := v.Rank(token, 0, len(token))
	if in := v.Rank("ab"+token+"12345678", 2, 2+len(token)); in != got {
		t.Errorf("%q has rank %d, and %d in a text", token, got, in)
	}
	return got
}

func want(ranks map[string]int, token string) uint32 {
	if r, ok := ranks[token]; ok {
		return uint32(r)
	}
	return vocabulary.None
}

// TestRankIsThatOfTheLoader looks up all tokens, and bytes that differ from them a bit.
func TestRankIsThatOfTheLoader(t *testing.T) {
	if testing.Short() {
		t.Skip("looks every token up")
	}
	for _, encoding := range encodings {
		v, ranks := open(t, encoding), ranks(t, encoding)
		random := rand.New(rand.NewPCG(1, 2))
		for token := range ranks {
			if len(token) < 2 {
				continue
			}
			other := []byte(token)
			other[random.IntN(len(other))] ^= byte(1 << random.IntN(8))
			for _, s := range []string{token, string(other), token + "e", token[:len(token)-1] + "\x00e", token + token} {
				if got := rank(t, v, s); got != want(ranks, s) {
					t.Fatalf("%s: %q has rank %d, want %d", encoding, s, got, want(ranks, s))
				}
			}
		}
		for first := range 256 {
			for second := range 256 {
				pair := string([]byte{byte(first), byte(second)})
				if got := v.Pair(byte(first), byte(second)); got != want(ranks, pair) {
					t.Fatalf("%s: %q has rank %d, want %d", encoding, pair, got, want(ranks, pair))
				}
			}
		}
	}
}

// TestIndexIsCurrent fails if the loader or Build has changed since make generate.
func TestIndexIsCurrent(t *testing.T) {
	for _, encoding := range encodings {
		lines, err := vocabulary.Lines(encoding)
		if err != nil {
			t.Fatal(err)
		}
		built, err := vocabulary.Build(lines)
		if err != nil {
			t.Fatal(err)
		}
		committed, err := os.ReadFile("../../" + encoding + ".index")
		if err != nil || string(committed) != string(built) {
			t.Errorf("%v: %s.index is not what Build returns: run make generate", err, encoding)
		}
	}
}

// TestConcurrentLookups lets goroutines meet at the same cells that are not filled yet.
func TestConcurrentLookups(t *testing.T) {
	v, ranks := open(t, "cl100k_base"), ranks(t, "cl100k_base")
	tokens := slices.DeleteFunc(slices.Sorted(maps.Keys(ranks)), func(token string) bool { return len(token) < 8 })
	check := func() {
		for _, token := range tokens {
			if got := v.Rank(token, 0, len(token)); got != want(ranks, token) {
				t.Errorf("%q has rank %d, want %d", token, got, want(ranks, token))
				return
			}
		}
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			<-start
			check()
		})
	}
	close(start)
	wg.Wait()
	check()
}

func TestRankOfAnyBytes(t *testing.T) {
	v, ranks := open(t, "o200k_base"), ranks(t, "o200k_base")
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOfN(rapid.SampledFrom([]byte("etaoin =\n\x00\xd0\xb0\xff")), 2, 40).Draw(rt, "bytes"))
		if got := rank(t, v, s); got != want(ranks, s) {
			rt.Errorf("%q has rank %d, want %d", s, got, want(ranks, s))
		}
	})
}

func FuzzRank(f *testing.F) {
	v, ranks := open(f, "o200k_base"), ranks(f, "o200k_base")
	for _, s := range []string{" the", "ing", strings.Repeat("=", 64), strings.Repeat(" ", 128), "пример", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for n := 2; n <= min(len(s), 200); n++ {
			if got := rank(t, v, s[:n]); got != want(ranks, s[:n]) {
				t.Errorf("%q has rank %d, want %d", s[:n], got, want(ranks, s[:n]))
			}
		}
	})
}

func section(file string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(file), 0, int64(len(file)))
}

func TestOpenRefusesAnotherIndex(t *testing.T) {
	lines, err := vocabulary.Lines("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile("../../cl100k_base.index")
	if err != nil {
		t.Fatal(err)
	}
	for index, says := range map[string]string{
		"": "not whole", "short": "not whole", string(other): "another version of the file", string(other[:len(other)-1]): "not whole", string(other) + "x": "not whole",
	} {
		if _, err := vocabulary.Open(lines, index); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("an index of %d bytes: error %v, want one with %q", len(index), err, says)
		}
	}
	if _, err := vocabulary.Lines("unknown"); err == nil {
		t.Error("an unknown encoding has lines")
	}
}

func TestBuildRefusesBadFiles(t *testing.T) {
	for file, says := range map[string]string{
		"":                                  "0 of the 256 bytes",
		"YQ== 0\n":                          "1 of the 256 bytes",
		"YQ==\n":                            "must be a token in base64 and its rank",
		"YQ== 0":                            "must be a token in base64 and its rank",
		"YQ! 0\n":                           "illegal base64",
		"YQ== x\n":                          "invalid syntax",
		"YQ== -1\n":                         "invalid syntax",
		"YQ== 262144\n":                     "out of range",
		"YQ==   1\n":                        "invalid syntax",
		"\n":                                "must be a token in base64 and its rank",
		"YWFh 1\r\n":                        "invalid syntax",
		strings.Repeat("YWFh", 70) + " 1\n": "of less than 256 bytes",
	} {
		if _, err := vocabulary.Build(section(file)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one with %q", file, err, says)
		}
	}
}

func TestBuildRefusesLargeVocabularies(t *testing.T) {
	// lines returns a file of the 256 bytes and of n tokens.
	lines := func(n int, token func(i int) string) string {
		var b strings.Builder
		for i := range n + 256 {
			text := string([]byte{byte(i)})
			if i > 255 {
				text = token(i - 256)
			}
			fmt.Fprintln(&b, base64.StdEncoding.EncodeToString([]byte(text)), i)
		}
		return b.String()
	}
	for name, file := range map[string]string{
		"the file": strings.Repeat("\n", 1<<24),
		"a region": lines(50_000, func(i int) string { return fmt.Sprintf("ab%d", i) }),
		"long":     lines(25_000, func(i int) string { return fmt.Sprintf("%0170d", i*7919) }),
	} {
		if _, err := vocabulary.Build(section(file)); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: error %v, want one for a vocabulary that is too large", name, err)
		}
	}
	if _, err := vocabulary.Build(section(lines(40_000, func(i int) string { return fmt.Sprintf("ab%d", i) }))); err != nil {
		t.Error(err)
	}
}
