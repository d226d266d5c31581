package narration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

func BenchmarkNarration(b *testing.B) {
	artifacts, size := labelledArtifacts(b), 0
	for _, a := range artifacts {
		size += len(a.Content)
	}
	b.SetBytes(int64(size / len(artifacts)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		narration.Check(artifacts[n%len(artifacts)].Content)
	}
}

// BenchmarkNarrationGrowth reports how much longer eight times as much text takes, where
// quotes are never closed and lines never end: about 8 where it is linear.
func BenchmarkNarrationGrowth(b *testing.B) {
	for name, unit := range map[string]string{
		"quotes": "\"`“", "dashes": "--- ", "words": "My I'm ", "lines": "Here is the plan:\n", "lists": "- I'll write it.\n", "guillemets": "«„", "fences": "```\n",
	} {
		b.Run(name, func(b *testing.B) {
			var took [2]time.Duration
			for range b.N {
				for i, n := range []int{64 << 10, 512 << 10} {
					text := strings.Repeat(unit, n/len(unit))
					began := time.Now()
					narration.Check(text)
					took[i] += time.Since(began)
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "ratio-512K/64K")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs-512K")
			b.ReportMetric(0, "ns/op")
		})
	}
}
