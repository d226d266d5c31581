package mesh

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// BenchmarkInterrupt interrupts runs and reports the time from the call until a
// watching client sees run.interrupted: with live workers, alone and next to 64 runs
// that never wait, and with a worker that has just been killed while another one is
// available. An iteration interrupts 20 runs of each kind, 5 with a dead worker. Live
// workers have runs, too, that wait for a summary: x-turn is their median compared with
// that of runs whose model is called.
func BenchmarkInterrupt(b *testing.B) {
	const each, eachDead = 20, 5
	m := meshtest.Start(b, bin, meshtest.Config{Takeover: benchTakeover, Workers: 2})
	for _, others := range []int{0, concurrent} {
		b.Run(fmt.Sprintf("worker=alive/others=%d", others), func(b *testing.B) {
			busy := newFleet(b, m)
			if others > 0 {
				busy.start(others, spec(reads(b, 0), workspace(b)))
				busy.warmUp()
				defer busy.cancel()
			}
			times := map[string]series{}
			for range b.N {
				for _, doing := range append(doings[:len(doings):len(doings)], waiting) {
					f := newFleet(b, m)
					for _, o := range f.occupy(doing, each) { // one after the other
						times[doing] = append(times[doing], f.interrupt([]*busyRun{o})...)
					}
					f.cancel()
				}
			}
			reportInterrupts(b, times)
			b.ReportMetric(float64(times[waiting].at(0.5))/float64(times[streaming].at(0.5)), "x-turn")
		})
	}
	b.Run("worker=dead/others=0", func(b *testing.B) {
		times := map[string]series{}
		for range b.N {
			m.Process("turn-2").Kill()
			f := newFleet(b, m)
			var all []*busyRun
			for range eachDead {
				for _, doing := range doings {
					pause(runlog.Lapse(runlog.AckWaitOf(benchTakeover)) / eachDead) // spreads the heartbeats
					all = append(all, f.occupy(doing, 1)...)
				}
			}
			m.Start("turn-2")
			m.AwaitReady("turn-2")
			m.Process("turn").Kill()
			for i, t := range f.interrupt(all) {
				times[all[i].doing] = append(times[all[i].doing], t)
			}
			m.Start("turn")
			m.AwaitReady("turn")
			f.cancel()
		}
		reportInterrupts(b, times)
		b.ReportMetric(max(times[commands].at(1), times[streaming].at(1)).Seconds()/benchTakeover.Seconds(), "max/takeover")
	})
}

func reportInterrupts(b *testing.B, times map[string]series) {
	for _, doing := range append(doings[:len(doings):len(doings)], waiting) {
		s := times[doing]
		if len(s) == 0 {
			continue
		}
		b.Logf("%-8s %v", doing, s)
		b.ReportMetric(millis(s.at(0.5)), doing+"-p50-ms")
		b.ReportMetric(millis(s.at(0.99)), doing+"-p99-ms")
		b.ReportMetric(millis(s.at(1)), doing+"-max-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// interrupt interrupts runs at the same time and returns how long each took.
func (f *fleet) interrupt(all []*busyRun) series {
	f.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	times := make(series, len(all))
	streams := make([]harnessv1.GatewayService_WatchRunClient, len(all))
	for i, o := range all { // each has seen the claim before the measurement starts
		streams[i] = f.watch(ctx, o)
		must(f.b, until(streams[i], func(e *harnessv1.Event) bool { return e.GetStepStart() != nil }))
	}
	var g errgroup.Group
	for i, o := range all {
		g.Go(func() error {
			at := time.Now()
			if err := call(ctx, f, o); err != nil {
				return err
			}
			err := until(streams[i], func(e *harnessv1.Event) bool { return e.GetRunInterrupted() != nil })
			times[i] = time.Since(at)
			return err
		})
	}
	must(f.b, g.Wait())
	return times
}

func call(ctx context.Context, f *fleet, o *busyRun) error {
	_, err := f.m.Client().InterruptRun(ctx, &harnessv1.InterruptRunRequest{Namespace: o.run.Namespace, RunId: o.run.ID})
	return err
}

// until reads a stream up to an event.
func until(stream harnessv1.GatewayService_WatchRunClient, is func(*harnessv1.Event) bool) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if e := r.GetUpdate().GetEvent(); e != nil && is(e) {
			return nil
		}
	}
}
