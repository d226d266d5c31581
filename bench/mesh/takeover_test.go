package mesh

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// BenchmarkTakeover kills or stops a turn worker that has five runs whose model streams
// and five that run a command. It reports the time until another worker has claimed
// each, and the takeover time of the bus. The two workers change roles in every round.
// An iteration is one round of each signal.
func BenchmarkTakeover(b *testing.B) {
	const each = 5
	for _, takeover := range []time.Duration{time.Second, 5 * time.Second} {
		b.Run("takeover="+takeover.String(), func(b *testing.B) {
			m := meshtest.Start(b, bin, meshtest.Config{Takeover: takeover})
			f := newFleet(b, m)
			defer f.cancel()
			var all []*busyRun
			for range each {
				for _, doing := range doings {
					// Heartbeats count from the claim: this spreads them.
					pause(runlog.Lapse(runlog.AckWaitOf(takeover)) / each)
					all = append(all, f.occupy(doing, 1)...)
				}
			}
			m.Start("turn-2")
			m.AwaitReady("turn-2")
			holder, other := "turn", "turn-2"
			times := map[string]series{}
			for range b.N {
				for _, how := range []struct {
					name   string
					signal syscall.Signal
				}{{"kill", syscall.SIGKILL}, {"stop", syscall.SIGSTOP}} {
					pause(runlog.Lapse(runlog.AckWaitOf(takeover))) // a heartbeat's period
					for doing, s := range takeOver(f, all, holder, other, how.signal) {
						times[how.name+"/"+doing] = append(times[how.name+"/"+doing], s...)
					}
					m.Process(holder).Kill()
					m.Start(holder)
					m.AwaitReady(holder)
					holder, other = other, holder
				}
			}
			var worst time.Duration
			for _, what := range []string{"kill/command", "kill/model", "stop/command", "stop/model"} {
				s := times[what]
				b.Logf("takeover %v  %-12s  %v  max/setting %.2f", takeover, what, s, s.at(1).Seconds()/takeover.Seconds())
				b.ReportMetric(millis(s.at(0.5)), what+"-p50-ms")
				worst = max(worst, s.at(1))
			}
			b.ReportMetric(millis(worst), "max-ms")
			b.ReportMetric(worst.Seconds()/takeover.Seconds(), "max/setting")
			b.ReportMetric(0, "ns/op")
			if worst > takeover {
				b.Errorf("a takeover took %v, the bus is set to %v", worst, takeover)
			}
		})
	}
}

// pause waits for a random part of d, so that signals come at random times.
func pause(d time.Duration) { <-time.After(rand.N(d)) }

// takeOver takes a worker from its runs and returns how long each waited for the other
// worker's claim.
func takeOver(f *fleet, all []*busyRun, holder, other string, signal syscall.Signal) map[string]series {
	f.b.Helper()
	for _, o := range all {
		if !o.of(f.m.Process(holder)) {
			f.b.Fatalf("%s is with %s, not with %s", o.run, o.worker, holder)
		}
	}
	times := map[string]series{}
	at := time.Now()
	f.m.Process(holder).Signal(signal)
	for _, o := range all {
		var e runlog.Entry
		meshtest.Eventually(f.b, fmt.Sprintf("%s is taken over", o.run), func() bool {
			var ok bool
			e, ok = f.claim(o)
			return ok
		})
		if !o.of(f.m.Process(other)) {
			f.b.Fatalf("%s was claimed by %s, which is not %s", o.run, o.worker, other)
		}
		times[o.doing] = append(times[o.doing], committed(e).Sub(at))
	}
	return times
}
