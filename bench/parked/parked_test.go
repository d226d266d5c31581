package parked

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// within is the permitted ratio of a process's memory to that without runs.
const within = 1.10

func goroutinesOf(l load) float64 { return l.goroutines }
func heapOf(l load) float64       { return l.heap }
func residentOf(l load) float64   { return l.resident }

// sameGoroutines fails the test unless every process has as many goroutines as without
// runs.
func sameGoroutines(tb testing.TB, idle, parked loads) float64 {
	tb.Helper()
	ratio, role := parked.largestRatio(idle, goroutinesOf)
	if ratio > within {
		tb.Errorf("%s has %.0f goroutines with parked runs and %.0f without", role, parked[role].goroutines, idle[role].goroutines)
	}
	return ratio
}

// TestTheLargestRatioNamesItsRole compares two meshes in which one role has grown.
func TestTheLargestRatioNamesItsRole(t *testing.T) {
	idle, parked := loads{}, loads{}
	for i, role := range meshtest.Roles {
		idle[role] = load{goroutines: 100, heap: float64(i + 1)}
		parked[role] = load{goroutines: 105, heap: float64(i + 1)}
	}
	grown := meshtest.Roles[1]
	parked[grown] = load{goroutines: 150, heap: 1}
	if ratio, role := parked.largestRatio(idle, goroutinesOf); ratio != 1.5 || role != grown {
		t.Errorf("goroutines: %v of %s, want 1.5 of %s", ratio, role, grown)
	}
	if ratio, _ := parked.largestRatio(idle, heapOf); ratio != 1 {
		t.Errorf("heap: %v, want 1", ratio)
	}
}

// TestSystemParkedRunsOutliveEveryProcess checks that parked runs cost no goroutine in any
// process, also after a restart of all processes, and that an answer to one run resumes
// only that one.
func TestSystemParkedRunsOutliveEveryProcess(t *testing.T) {
	const n = 200
	b := newBed(t)
	b.restartUntilQuiet()
	idle := b.measure()
	b.park(n)
	before := b.list()
	if len(before) != n {
		t.Fatalf("%d runs are parked, want %d", len(before), n)
	}
	b.restart()
	sameGoroutines(t, idle, b.measure())
	ids := slices.Sorted(maps.Keys(before))
	b.answer(before, ids[n/2])
	b.reportedByDoctor()
}

// reportedByDoctor fails the test unless the doctor reports what each process uses.
func (b *bed) reportedByDoctor() {
	b.tb.Helper()
	var d struct {
		Processes []struct {
			Role       string `json:"role"`
			Goroutines uint64 `json:"goroutines"`
			HeapBytes  uint64 `json:"heap_bytes"`
		} `json:"processes"`
	}
	b.must(json.Unmarshal([]byte(b.m.Harness("doctor", "--nats", b.m.Bus.URL(), "--output", "json")), &d))
	if len(d.Processes) != len(meshtest.Roles) {
		b.tb.Errorf("the doctor sees %d processes, want %d", len(d.Processes), len(meshtest.Roles))
	}
	for _, p := range d.Processes {
		if p.Goroutines == 0 || p.HeapBytes == 0 {
			b.tb.Errorf("the doctor does not report what %s uses: %+v", p.Role, p)
		}
	}
}

// BenchmarkParked reports the cost of parked runs: the largest ratio over all roles of
// goroutines, of the process's memory and of its live heap to the same mesh without
// runs, each with its floor; the cost of a run on disk and in the NATS server; the time
// until everything is ready after a restart; and the time from an answer until its run
// resumes. A memory ratio above 1.10 breaks the claim and is reported. A difference in
// goroutines, or a change of another run, fails the benchmark.
func BenchmarkParked(b *testing.B) {
	for b.Loop() {
		once(b, *runs)
	}
}

// measureIdle measures after the configured time. The NATS server keeps what it has
// read for some seconds, so until then its memory includes what it read for the
// gateway's list.
func (b *bed) measureIdle() loads {
	<-time.After(*rest)
	return b.measure()
}

func once(b *testing.B, n int) {
	bed := newBed(b)
	bed.restartUntilQuiet()
	idle := bed.measureIdle()
	idleReady := bed.restartUntilQuiet()
	again := bed.measureIdle()
	_, dir := natsServer(b)
	dirs := []string{dir}
	for _, role := range meshtest.Roles {
		dirs = append(dirs, bed.m.Data(role))
	}
	empty := onDisk(b, dirs...)

	bed.park(n)
	before := bed.list()
	if len(before) != n {
		b.Fatalf("%d runs are parked, want %d", len(before), n)
	}
	messages := bed.last()
	ready := bed.restartUntilQuiet()
	parked := bed.measureIdle()
	full := onDisk(b, dirs...)
	if last := bed.last(); last != messages {
		b.Errorf("the restart made %d messages", last-messages)
	}
	goroutines := sameGoroutines(b, idle, parked)
	ids := slices.Sorted(maps.Keys(before))
	resumed, ended := bed.answer(before, ids[n/2])

	broken := "none is above 1.10"
	for _, name := range []string{"heap", "rss"} {
		figure := map[string]func(load) float64{"heap": heapOf, "rss": residentOf}[name]
		ratio, role := parked.largestRatio(idle, figure)
		floor, _ := again.largestRatio(idle, figure)
		if ratio > within {
			broken = fmt.Sprintf("%s of %s is %.2f times that without runs", name, role, ratio)
		}
		b.ReportMetric(ratio, name+"-ratio")
		b.ReportMetric(floor, name+"-floor")
	}
	b.Logf("without runs | again without runs | with %d parked runs: %s\n%s\nready after %v without runs and %v with them; the answered run had ended after %v",
		n, broken, table(idle, again, parked), idleReady.Round(time.Millisecond), ready.Round(time.Millisecond), ended.Round(time.Millisecond))
	b.ReportMetric(goroutines, "goroutines-ratio")
	b.ReportMetric(float64(full-empty)/float64(n), "disk-bytes/run")
	b.ReportMetric(float64(messages)/float64(n), "messages/run")
	b.ReportMetric((parked[natsName].heap-idle[natsName].heap)/float64(n), "nats-heap-bytes/run")
	b.ReportMetric((parked[natsName].resident-idle[natsName].resident)/float64(n), "nats-rss-bytes/run")
	b.ReportMetric(ready.Seconds(), "ready-s")
	b.ReportMetric(millis(resumed), "answer-ms")
	b.ReportMetric(0, "ns/op")
}
