package mesh

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/meshtest"
)

const (
	thinking    = 50 * time.Millisecond // what the model takes
	concurrency = 8                     // turns that a worker has in work
)

// BenchmarkScaling runs 64 runs whose model takes 50 ms through 1, 2 and 4 turn
// workers with 8 turns in work each. The ideal is what their slots would make if
// a turn held one no longer than with one worker.
func BenchmarkScaling(b *testing.B) {
	m := meshtest.Start(b, bin, meshtest.Config{Takeover: benchTakeover, Without: []string{"turn"}})
	running := 0
	var first, held float64
	for _, workers := range []int{1, 2, 4} {
		for ; running < workers; running++ {
			name := "turn-" + strconv.Itoa(running+1)
			m.Start(name, meshtest.Args("--concurrency", strconv.Itoa(concurrency)))
			m.AwaitReady(name)
		}
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var rates, holds []float64
			for range b.N {
				f := newFleet(b, m)
				f.start(atOnce, spec(reads(b, thinking), workspace(b)))
				f.warmUp()
				mesh, logs := runMesh(f)
				hold := holding(logs)
				b.Logf("%v  a slot is held for %v", mesh, hold)
				rates, holds = append(rates, mesh.rate()), append(holds, hold.at(0.5).Seconds())
			}
			rate := median(rates)
			if workers == 1 {
				first, held = rate, median(holds)
			}
			ideal := float64(workers*concurrency) / held
			b.ReportMetric(rate, "turns/s")
			b.ReportMetric(rate/first, "speed-up")
			b.ReportMetric(ideal, "ideal-turns/s")
			b.ReportMetric(rate/ideal, "of-ideal")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// holding is how long turns held their slots: from the claim to the record of
// the next executor, which comes shortly after the turn's own last one.
func holding(logs [][]runlog.Entry) series {
	var s series
	for _, log := range logs {
		var claimed time.Time
		for _, e := range log {
			switch {
			case e.Record.GetJournal().GetTurnStarted() != nil:
				claimed = committed(e)
			case closesTurn(e) && !claimed.IsZero():
				s = append(s, committed(e).Sub(claimed))
				claimed = time.Time{}
			}
		}
	}
	return s
}
