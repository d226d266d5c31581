package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Each benchmark reports how many times longer it takes than its floor, which is
// measured in the same run: a publish of the same bytes without fence, headers
// and memory, or a plain direct get.

// floor returns the time of one of n operations.
func floor(b *testing.B, n int, do func(i int) error) time.Duration {
	b.Helper()
	begun := time.Now()
	for i := range n {
		if err := do(i); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun) / time.Duration(n)
}

// compare reports the ratio of an operation's time to the floor.
func compare(b *testing.B, floor time.Duration, operations int) {
	b.Helper()
	each := b.Elapsed() / time.Duration(b.N*operations)
	b.ReportMetric(float64(each)/float64(floor), "x-floor")
	b.ReportMetric(float64(floor.Nanoseconds()), "floor-ns")
}

// rounds is the number of operations that a floor is measured with.
const rounds = 500

// benchRecord returns a record of about 4 KB, the usual size of a step.
func benchRecord(id string, version, prev uint64) *harnessv1.Record {
	rec := first(id)
	rec.Version, rec.PrevSequence, rec.Writer.Nonce = version, prev, version
	for i := range 8 {
		rec.Appended = append(rec.Appended, &harnessv1.Message{
			Id: uint64(i), Content: content.Inline(strings.Repeat("x", 480)),
		})
	}
	return rec
}

// publishFloor returns the time of a publish of a record's bytes to a separate run.
func publishFloor(b *testing.B, l *Log) time.Duration {
	b.Helper()
	data, err := runlog.Encode(benchRecord("floor", 1, 0))
	if err != nil {
		b.Fatal(err)
	}
	return floor(b, rounds, func(int) error {
		_, err := l.js.PublishMsg(context.Background(), &nats.Msg{Subject: "hm.run.0.bench.floor.log.journal", Data: data})
		return err
	})
}

// modes runs a benchmark in both sync modes.
func modes(b *testing.B, run func(b *testing.B, l *Log)) {
	for name, always := range map[string]bool{"interval": false, "always": true} {
		b.Run(name, func(b *testing.B) {
			run(b, open(b, start(b, EmbeddedConfig{SyncAlways: always}), Config{}, Layout{}))
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	modes(b, func(b *testing.B, l *Log) {
		least := publishFloor(b, l)
		b.ReportAllocs()
		version, prev := uint64(0), uint64(0)
		for b.Loop() {
			version++
			var err error
			if prev, err = l.Append(context.Background(), benchRecord("r", version, prev)); err != nil {
				b.Fatal(err)
			}
		}
		compare(b, least, 1)
	})
}

// BenchmarkFourHops measures a turn without a model: four executors, each of which
// receives a step, appends the next one and acknowledges. The floor is four publishes.
func BenchmarkFourHops(b *testing.B) {
	modes(b, func(b *testing.B, l *Log) {
		least := publishFloor(b, l)
		ctx, cancel := context.WithCancel(context.Background())
		arrived := make(chan runlog.Entry)
		next := map[string]string{"repair": "compaction", "compaction": "turn", "turn": "stopdecision"}
		ended := make(chan error, len(workflow.Default()))
		for _, executor := range workflow.Default() {
			go func() {
				ended <- l.Consume(ctx, executor, 8, func(ctx context.Context, d runlog.Delivery) {
					e := d.Entry()
					if to := next[executor]; to != "" {
						rec := benchRecord("r", e.Header.Version+1, e.Sequence)
						rec.GetStep().To = to
						if _, err := l.Append(ctx, rec); err != nil {
							b.Error(err)
						}
						_ = d.Ack()
						return
					}
					_ = d.Ack()
					arrived <- e
				})
			}()
		}
		b.ReportAllocs()
		version, prev := uint64(0), uint64(0)
		for b.Loop() {
			rec := benchRecord("r", version+1, prev)
			rec.GetStep().To = "repair"
			if _, err := l.Append(ctx, rec); err != nil {
				b.Fatal(err)
			}
			e := <-arrived
			version, prev = e.Header.Version, e.Sequence
		}
		compare(b, least, 4)
		cancel()
		for range workflow.Default() {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
		}
	})
}

// busy fills a log with a run of n records among other runs, and returns its newest
// record.
func busy(b *testing.B, l *Log, n, others int) (runlog.Run, runlog.Entry) {
	b.Helper()
	var prev, at uint64
	var rec *harnessv1.Record
	concurrent, err := runlog.Encode(first("other"))
	if err != nil {
		b.Fatal(err)
	}
	for v := range n {
		for i := range others / n {
			subject := fmt.Sprintf("hm.run.0.bench.other-%d-%d.log.journal", v, i%10)
			if _, err := l.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: concurrent}); err != nil {
				b.Fatal(err)
			}
		}
		rec = benchRecord("r", uint64(v)+1, prev)
		if at, err = l.Append(context.Background(), rec); err != nil {
			b.Fatal(err)
		}
		prev = at
	}
	<-l.js.PublishAsyncComplete()
	return runOf(rec), runlog.Entry{Run: runOf(rec), Sequence: at, Header: runlog.HeaderOf(rec), Record: rec}
}

// getFloor returns the time of a direct get of one record.
func getFloor(b *testing.B, l *Log, sequence uint64) time.Duration {
	b.Helper()
	request := fmt.Appendf(nil, `{"seq":%d}`, sequence)
	return floor(b, rounds, func(int) error {
		_, err := l.nc.Request(directSubject(runsStream(0)), request, time.Second)
		return err
	})
}

func BenchmarkView(b *testing.B) {
	l := open(b, start(b, EmbeddedConfig{}), Config{}, Layout{})
	run, newest := busy(b, l, 20, 2000)
	least := getFloor(b, l, newest.Sequence)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.View(context.Background(), run, newest.Sequence); err != nil {
			b.Fatal(err)
		}
	}
	compare(b, least, 1)
}

func BenchmarkNewer(b *testing.B) {
	l := open(b, start(b, EmbeddedConfig{}), Config{}, Layout{})
	run, newest := busy(b, l, 20, 2000)
	least := getFloor(b, l, newest.Sequence)
	b.ReportAllocs()
	for b.Loop() {
		if newer, err := l.Newer(context.Background(), run, newest.Sequence); newer || err != nil {
			b.Fatal(newer, err)
		}
	}
	compare(b, least, 1)
}

func BenchmarkLastInbox(b *testing.B) {
	l := open(b, start(b, EmbeddedConfig{}), Config{}, Layout{})
	run, newest := busy(b, l, 20, 2000)
	if _, _, err := l.AppendInbox(context.Background(), run, &harnessv1.InboxItem{Id: "i"}, 0); err != nil {
		b.Fatal(err)
	}
	least := getFloor(b, l, newest.Sequence)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.LastInbox(context.Background(), run); err != nil {
			b.Fatal(err)
		}
	}
	compare(b, least, 1)
}

// BenchmarkBack reads a run of 800 records back, without a cache, from a stream with
// 100,000 records of other runs. The floor is one direct get per record.
func BenchmarkBack(b *testing.B) {
	const records = 800
	e := start(b, EmbeddedConfig{})
	_, newest := busy(b, open(b, e, Config{}, Layout{}), records, 100_000)
	cold := open(b, e, Config{CacheBytes: 1}, Layout{})
	least := getFloor(b, cold, newest.Sequence)
	b.ReportAllocs()
	for b.Loop() {
		entries, err := runlog.Back(context.Background(), cold, newest, 0)
		if err != nil || len(entries) != records {
			b.Fatal(len(entries), err)
		}
	}
	compare(b, least, records)
}
