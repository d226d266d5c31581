package turnserver_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
)

// writer is a model without a service: it writes pieces and is done.
type writer struct{ pieces []string }

func (w *writer) Complete(_ context.Context, _ *model.Request, delta func(model.Delta)) (*model.Response, error) {
	for _, p := range w.pieces {
		delta(model.Delta{Text: p})
	}
	return &model.Response{Text: strings.Join(w.pieces, ""), FinishReason: "stop", ToolCalls: []*harnessv1.ToolCall{
		{Id: "done", Name: "work_complete", Arguments: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: "{}"}}},
	}}, nil
}

// BenchmarkMonitor reports the CPU of a turn that writes 6,000 characters in pieces of about
// a token, the CPU of the monitor for the same pieces, live and for the record, and the share
// of the monitor in percent. The turn has no service of a model, and so the least that a turn
// costs; the bus is part of it.
func BenchmarkMonitor(b *testing.B) {
	text := strings.Repeat("The market grows in spring, as demand returns and prices rise. ", 100)[:6000]
	w := &writer{}
	for at := 0; at < len(text); at += 5 {
		w.pieces = append(w.pieces, text[at:at+5])
	}
	var s *harnessv1.Snapshot
	var turns, monitor time.Duration
	for range b.N {
		bed := newBedWith(b, nil, func(cfg *turnserver.Config) {
			cfg.Open = func(string) (model.Provider, string, error) { return w, "writer", nil }
		})
		s = bed.withQuality("synthesis")
		began := cpu(b)
		stop := bed.run(s)
		_, outcome := bed.records()
		turns += cpu(b) - began
		stop()
		if q := outcome.GetStep().GetSnapshot().GetQuality(); q.GetAttemptChars() != 6000 || len(q.GetCheckpoints()) != 3 {
			b.Fatalf("the state is %v", q)
		}
	}
	const repeats = 100 // the clock of the CPU is coarse
	began := cpu(b)
	for range b.N * repeats {
		m := turn.NewMonitor(s, "")
		for _, p := range w.pieces {
			m.Add(p)
		}
		turn.NewMonitor(s, "").Add(text)
		quality.HasMarker(text)
	}
	monitor = (cpu(b) - began) / repeats
	n := float64(b.N)
	b.ReportMetric(float64(turns.Microseconds())/n, "turn-µs")
	b.ReportMetric(float64(monitor.Nanoseconds())/1000/n, "monitor-µs")
	b.ReportMetric(100*float64(monitor)/float64(turns), "monitor-%")
	b.ReportMetric(0, "ns/op")
}

func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
