package tokens_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"
)

// encodings are the files of the loader, by a model that uses each.
var encodings = map[string]string{"gpt-4o": "o200k_base", "gpt-4": "cl100k_base"}

// TestCountIsExactOnLongRuns compares runs that the quadratic oracle cannot count.
func TestCountIsExactOnLongRuns(t *testing.T) {
	for model, encoding := range encodings {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(encoding + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			size := 20_000
			if run.name == "letters" || run.name == "spaces" {
				size = 200_000
			}
			if testing.Short() {
				size /= 10
			}
			text := run.text(rand.New(rand.NewPCG(7, 8)), size)
			want := 0
			for _, piece := range tokens.Pieces(model, text) {
				if _, ok := ranks[piece]; ok {
					want++ // whatever merging it gives
				} else {
					want += len(heapSizes(ranks, piece))
				}
			}
			if got := tokens.Count(model, text); got != want {
				t.Errorf("%s, %s: %d tokens, want %d", model, run.name, got, want)
			}
		}
	}
}

// merging compares the tokens of a piece with those of the heap, in a text that continues as
// the piece does.
func merging(t errorf, v *vocabulary.Vocabulary, ranks map[string]int, piece string) {
	text := piece[len(piece)/2:] + piece + piece
	from := len(piece) - len(piece)/2
	if got, want := tokens.Sizes(v, text, from, from+len(piece)), heapSizes(ranks, piece); !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("the tokens of %d bytes differ from number %d on: %v, want %v", len(piece), at, got[at:min(at+5, len(got))], want[at:min(at+5, len(want))])
	}
}

// vocabularyOf returns a vocabulary of the 256 bytes and of tokens, the first one with the
// lowest rank.
func vocabularyOf(t testing.TB, tokens []string) (*vocabulary.Vocabulary, map[string]int) {
	ranks := map[string]int{}
	var file strings.Builder
	add := func(token string) {
		if _, ok := ranks[token]; !ok {
			fmt.Fprintln(&file, base64.StdEncoding.EncodeToString([]byte(token)), len(ranks))
			ranks[token] = len(ranks)
		}
	}
	for c := range 256 {
		add(string([]byte{byte(c)}))
	}
	for _, token := range tokens {
		add(token)
	}
	lines := io.NewSectionReader(strings.NewReader(file.String()), 0, int64(file.Len()))
	index, err := vocabulary.Build(lines)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vocabulary.Open(lines, string(index))
	if err != nil {
		t.Fatal(err)
	}
	return v, ranks
}

// madeUp draws tokens of an alphabet, which are not the result of any training.
func madeUp(t *rapid.T, random *rand.Rand, alphabet string, longest int) []string {
	made := make([]string, rapid.IntRange(1, 60).Draw(t, "tokens"))
	for i := range made {
		made[i] = of(alphabet)(random, 2+random.IntN(longest-1))
	}
	return made
}

func TestMergeIsExactForAnyVocabulary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alphabet := lowercase[:rapid.IntRange(1, 4).Draw(rt, "letters")]
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 9))
		v, ranks := vocabularyOf(t, madeUp(rt, random, alphabet, 12))
		merging(rt, v, ranks, of(alphabet)(random, rapid.IntRange(2, 5000).Draw(rt, "length")))
	})
}

// TestMergeIsExactIfNoWindowSuffices merges a text in which each merge depends on the one
// to its right: which of two bytes are a token depends on where the text ends.
func TestMergeIsExactIfNoWindowSuffices(t *testing.T) {
	var text []byte // each pair of 64 bytes, once
	for a := range byte(64) {
		text = append(text, a)
		for b := a + 1; b < 64; b++ {
			text = append(text, a, b)
		}
	}
	var pairs []string
	for i := range len(text) - 1 {
		pairs = append(pairs, string(text[i:i+2]))
	}
	slices.Reverse(pairs) // the last one has the lowest rank
	v, ranks := vocabularyOf(t, pairs)
	for _, n := range []int{2, 600, 601, 1151, 1153, 2000, 2001, len(text) - 1, len(text)} {
		merging(t, v, ranks, string(text[:n]))
	}
}

// TestRepetitions merges texts that repeat themselves, with a few other bytes in between.
func TestRepetitions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 10))
		v, ranks := vocabularyOf(t, madeUp(rt, random, "ab", 40))
		text := "ab"
		for range rapid.IntRange(1, 4).Draw(rt, "runs") {
			text += strings.Repeat(of("ab")(random, 1+random.IntN(20)), random.IntN(300))
			text += of("ab")(random, random.IntN(5))
		}
		merging(rt, v, ranks, text)
	})
}

// TestRepetitionOfAnotherToken repeats bytes that are a token at first, where the first
// window ends, but not when they follow themselves.
func TestRepetitionOfAnotherToken(t *testing.T) {
	v, ranks := vocabularyOf(t, []string{"ba", "ab", "cc"})
	for before := range 300 {
		merging(t, v, ranks, strings.Repeat("cc", before)+strings.Repeat("ab", 500))
	}
}

// TestHeap compares the heap with the definition of byte-pair encoding.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11))
		ranks := map[string]int{}
		for _, token := range madeUp(t, random, "abc", 7) {
			ranks[token] = len(ranks)
		}
		text := of("abc")(random, rapid.IntRange(1, 100).Draw(t, "length"))
		if got, want := heapSizes(ranks, text), scanSizes(ranks, text); !slices.Equal(got, want) {
			t.Errorf("%v tokens of %v in %q, want %v", got, ranks, text, want)
		}
	})
}

// TestPieceThatIsAToken counts tokens that merging does not make: tiktoken does not merge
// a piece that is a token.
func TestPieceThatIsAToken(t *testing.T) {
	v, _ := vocabularyOf(t, []string{"abc", strings.Repeat("d", 180)})
	for piece, want := range map[string]int{"abc": 1, "abcd": 4, strings.Repeat("d", 180): 1, strings.Repeat("d", 181): 181} {
		if got := tokens.CountPiece(v, piece); got != want {
			t.Errorf("%q is %d tokens, want %d", piece, got, want)
		}
	}
}

// FuzzMerge merges any bytes with any tokens.
func FuzzMerge(f *testing.F) {
	f.Add("ab bc abc", "abcabc", uint16(300))
	f.Add("aa aaaa", "a", uint16(2000))
	f.Fuzz(func(t *testing.T, made, text string, times uint16) {
		fields := slices.DeleteFunc(strings.Fields(made), func(s string) bool { return len(s) < 2 || len(s) > 100 })
		if text = strings.Repeat(text, int(times)); len(text) < 2 || len(text) > 20_000 {
			return
		}
		v, ranks := vocabularyOf(t, fields)
		merging(t, v, ranks, text)
	})
}
