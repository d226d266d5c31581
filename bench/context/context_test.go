package context

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// windows are the sizes in tokens, with the least share of a request that the provider has
// cached.
var windows = []struct {
	tokens uint32
	share  float64
}{{16_000, 0.70}, {32_000, 0.80}, {64_000, 0.90}, {128_000, 0.95}, {200_000, 0.95}}

// TestEachRequest plays both kinds of work in each window and checks each request. Without
// strategies for results a run lives from summaries alone.
func TestEachRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("plays long runs")
	}
	eachRequest(t, 70)
}

// TestSystemEachRequest plays 200 turns of work instead of 70.
func TestSystemEachRequest(t *testing.T) { eachRequest(t, 200) }

func eachRequest(t *testing.T, turns int) {
	t.Helper()
	for _, w := range windows {
		for _, kind := range []string{"coding", "research"} {
			t.Run(fmt.Sprintf("%s in %d", kind, w.tokens), func(t *testing.T) {
				t.Parallel()
				r := newRun(t, w.tokens, nil)
				if w.tokens <= 32_000 {
					r.checkWires()
				}
				for _, turn := range newWork(kind, turns, 1).turns {
					r.play(turn)
				}
				t.Logf("%d passes, %d summaries, %.0f %% cached", r.figures.passes, r.figures.summaries, 100*r.figures.cachedBytes/r.figures.bytes)
			})
		}
	}
	t.Run("summaries alone", func(t *testing.T) {
		t.Parallel()
		r := newRun(t, 16_000, func(c *harnessv1.ContextConfig) {
			c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
		})
		for _, turn := range newWork("coding", 200, 2).turns {
			r.play(turn)
		}
		if r.figures.summaries < 5 {
			t.Errorf("%d summaries", r.figures.summaries)
		}
	})
}

// BenchmarkContext plays 500 turns of coding in each window. It prints the share of a request
// that is the same as in the one before, and the cost of the input compared with the same
// ladder that frees 10 % of the window at a time.
func BenchmarkContext(b *testing.B) {
	for _, w := range windows {
		b.Run(fmt.Sprint(w.tokens), func(b *testing.B) {
			for b.Loop() {
				play := func(change func(*harnessv1.ContextConfig)) figures {
					r := newRun(b, w.tokens, change)
					for _, turn := range newWork("coding", 500, 3).turns {
						r.play(turn)
					}
					return r.figures
				}
				f := play(nil)
				often := play(func(c *harnessv1.ContextConfig) { c.Target = proto.Float64(0.70) })
				share := f.cachedBytes / f.bytes
				b.ReportMetric(100*share, "%cached")
				b.ReportMetric(f.cost()/often.cost(), "cost/often")
				b.ReportMetric(float64(f.passes), "passes")
				b.ReportMetric(float64(often.passes), "passes-often")
				b.ReportMetric(float64(f.summaries), "summaries")
			}
		})
	}
}

// BenchmarkTurn2000 plays 2,000 turns and compares the turns before turn 2,000 with those
// before turn 200: bytes of the request, and time of decisions and views.
func BenchmarkTurn2000(b *testing.B) {
	const early, late, measured = 200, 2000, 100
	for b.Loop() {
		r := newRun(b, 64_000, nil)
		var took [2]time.Duration
		var bytes [2]float64
		for i, turn := range newWork("coding", late, 4).turns {
			began, before := r.took, r.figures.bytes
			r.play(turn)
			for j, end := range []int{early, late} {
				if i >= end-measured && i < end {
					took[j] += r.took - began
					bytes[j] += r.figures.bytes - before
				}
			}
		}
		b.ReportMetric(bytes[1]/bytes[0], "bytes/turn200")
		b.ReportMetric(float64(took[0].Microseconds())/measured, "us/turn200")
		b.ReportMetric(float64(took[1].Microseconds())/measured, "us/turn2000")
	}
}
