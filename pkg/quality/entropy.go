package quality

import (
	"math"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	repetitiveWords    = 200 // an answer with fewer is not repetitive
	repetitiveDistinct = 0.3
)

// AnswerFigures returns how varied a text is by its pairs of neighbouring words, which are
// runs of letters and digits in any case. A text with fewer than two words has only distinct
// pairs and 0 bits.
func AnswerFigures(text string) *harnessv1.AnswerFigures {
	words := wordsOf(text)
	f := &harnessv1.AnswerFigures{Words: count(len(words)), Distinct: 1}
	if len(words) < 2 {
		return f
	}
	pairs := map[[2]string]uint64{}
	for n := range len(words) - 1 {
		pairs[[2]string{words[n], words[n+1]}]++
	}
	counts := make([]uint64, 0, len(pairs))
	for _, n := range pairs {
		counts = append(counts, n)
	}
	f.Distinct, f.Bits = float64(len(pairs))/float64(len(words)-1), Bits(counts)
	return f
}

// Bits returns the entropy of a distribution of counts in bits, 0 without any. The order of
// the counts makes no difference.
func Bits(counts []uint64) float64 {
	counts = slices.Sorted(slices.Values(counts))
	var total float64
	for _, n := range counts {
		total += float64(n)
	}
	var bits float64
	for _, n := range counts {
		if n > 0 {
			share := float64(n) / total
			bits -= float64(share * math.Log2(share))
		}
	}
	return max(bits, 0)
}

// Repetitive reports whether an answer has at least 200 words and fewer than 3 distinct in 10
// pairs.
func Repetitive(f *harnessv1.AnswerFigures) bool {
	return f.GetWords() >= repetitiveWords && f.GetDistinct() < repetitiveDistinct
}
