package executor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// gate is a decision that waits until its run is admitted. Its keys are "gate" and the
// id of the run.
type gate struct {
	decided chan choice // receives each decision

	mu       sync.Mutex
	until    time.Time // of the waits; the zero time sets none
	admitted map[string]bool
	changed  map[string]chan struct{}
	watches  int // that have not been stopped
}

type choice struct {
	run   string
	waits bool
}

func newGate() *gate {
	return &gate{decided: make(chan choice, 10_000), admitted: map[string]bool{}, changed: map[string]chan struct{}{}}
}

// pure returns the executor.
func (g *gate) pure() *Pure {
	return &Pure{ExecutorName: "compaction", Decide: g.decide, Changes: g.watch}
}

func (g *gate) decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	g.mu.Lock()
	admitted, until := g.admitted[in.GetRunId()], g.until
	g.mu.Unlock()
	g.decided <- choice{in.GetRunId(), !admitted}
	if admitted {
		return outcomeOf(in), nil
	}
	wait := &harnessv1.Wait{Keys: []string{"gate", in.GetRunId()}}
	if !until.IsZero() {
		wait.Until = timestamppb.New(until)
	}
	return waitFor(wait), nil
}

func waitFor(wait *harnessv1.Wait) *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Wait{Wait: wait}}
}

// outcomeOf passes a step on to the turn.
func outcomeOf(in *harnessv1.StepInput) *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{Step: &harnessv1.Step{
		From: "compaction", To: "turn", Snapshot: runstate.Clone(in.GetStep().GetSnapshot()),
		Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}},
	}}}}
}

// watch is the Changes of the executor.
func (g *gate) watch(_ context.Context, _ *Task, keys []string) (<-chan struct{}, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ch := make(chan struct{}, 1)
	g.changed[keys[1]] = ch
	g.watches++
	return ch, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.watches--
	}
}

// admit lets a run pass, without a report.
func (g *gate) admit(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitted[run] = true
}

// setUntil sets the time of the waits.
func (g *gate) setUntil(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = until
}

// report reports a change to the wait of a run.
func (g *gate) report(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed[run] <- struct{}{}
}

// await returns once n decisions have been made, each of which waits or not.
func (g *gate) await(b *bed, n int, waits bool) {
	b.t.Helper()
	for range n {
		select {
		case d := <-g.decided:
			if d.waits != waits {
				b.t.Fatalf("the decision of %s waits: %v, want %v", d.run, d.waits, waits)
			}
		case <-b.t.Context().Done():
			b.t.Fatal("no decision")
		}
	}
}

// more returns how many decisions were made since.
func (g *gate) more() int { return len(g.decided) }

// runs executes steps with a log until stop is called, which returns the error of Run.
func (b *bed) runs(cfg Config, x Executor) (stop func() error) {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, x) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	b.t.Cleanup(func() { _ = stop() })
	return stop
}

// startRun stores a run with a step to compaction.
func (b *bed) startRun(id string) runlog.Entry {
	b.t.Helper()
	rec := &harnessv1.Record{
		Namespace: b.run.Namespace, RunId: id, Version: 1, Schema: runlog.Schema, Body: &harnessv1.Record_Step{Step: stepTo("compaction")},
		Writer: &harnessv1.Writer{Executor: "elsewhere", Instance: "other", Nonce: 1},
	}
	sequence, err := b.writer.Append(b.t.Context(), rec)
	if err != nil {
		b.t.Fatal(err)
	}
	return runlog.Entry{Run: runlog.Run{Namespace: b.run.Namespace, ID: id}, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
}

// passed returns once a run has its second record, a step to turn.
func (b *bed) passed(id string) {
	b.t.Helper()
	done := fmt.Errorf("done")
	err := runlog.Watcher{After: 1, Handle: func(e runlog.Entry) error {
		if to := e.Record.GetStep().GetTo(); to != "turn" {
			b.t.Errorf("%s has a step to %s", id, to)
		}
		return done
	}}.Watch(b.t.Context(), b.writer, runlog.Run{Namespace: b.run.Namespace, ID: id})
	if err != done { //nolint:errorlint // the handler's error is returned unchanged
		b.t.Fatal(err)
	}
}

// measured returns metrics and a reader of them.
func measured(t testing.TB) (*telemetry.Metrics, *metric.ManualReader) {
	t.Helper()
	reader := metric.NewManualReader()
	m, err := telemetry.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	return m, reader
}

// readings returns the values of an instrument, of a histogram the counts, by the last
// label or the only one.
func readings(t testing.TB, reader *metric.ManualReader, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if one.Name != name {
				continue
			}
			switch data := one.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value("outcome")
					found[v.AsString()] += int64(p.Count)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value("executor")
					found[v.AsString()] += p.Value
				}
			default:
				t.Fatalf("%s is a %T", name, data)
			}
		}
	}
	return found
}
