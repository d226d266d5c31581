package mesh

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// BenchmarkWaiting reports the time of a turn of one run while 300 runs wait for summaries, or for
// a judge that hangs, and the ratio to its time without them, which is measured first and last.
// A ratio above 2 fails the benchmark, unless it is short. Those with a judge are part of -full.
func BenchmarkWaiting(b *testing.B) {
	for _, doing := range []string{waiting, verified} {
		if doing == verified && !*full {
			continue // takes two minutes
		}
		b.Run(doing, func(b *testing.B) { wait(b, doing) })
	}
}

func wait(b *testing.B, doing string) {
	b.Helper()
	const waits, most = 300, 2.0
	m := meshtest.Start(b, bin, meshtest.Config{Takeover: benchTakeover})
	alone := func() float64 {
		f := newFleet(b, m)
		f.start(1, spec(reads(b, 0), workspace(b)))
		f.warmUp()
		s, _ := runMesh(f, *measure)
		return s.rate()
	}
	for range b.N {
		first := alone()
		f := newFleet(b, m)
		f.occupy(doing, waits)
		among := alone()
		f.cancel()
		least := max(first, alone())
		b.ReportMetric(1e6/among, "turn-us")
		b.ReportMetric(1e6/least, "alone-us")
		b.ReportMetric(least/among, "x-alone")
		if least > among*most && !testing.Short() { // other work next to the short form counts too
			b.Errorf("%.0f turns a second while %d runs wait for a %s, and %.0f without them", among, waits, doing, least)
		}
	}
	b.ReportMetric(0, "ns/op")
}
