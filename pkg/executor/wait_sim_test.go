package executor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// waiter is an executor whose steps wait until a time, and then pass the run to itself;
// after the last time the run ends. Its channel of reports is closed, so it reports
// nothing; a loop that read it without a pause would stop the simulated time.
type waiter struct {
	times []time.Time
	// asks limits what a wait names: the time that it waits for, or none.
	asks func(until time.Time) time.Time

	mu       sync.Mutex
	decided  map[string][]time.Time // by run
	complete chan struct{}          // receives a value when a run ends; nil for none
}

func (w *waiter) pure() *executor.Pure {
	ended := make(chan struct{})
	close(ended)
	return &executor.Pure{
		ExecutorName: "wait", Decide: w.decide,
		Changes: func(context.Context, *executor.Task, []string) (<-chan struct{}, func()) { return ended, func() {} },
	}
}

func (w *waiter) decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := in.GetNow().AsTime()
	if w.decided == nil {
		w.decided = map[string][]time.Time{}
	}
	w.decided[in.GetRunId()] = append(w.decided[in.GetRunId()], now)
	s := runstate.Clone(in.GetStep().GetSnapshot())
	until := w.times[s.GetTurnCount()]
	if now.Before(until) {
		wait := &harnessv1.Wait{}
		if at := w.asks(until); !at.IsZero() {
			wait.Until = timestamppb.New(at)
		}
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Wait{Wait: wait}}, nil
	}
	s.TurnCount++
	step := &harnessv1.Step{From: "wait", To: "wait", Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}}}
	if int(s.GetTurnCount()) == len(w.times) {
		step.To = runlog.End
		if w.complete != nil {
			w.complete <- struct{}{}
		}
	}
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{Step: step}}}, nil
}

// first is the first step of a run of a waiter.
func first() *harnessv1.Step {
	return &harnessv1.Step{To: "wait", Snapshot: &harnessv1.Snapshot{}, Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{}}}
}

// TestWaitTimes checks when a decision is repeated, and that waiting is not part of the
// duration of a step.
func TestWaitTimes(t *testing.T) {
	const whole = 2 * time.Minute
	for name, c := range map[string]struct {
		asks  func(until time.Time) time.Time
		check func(t *testing.T, run string, pauses []time.Duration)
	}{
		"its time": {func(until time.Time) time.Time { return until }, func(t *testing.T, run string, pauses []time.Duration) {
			if last := pauses[len(pauses)-1]; last <= 0 || last > 7*time.Second {
				t.Errorf("%s: the last pause is %s", run, last)
			}
		}},
		"no time": {func(time.Time) time.Time { return time.Time{} }, func(t *testing.T, run string, pauses []time.Duration) {
			for _, p := range pauses[1:] { // the first decision is repeated immediately
				if p != pauses[1] || p < 15*time.Second/4 || p > 25*time.Second/4 {
					t.Errorf("%s: the pauses are %s", run, pauses)
				}
			}
		}},
		"a time that has passed": {func(until time.Time) time.Time { return until.Add(-24 * time.Hour) }, func(t *testing.T, run string, pauses []time.Duration) {
			for _, p := range pauses[1:] {
				if p != 100*time.Millisecond {
					t.Fatalf("%s: a pause of %s", run, p)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := metric.NewManualReader()
			m, err := telemetry.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
			if err != nil {
				t.Fatal(err)
			}
			const runs = 3
			w := &waiter{asks: c.asks}
			var began time.Time
			sim.WithLog(t, sim.Config{Executors: []string{"wait"}}, func(t *testing.T, log runlog.Log) {
				began = time.Now()
				w.times, w.complete = []time.Time{began.Add(whole)}, make(chan struct{}, runs)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- executor.Run(ctx, executor.Config{Log: log, Instance: "worker", Metrics: m}, w.pure())
				}()
				for i := range runs {
					rec := &harnessv1.Record{
						Namespace: "default", RunId: fmt.Sprint("r", i), Version: 1, Schema: runlog.Schema, Body: &harnessv1.Record_Step{Step: first()},
					}
					if _, err := log.Append(ctx, rec); err != nil {
						t.Fatal(err)
					}
				}
				for range runs {
					<-w.complete
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
			different := map[time.Duration]bool{}
			for run, times := range w.decided {
				if !times[0].Equal(began) {
					t.Errorf("%s: decided first after %s", run, times[0].Sub(began))
				}
				if end := times[len(times)-1]; name == "its time" && !end.Equal(began.Add(whole)) {
					t.Errorf("%s: decided last after %s", run, end.Sub(began))
				}
				var pauses []time.Duration
				for i := range times[1:] {
					pauses = append(pauses, times[i+1].Sub(times[i]))
				}
				if pauses[0] != 0 {
					t.Errorf("%s: the first decision is repeated after %s", run, pauses[0])
				}
				c.check(t, run, pauses)
				different[pauses[1]] = true
			}
			if name == "no time" && len(different) != runs {
				t.Errorf("the runs poll every %v", different)
			}
			if sum := stepSeconds(t, reader); sum > 1 {
				t.Errorf("the steps took %g s", sum)
			}
		})
	}
}

// stepSeconds returns the total duration of the steps.
func stepSeconds(t *testing.T, reader *metric.ManualReader) (sum float64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		i := slices.IndexFunc(scope.Metrics, func(m metricdata.Metrics) bool { return m.Name == "harness.step.duration" })
		data, ok := scope.Metrics[i].Data.(metricdata.Histogram[float64])
		if !ok {
			t.Fatalf("the duration is a %T", scope.Metrics[i].Data)
		}
		for _, p := range data.DataPoints {
			sum += p.Sum
		}
	}
	return sum
}

// TestWaitsSurviveFaults checks, on a bus with faults and with workers that die and
// stop, that runs which wait end, that no step is decided before its time, and that a
// seed has one schedule.
func TestWaitsSurviveFaults(t *testing.T) {
	const runs, steps = 4, 4
	for seed := range uint64(60) {
		cfg := sim.Config{Seed: seed, Executors: []string{"wait"}, Rates: sim.Everything(), Replicated: seed%2 == 1}
		cfg.Check = []sim.Invariant{{Name: "every wait ends", Final: func(w *sim.World) string {
			for _, l := range w.Logs() {
				if n := l.Newest().Record.GetStep().GetSnapshot().GetTurnCount(); n != steps {
					return fmt.Sprintf("%s waited %d times", l.Run, n)
				}
			}
			return ""
		}}}
		setup := func(w *sim.World) {
			random := w.Random("times")
			var times []time.Time
			at := time.Now()
			for range steps {
				at = at.Add(time.Duration(random.IntN(30_000)) * time.Millisecond)
				times = append(times, at)
			}
			asks := func(until time.Time) time.Time { return until }
			if seed%3 == 0 {
				asks = func(time.Time) time.Time { return time.Time{} }
			}
			for i := range 2 {
				w.Start(fmt.Sprint("worker-", i), func(ctx context.Context, p *sim.Process) error {
					cfg := p.Executor()
					cfg.Concurrency = 1 + int(seed%2)
					return executor.Run(ctx, cfg, (&waiter{times: times, asks: asks}).pure())
				})
			}
			for i := range runs {
				w.StartRun(runlog.Run{Namespace: "default", ID: fmt.Sprint("r", i)}, first())
			}
		}
		r := sim.Try(t, cfg, setup)
		if r.Violation != nil {
			t.Fatal(r.Failure(60, ""))
		}
		if again := sim.Try(t, cfg, setup); again.Hash != r.Hash {
			t.Errorf("seed %d went another way the second time", seed)
		}
	}
}
