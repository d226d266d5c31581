package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// files returns a megabyte of the files that match patterns.
func files(b *testing.B, patterns ...string) string {
	text := strings.Join(sources(b, patterns...), "")
	return strings.Repeat(text, 1<<20/len(text)+1)[:1<<20]
}

// scenarios are texts of a megabyte.
func scenarios(b *testing.B) []run {
	fixed := func(text string) func(*rand.Rand, int) string { return func(*rand.Rand, int) string { return text } }
	return append([]run{
		{"go", fixed(files(b, "*.go", "../../*/*/*.go"))},
		{"markdown", fixed(files(b, "../../docs/*.md"))},
		{"prose", repeated("The quick brown fox jumps over the lazy dog, and then it rests. ")},
	}, runs...)
}

func BenchmarkCount(b *testing.B) {
	for _, model := range []string{"gpt-4o", "gpt-4"} {
		for _, s := range scenarios(b) {
			text := s.text(rand.New(rand.NewPCG(3, 4)), 1<<20)
			b.Run(model+"/"+strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
				tokens.Count(model, text)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					tokens.Count(model, text)
				}
			})
		}
	}
}

// BenchmarkOracle counts a text also with tiktoken-go, and reports how many times as
// long that takes.
func BenchmarkOracle(b *testing.B) {
	for _, s := range scenarios(b)[:3] {
		text := strings.ToValidUTF8(s.text(nil, 1<<20)[:64<<10], "")
		for model, encoding := range oracle() {
			b.Run(model+"/"+s.name, func(b *testing.B) {
				tokens.Count(model, text)
				b.SetBytes(int64(len(text)))
				var own, other time.Duration
				for b.Loop() {
					begin := time.Now()
					encoding.EncodeOrdinary(text)
					middle := time.Now()
					tokens.Count(model, text)
					own, other = own+time.Since(middle), other+middle.Sub(begin)
				}
				b.ReportMetric(float64(other)/float64(own), "x-tiktoken")
			})
		}
	}
}

// BenchmarkFirstCount opens a vocabulary and counts a text, of a word and of 64 KB.
func BenchmarkFirstCount(b *testing.B) {
	for name, text := range map[string]string{"word": "hello", "go": files(b, "*.go")[:64<<10], "markdown": files(b, "../../docs/*.md")[:64<<10]} {
		for _, encoding := range encodings {
			b.Run(encoding+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					tokens.FirstCount(encoding, text)
				}
			})
		}
	}
}
