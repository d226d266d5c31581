package mesh

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

const (
	thinking    = 50 * time.Millisecond // time of a model's answer
	concurrency = 8                     // turns that a worker has in work
)

// layouts are the buses over which workers are scaled.
var layouts = []struct {
	bus        bus
	partitions int
}{
	{buses[0], 1},
	{buses[0], 4},
	{buses[2], 1},
	{buses[2], 4},
}

// BenchmarkScaling runs 64 runs whose model takes 50 ms through 1, 2 and 4 turn workers
// with 8 turns in work each, over one NATS server and over three with three replicas,
// and over 1 and 4 partitions. The ideal is the throughput of their slots if a turn
// busyRun one no longer than with one worker. The floor is the throughput of the bus
// with the same records of as many runs and executors that do nothing. CI runs the
// first layout.
func BenchmarkScaling(b *testing.B) {
	for _, l := range layouts {
		if !*full && (l.bus.servers > 1 || l.partitions > 1) {
			continue
		}
		b.Run(fmt.Sprintf("bus=%s/partitions=%d", l.bus.name, l.partitions), func(b *testing.B) {
			m := meshtest.Start(b, bin, meshtest.Config{
				NATS:     meshtest.NATSConfig{Servers: l.bus.servers, SyncAlways: l.bus.always},
				Replicas: l.bus.replicas, Partitions: l.partitions, Takeover: benchTakeover, Without: []string{"turn"},
			})
			provisionFloor(m, l.bus.replicas, benchTakeover)
			scale(b, m)
		})
	}
}

func scale(b *testing.B, m *meshtest.Mesh) {
	running := 0
	var first, held float64
	for _, workers := range []int{1, 2, 4} {
		for ; running < workers; running++ {
			name := "turn-" + strconv.Itoa(running+1)
			m.Start(name, meshtest.Args("--concurrency", strconv.Itoa(concurrency)))
			m.AwaitReady(name)
		}
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var rates, holds, floors []float64
			for range b.N {
				f := newFleet(b, m)
				f.start(concurrent, spec(reads(b, thinking), workspace(b)))
				f.warmUp()
				mesh, logs := runMesh(f, *measure)
				hold := holding(logs)
				floor := runFloor(b, m, templates(b, logs), concurrent, *measure)
				b.Logf("%v  a slot is held for %v  floor %.0f turns/s", mesh, hold, floor.rate())
				rates, holds, floors = append(rates, mesh.rate()), append(holds, hold.at(0.5).Seconds()), append(floors, floor.rate())
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
			b.ReportMetric(median(floors), "floor-turns/s")
			b.ReportMetric(rate/median(floors), "mesh/floor")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// holding returns how long turns busyRun their slots: from the claim to the record of
// the next executor, which follows the turn's own last one shortly.
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
