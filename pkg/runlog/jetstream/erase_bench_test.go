package jetstream

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var eraseRecords = flag.Int("erase-records", 200, "records of the run that BenchmarkErase erases; 2000 for figures")

// BenchmarkErase erases a run while another one is appended to. It reports how long the
// appends take, compared with those just before (p50-ns and p99-ns, and the ratio), and
// how many records are erased per second.
func BenchmarkErase(b *testing.B) {
	for _, mode := range []struct {
		name string
		open func(b *testing.B) *Log
	}{
		{"interval", func(b *testing.B) *Log { return open(b, start(b, EmbeddedConfig{}), Config{}, Layout{}) }},
		{"always", func(b *testing.B) *Log {
			return open(b, start(b, EmbeddedConfig{SyncAlways: true}), Config{}, Layout{})
		}},
		{"3 replicas", func(b *testing.B) *Log {
			c := startCluster(b, "a")
			if err := c.provision("a", Layout{}); err != nil {
				b.Fatal(err)
			}
			return c.open(b, "a", c, 0)
		}},
	} {
		b.Run(mode.name, func(b *testing.B) { benchErase(b, mode.open(b)) })
	}
}

func benchErase(b *testing.B, l *Log) {
	ctx := b.Context()
	var alone, concurrent []time.Duration
	other := &appender{l: l}
	erased := 0
	for range b.N {
		b.StopTimer()
		var prev uint64
		for v := range uint64(*eraseRecords) {
			var err error
			if prev, err = l.Append(ctx, benchRecord("erased", v+1, prev)); err != nil {
				b.Fatal(err)
			}
		}
		floor := other.during(b, func() error {
			pause(ctx, time.Duration(*eraseRecords)*2*erasePause)
			return nil
		})
		b.StartTimer()
		times := other.during(b, func() error {
			return l.Erase(ctx, runlog.Run{Namespace: "default", ID: "erased"}, 0, runlog.Everything)
		})
		b.StopTimer()
		alone, concurrent, erased = append(alone, floor...), append(concurrent, times...), erased+*eraseRecords
		b.StartTimer()
	}
	for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		without, with := at(alone, share), at(concurrent, share)
		b.ReportMetric(float64(without), name+"-ns")
		b.ReportMetric(float64(with)/float64(without), name+"-x-erasing")
	}
	b.ReportMetric(float64(slices.Max(alone)), "max-ns")
	b.ReportMetric(float64(slices.Max(concurrent)), "max-erasing-ns")
	b.ReportMetric(float64(erased)/b.Elapsed().Seconds(), "records/s")
}

// at returns the time that the given share of the times does not exceed.
func at(times []time.Duration, share float64) time.Duration {
	slices.Sort(times)
	return times[int(share*float64(len(times)-1))]
}

// appender appends to a separate run.
type appender struct {
	l             *Log
	version, prev uint64
}

// appendPause is the pause of the appender: on a machine that is full of appends the
// comparison would mean nothing.
const appendPause = time.Millisecond

// during appends one record after the other while do runs, and returns the duration of
// each append.
func (a *appender) during(b *testing.B, do func() error) []time.Duration {
	ctx, stop := context.WithCancel(b.Context())
	var times []time.Duration
	done := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			begun := time.Now()
			a.version++
			a.prev, err = a.l.Append(b.Context(), benchRecord("other", a.version, a.prev))
			times = append(times, time.Since(begun))
			pause(ctx, appendPause)
		}
		done <- err
	}()
	err := do()
	stop()
	if err := errors.Join(err, <-done); err != nil {
		b.Fatal(err)
	}
	return times
}
