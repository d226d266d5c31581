package tokens_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/dlclark/regexp2"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// patterns are those of tiktoken-go, which it does not export.
var patterns = sync.OnceValue(func() map[string]*regexp2.Regexp {
	out := map[string]*regexp2.Regexp{}
	for model, encoding := range oracle() {
		pattern := reflect.ValueOf(encoding).Elem().FieldByName("pbeEncoding").Elem().FieldByName("PatStr").String()
		out[model] = regexp2.MustCompile(pattern, regexp2.None)
	}
	return out
})

func comparePieces(t errorf, text string) {
	text = strings.ToValidUTF8(text, "\ufffd")
	for model, pattern := range patterns() {
		var want []string
		for m, err := pattern.FindStringMatch(text); m != nil; m, err = pattern.FindNextMatch(m) {
			if err != nil {
				panic(err)
			}
			want = append(want, m.String())
		}
		if got := tokens.Pieces(model, text); !slices.Equal(got, want) {
			t.Errorf("%s: pieces %q, want %q", model, got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, text := range append(sources(t, "*.go", "../../docs/adr/*.md"), samples...) {
		comparePieces(t, text)
	}
	for _, run := range runs {
		comparePieces(t, run.text(rand.New(rand.NewPCG(1, 12)), 300))
	}
}

// TestPiecesOfEachRune puts each rune between others of each class.
func TestPiecesOfEachRune(t *testing.T) {
	if testing.Short() {
		t.Skip("tries a million texts")
	}
	var b strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xd800 <= r && r < 0xe000 || r >= 0x30000 && r%0x1000 != 0 {
			continue // no runes, and those that are alike
		}
		others := []string{"a", "B", " ", "7", "-", "'", "\n", "\u0301"}
		if r >= 0x250 { // one of them, to save time
			others = others[r%8 : r%8+1]
		}
		for _, other := range others {
			b.WriteString(other)
			b.WriteRune(r)
			b.WriteString(other)
		}
		if b.Len() > 1<<16 {
			comparePieces(t, b.String())
			b.Reset()
		}
	}
	comparePieces(t, b.String())
}

func TestPiecesOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comparePieces(t, strings.Join(rapid.SliceOfN(pieces, 0, 20).Draw(t, "pieces"), ""))
		comparePieces(t, rapid.String().Draw(t, "text"))
	})
}

func FuzzPieces(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { comparePieces(t, text) })
}
