package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// TestStepsAreCountedByResult checks the result that is counted for each step.
func TestStepsAreCountedByResult(t *testing.T) {
	fails := func(err error) func(context.Context, *Task) (*harnessv1.Outcome, error) {
		return func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, err }
	}
	for _, c := range []struct {
		name        string
		before      func(b *bed) runlog.Entry
		redelivered bool
		f           func(context.Context, *Task) (*harnessv1.Outcome, error)
		want        telemetry.Outcome
		deadLetters int64
	}{
		{"handed on", func(b *bed) runlog.Entry { return b.step("turn") }, false, passesOn, telemetry.Committed, 0},
		{"done before", func(b *bed) runlog.Entry {
			e := b.step("turn")
			b.step("stopdecision")
			return e
		}, true, passesOn, telemetry.NotMine, 0},
		{"overtaken", func(b *bed) runlog.Entry {
			e := b.step("turn")
			b.step("stopdecision")
			return e
		}, false, passesOn, telemetry.FencedOff, 0},
		{"in trouble that passes", func(b *bed) runlog.Entry { return b.step("turn") }, false, fails(Retry("tool host", errors.New("away"))), telemetry.PutBack, 0},
		{"failed", func(b *bed) runlog.Entry { return b.step("turn") }, false, fails(errors.New("cannot")), telemetry.Failed, 0},
		{"failed for the last time", func(b *bed) runlog.Entry {
			e := b.step("turn")
			b.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorFailed{ExecutorFailed: &harnessv1.ExecutorFailed{Executor: "turn", Count: MaxFailures - 1}}})
			return e
		}, true, fails(errors.New("cannot")), telemetry.Committed, 1},
		{"that nobody can read", func(b *bed) runlog.Entry {
			b.step("turn")
			return b.broken(runlog.StepSubject(0, b.run, "turn"))
		}, true, passesOn, telemetry.Committed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			reader := metric.NewManualReader()
			m, err := telemetry.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
			if err != nil {
				t.Fatal(err)
			}
			l := loopOf(Config{Log: b.log, Now: func() time.Time { return noon }, Metrics: m}, executorFunc{"turn", c.f})
			d := &testDelivery{entry: c.before(b), again: c.redelivered}
			if got := l.handle(t.Context(), d.received()); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			if got := deadLetters(t, reader); got != c.deadLetters {
				t.Errorf("%d dead letters, want %d", got, c.deadLetters)
			}
		})
	}
}

func deadLetters(t *testing.T, reader *metric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if one.Name != "harness.step.dead_letters" {
				continue
			}
			sum, ok := one.Data.(metricdata.Sum[int64])
			if !ok {
				t.Fatalf("%s is a %T", one.Name, one.Data)
			}
			for _, p := range sum.DataPoints {
				n += p.Value
			}
		}
	}
	return n
}
