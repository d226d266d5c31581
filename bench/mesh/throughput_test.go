package mesh

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// side is the result of one side.
type side struct {
	turns, appends int
	bytes          int // of a turn's records
	lasted         time.Duration
	cpu            usage
}

func (s side) rate() float64 { return float64(s.turns) / s.lasted.Seconds() }

func (s side) String() string {
	return fmt.Sprintf("%6.0f turns/s  %6.0f appends/s  %.1f appends and %d bytes a turn  processor time a turn %s",
		s.rate(), float64(s.appends)/s.lasted.Seconds(), float64(s.appends)/float64(max(s.turns, 1)), s.bytes, s.cpu.each(s.turns))
}

// window counts during the measured time, which a slow disk makes longer: it ends when
// there is enough to measure.
func window(b *testing.B, lasts time.Duration, count func() (turns, appends int), enough func() bool) side {
	b.Helper()
	before := processors(b)
	turns, appends := count()
	from := time.Now()
	<-time.After(lasts)
	waittest.Eventually(b, "there is enough to measure", enough)
	t, a := count()
	return side{turns: t - turns, appends: a - appends, lasted: time.Since(from), cpu: processors(b).since(before)}
}

// runMesh measures a warm fleet and ends it. It also returns the records that each
// run's log gained meanwhile.
func runMesh(f *fleet, lasts time.Duration) (side, [][]runlog.Entry) {
	f.b.Helper()
	before := f.turns()
	from := time.Now()
	s := window(f.b, lasts, func() (int, int) { return 0, 0 }, func() bool {
		for run, turns := range f.turns() {
			if turns >= before[run]+2 { // at least one of them is whole
				return true
			}
		}
		return false
	})
	to := from.Add(s.lasted)
	f.cancel()
	logs := f.logs(from, to)
	for _, log := range logs {
		for _, e := range log {
			s.appends++
			s.bytes += proto.Size(e.Record)
			if closesTurn(e) {
				s.turns++
			}
		}
	}
	s.bytes /= max(s.turns, 1)
	return s, logs
}

// bus is a configuration of NATS.
type bus struct {
	name     string
	servers  int
	replicas int
	always   bool
}

var buses = []bus{
	{"single,interval", 1, 1, false},
	{"single,always", 1, 1, true},
	{"cluster3,interval", 3, 3, false},
	{"cluster3,always", 3, 3, true},
}

const (
	benchTakeover = 5 * time.Second // the default
	longest       = 16              // turns of one log that the floor repeats
	slow          = 8               // runs of the short form where each record is flushed
)

// BenchmarkThroughput runs 64 concurrent runs (8 in the short form of a bus that flushes
// each record) whose model answers immediately, and reports turns and appends per second
// and the ratio to the floor. An iteration is a
// whole measurement; medians are reported, all are printed.
func BenchmarkThroughput(b *testing.B) {
	for _, bus := range buses {
		if !*full && bus.servers > 1 && bus.always {
			continue
		}
		b.Run("bus="+bus.name, func(b *testing.B) {
			m := meshtest.Start(b, bin, meshtest.Config{
				NATS: meshtest.NATSConfig{Servers: bus.servers, SyncAlways: bus.always}, Replicas: bus.replicas, Takeover: benchTakeover,
			})
			provisionFloor(m, bus.replicas, benchTakeover)
			lasts, runs := *measure, concurrent
			if bus.always {
				lasts *= 5 // a turn of 64 runs that flush each record takes a second on a slow disk
				if !*full {
					runs = slow
				}
			}
			running := 1
			for _, workers := range []int{1, 2, 4} {
				for _, tools := range []bool{true, false} {
					// CI runs the most different combinations.
					if !*full && (!tools && workers != 2 || tools && bus.name == buses[0].name && workers == 2 || bus.name != buses[0].name && (workers != 2 || !tools)) {
						continue
					}
					for ; running < workers; running++ {
						name := fmt.Sprintf("turn-%d", running+1)
						m.Start(name)
						m.AwaitReady(name)
					}
					b.Run(fmt.Sprintf("workers=%d/tools=%t", workers, tools), func(b *testing.B) { throughput(b, m, runs, lasts, tools) })
				}
			}
		})
	}
}

// templates returns the turns that the floor repeats: those of the log with the most
// turns.
func templates(b *testing.B, logs [][]runlog.Entry) []pattern {
	b.Helper()
	var found []pattern
	for _, log := range logs {
		if p := patterns(log); len(p) > len(found) {
			found = p
		}
	}
	if len(found) == 0 {
		b.Fatal("no run made a whole turn while turns were counted: measure longer (-measure)")
	}
	return found[:min(len(found), longest)]
}

func throughput(b *testing.B, m *meshtest.Mesh, runs int, lasts time.Duration, tools bool) {
	var turns, appends, floors, ratios []float64
	for range b.N {
		file := talks(b)
		if tools {
			file = reads(b, 0)
		}
		f := newFleet(b, m)
		f.start(runs, spec(file, workspace(b)))
		f.warmUp()
		mesh, logs := runMesh(f, lasts)
		floor := runFloor(b, m, templates(b, logs), runs, lasts)
		b.Logf("mesh  %v", mesh)
		b.Logf("floor %v", floor)
		b.Logf("mesh/floor %.3f", mesh.rate()/floor.rate())
		turns = append(turns, mesh.rate())
		appends = append(appends, float64(mesh.appends)/mesh.lasted.Seconds())
		floors = append(floors, floor.rate())
		ratios = append(ratios, mesh.rate()/floor.rate())
	}
	b.ReportMetric(median(turns), "turns/s")
	b.ReportMetric(median(appends), "appends/s")
	b.ReportMetric(median(floors), "floor-turns/s")
	b.ReportMetric(median(ratios), "mesh/floor")
	b.ReportMetric(0, "ns/op")
}
