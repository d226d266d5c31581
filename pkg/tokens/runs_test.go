package tokens_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// run makes a text of one kind, of about n bytes: most are one long piece.
type run struct {
	name string
	text func(r *rand.Rand, n int) string
}

const lowercase = "abcdefghijklmnopqrstuvwxyz"

var runs = []run{
	{"one letter", repeated("a")}, {"one capital", repeated("A")}, {"letters", of(lowercase)}, {"capitals", of(strings.ToUpper(lowercase))},
	{"mixed case", of(lowercase + strings.ToUpper(lowercase))}, {"four letters", of("aeit")},
	{"base64", encoded(base64.StdEncoding.EncodeToString)}, {"hex", encoded(hex.EncodeToString)},
	{"digits", of("0123456789")}, {"one digit", repeated("7")},
	{"equal signs", repeated("=")}, {"dashes", repeated("-")}, {"punctuation", of("!#$%&()*+,-./:;<=>?@[]^_{|}~")}, {"two symbols", of("-=")},
	{"rule", repeated("+--------")}, {"spaces", repeated(" ")}, {"tabs", repeated("\t")}, {"newlines", repeated("\n")},
	{"blank lines", repeated("  \r\n")}, {"white space", of(" \t\n")},
	{"one ideograph", repeated("漢")}, {"ideographs", between(0x4e00, 0x9fa5)}, {"kana", between(0x3041, 0x3096)}, {"hangul", between(0xac00, 0xd7a3)},
	{"cyrillic", between(0x430, 0x44f)}, {"arabic", between(0x627, 0x64a)}, {"thai", between(0xe01, 0xe2e)}, {"devanagari", between(0x904, 0x939)},
	{"one emoji", repeated("😀")}, {"emoji", between(0x1f600, 0x1f64f)}, {"family", repeated("👨‍👩‍👧‍👦")},
	{"one mark", repeated("A\u0301")}, {"marks", of("a\u0300\u0301\u0302\u0303\u0304\u0305\u0306")},
	{"json", minified}, {"javascript", repeated("var a=b(c,{d:1,e:[2]});if(a!==null){return f(a)}else{throw new Error('g')}")},
}

func repeated(s string) func(*rand.Rand, int) string {
	return func(_ *rand.Rand, n int) string { return strings.Repeat(s, n/len(s)) }
}

// of picks runes of an alphabet.
func of(alphabet string) func(*rand.Rand, int) string {
	runes := []rune(alphabet)
	return func(r *rand.Rand, n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		return b.String()
	}
}

func between(first, last rune) func(*rand.Rand, int) string {
	var b strings.Builder
	for r := first; r <= last; r++ {
		b.WriteRune(r)
	}
	return of(b.String())
}

func encoded(encode func([]byte) string) func(*rand.Rand, int) string {
	return func(r *rand.Rand, n int) string {
		bytes := make([]byte, n)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		return encode(bytes)[:n]
	}
}

func minified(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		line, err := json.Marshal(map[string]any{"id": r.IntN(1e6), "name": of(lowercase)(r, 8), "score": r.Float64(), "tags": []string{"alpha", "beta"}, "ok": true})
		if err != nil {
			panic(err)
		}
		b.Write(line)
	}
	return b.String()
}
