package mesh

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// BenchmarkTakeover kills or stops a turn worker that has five runs whose model streams
// and five that run a command. It reports the time until another worker has claimed
// each, and the takeover time of the bus; its short form has the shorter time. An iteration is one mesh for each signal: a step
// in which two workers died waits for others.
func BenchmarkTakeover(b *testing.B) {
	times := []time.Duration{time.Second, 5 * time.Second}
	if testing.Short() {
		times = times[:1]
	}
	for _, takeover := range times {
		b.Run("takeover="+takeover.String(), func(b *testing.B) {
			took := map[string]series{}
			for range b.N {
				for _, how := range []struct {
					name   string
					signal syscall.Signal
				}{{"kill", syscall.SIGKILL}, {"stop", syscall.SIGSTOP}} {
					for doing, s := range takeOver(b, takeover, how.signal) {
						took[how.name+"/"+doing] = append(took[how.name+"/"+doing], s...)
					}
				}
			}
			var worst time.Duration
			for _, what := range []string{"kill/command", "kill/model", "stop/command", "stop/model"} {
				s := took[what]
				b.Logf("takeover %v  %-12s  %v  max/setting %.2f", takeover, what, s, s.at(1).Seconds()/takeover.Seconds())
				b.ReportMetric(millis(s.at(0.5)), what+"-p50-ms")
				worst = max(worst, s.at(1))
			}
			b.ReportMetric(millis(worst), "max-ms")
			b.ReportMetric(worst.Seconds()/takeover.Seconds(), "max/setting")
			b.ReportMetric(0, "ns/op")
			if worst > takeover && !testing.Short() { // other work next to the short form counts too
				b.Errorf("a takeover took %v, the bus is set to %v", worst, takeover)
			}
		})
	}
}

// pause waits for a random part of d, so that signals come at random times.
func pause(d time.Duration) { <-time.After(rand.N(d)) }

// takeOver takes a worker from its runs and returns how long each waited for the claim of
// another worker.
func takeOver(b *testing.B, takeover time.Duration, signal syscall.Signal) map[string]series {
	b.Helper()
	const each = 5
	m := meshtest.Start(b, bin, meshtest.Config{Takeover: takeover})
	defer func() { // the next mesh has the machine alone
		for _, name := range append(workflow.Roles(), "turn-2") {
			m.Process(name).Kill()
		}
	}()
	f := newFleet(b, m)
	defer f.cancel()
	period := runlog.Lapse(runlog.AckWaitOf(takeover)) // of heartbeats
	var all []*busyRun
	for range each {
		for _, doing := range doings {
			pause(period / each) // heartbeats count from the claim: this spreads them
			all = append(all, f.occupy(doing, 1)...)
		}
	}
	m.Start("turn-2")
	m.AwaitReady("turn-2")
	pause(period)
	times := map[string]series{}
	at := time.Now()
	m.Process("turn").Signal(signal)
	for _, o := range all {
		var e runlog.Entry
		waittest.Eventually(b, fmt.Sprintf("%s is taken over", o.run), func() bool {
			var ok bool
			e, ok = f.claim(o)
			return ok
		})
		if !o.of(m.Process("turn-2")) {
			b.Fatalf("%s was claimed by %s, which is not turn-2", o.run, o.worker)
		}
		times[o.doing] = append(times[o.doing], committed(e).Sub(at))
	}
	return times
}
