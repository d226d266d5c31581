package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// BenchmarkWaiting reports the time of a step of a run while 300 other runs wait at the
// same worker, from its append to its outcome, and the ratio to the time without them,
// which is measured first (floor-ns). cpu-ms/s is what the waits alone use, bus
// included, in milliseconds a second. The runs have records of 12 KB to each executor,
// of which a heartbeat reads the newest. A ratio above 2 fails the benchmark.
func BenchmarkWaiting(b *testing.B) {
	const waits, samples, most = 300, 200, 2.0
	for range b.N {
		bed, g := newBedWith(b, 0), newGate()
		stop := bed.runs(Config{Log: bed.log}, g.pure())
		bed.latency(g, "warm", samples)
		least := bed.latency(g, "alone", samples)
		for i := range waits {
			bed.worked(fmt.Sprint("w", i))
		}
		g.await(bed, 2*waits, true)
		<-time.After(1500 * time.Millisecond) // the first heartbeats, which read more
		used := cpuOver(4 * time.Second)
		took := bed.latency(g, "among", samples)
		if err := stop(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(took.Nanoseconds()), "step-ns")
		b.ReportMetric(float64(least.Nanoseconds()), "floor-ns")
		b.ReportMetric(float64(took)/float64(least), "x-floor")
		b.ReportMetric(used, "cpu-ms/s")
		if took > least*most {
			b.Errorf("a step takes %s while %d runs wait, and %s without them", took, waits, least)
		}
	}
}

// worked stores a run that has been through the executors and is at compaction.
func (b *bed) worked(id string) {
	b.t.Helper()
	run := runlog.Run{Namespace: b.run.Namespace, ID: id}
	var before runlog.Entry
	for _, to := range []string{"repair", "turn", "", "stopdecision", "compaction"} {
		rec := &harnessv1.Record{
			Namespace: run.Namespace, RunId: id, Version: before.Header.Version + 1, PrevSequence: before.Sequence, Schema: runlog.Schema,
			Writer: &harnessv1.Writer{Executor: "elsewhere", Instance: "other", Nonce: before.Header.Version + 1},
			Body:   &harnessv1.Record_Step{Step: stepTo(to)},
		}
		rec.GetStep().GetSnapshot().GoalPreview = strings.Repeat("goal ", 1600)
		if to == "" {
			rec.Body = &harnessv1.Record_Journal{Journal: claimed(1)}
		}
		rec.Appended = []*harnessv1.Message{{Id: before.Header.Version + 1, Content: content.Inline(strings.Repeat("text ", 800))}}
		sequence, err := b.writer.Append(b.t.Context(), rec)
		if err != nil {
			b.t.Fatal(err)
		}
		before = runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	}
}

// latency returns the median time from the append of a step to its outcome.
func (b *bed) latency(g *gate, name string, samples int) time.Duration {
	b.t.Helper()
	took := make([]time.Duration, 0, samples)
	for i := range samples {
		id := fmt.Sprint(name, i)
		g.admit(id)
		outcome := make(chan struct{}, 1)
		stop, err := b.writer.Subscribe(context.Background(), runlog.Run{Namespace: b.run.Namespace, ID: id}, func(e *runlog.Entry) {
			if e != nil && e.Header.Version == 2 {
				outcome <- struct{}{}
			}
		})
		if err != nil {
			b.t.Fatal(err)
		}
		if err := b.writer.Flush(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		began := time.Now()
		b.startRun(id)
		select {
		case <-outcome:
		case <-b.t.Context().Done():
			b.t.Fatal("no outcome")
		}
		took = append(took, time.Since(began))
		stop()
		for d := range g.decided { // other runs may poll meanwhile
			if d.run == id {
				break
			}
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// cpuOver returns the CPU time that the process uses in a time, in milliseconds a
// second.
func cpuOver(d time.Duration) float64 {
	before := cpuTime()
	<-time.After(d)
	return float64((cpuTime() - before).Milliseconds()) / d.Seconds()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
