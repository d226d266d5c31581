package sim_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// busTest is a test with the log of a process on a bus without faults.
type busTest struct {
	*testing.T
	runlog.Log
	run    runlog.Run
	newest runlog.Entry
}

// onBus runs f with a bus on which the executor "turn" is provisioned.
func onBus(t *testing.T, f func(b *busTest)) {
	sim.WithLog(t, sim.Config{Executors: []string{"turn"}}, func(t *testing.T, log runlog.Log) {
		f(&busTest{T: t, Log: log, run: runlog.Run{Namespace: "test", ID: "r"}})
	})
}

func (b *busTest) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// step appends a step to an executor and returns its sequence.
func (b *busTest) step(to string) uint64 {
	b.Helper()
	rec := &harnessv1.Record{
		Namespace: b.run.Namespace, RunId: b.run.ID, Version: b.newest.Header.Version + 1, PrevSequence: b.newest.Sequence, Schema: runlog.Schema,
		Writer: &harnessv1.Writer{Executor: "test", Instance: "w", Nonce: b.newest.Header.Version},
		Body:   &harnessv1.Record_Step{Step: &harnessv1.Step{From: "test", To: to, Snapshot: &harnessv1.Snapshot{}}},
	}
	sequence, err := b.Append(b.Context(), rec)
	b.must(err)
	b.newest = runlog.Entry{Run: b.run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	return sequence
}

// timedDelivery is a delivery and the time at which it arrived.
type timedDelivery struct {
	runlog.Delivery
	at time.Time
}

// consume delivers the steps to turn to a channel until stop.
func (b *busTest) consume(concurrency int) (deliveries <-chan timedDelivery, stop func()) {
	ch := make(chan timedDelivery, 100)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Consume(ctx, "turn", concurrency, func(_ context.Context, d runlog.Delivery) { ch <- timedDelivery{d, time.Now()} })
	}()
	return ch, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Errorf("Consume returned %v", err)
		}
	}
}

// TestBusDeliversOnTime checks the exact times of deliveries and timers. A goroutine
// that outlived the test would fail its bubble.
func TestBusDeliversOnTime(t *testing.T) {
	onBus(t, func(b *busTest) {
		deliveries, stop := b.consume(1)
		defer stop()
		began := time.Now()
		receive := func(after time.Duration, redelivered bool) runlog.Delivery {
			b.Helper()
			d := <-deliveries
			if got := d.at.Sub(began); got != after || d.Redelivered() != redelivered {
				b.Fatalf("delivered after %v, redelivered %v; want %v, %v", got, d.Redelivered(), after, redelivered)
			}
			began = d.at
			return d
		}
		b.step("turn")
		receive(0, false)
		d := receive(b.AckWait(), true)
		for range 10 {
			time.Sleep(b.AckWait() * 4 / 5)
			b.must(d.InProgress())
		}
		began = time.Now()
		b.must(d.Nak(time.Hour))
		d = receive(time.Hour, true)
		b.must(d.Nak(0))
		b.must(receive(0, true).Ack())

		at := time.Now().Add(100 * time.Hour)
		b.must(b.SetTimer(b.Context(), b.run, 7, at))
		ctx, cancel := context.WithCancel(b.Context())
		var fired []time.Time
		ended := make(chan error, 1)
		go func() {
			ended <- b.ConsumeTimers(ctx, func(context.Context, runlog.Run, uint64) error {
				if fired = append(fired, time.Now()); len(fired) == 1 {
					return errors.New("not yet")
				}
				return nil
			})
		}()
		time.Sleep(200 * time.Hour)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Errorf("ConsumeTimers returned %v", err)
		}
		if want := []time.Time{at, at.Add(time.Second)}; !slices.EqualFunc(fired, want, time.Time.Equal) {
			b.Errorf("the timer fired at %v, want %v", fired, want)
		}
		if len(deliveries) > 0 {
			b.Error("an acknowledged step was delivered")
		}
	})
}

// TestBusViewGivesUp checks that View waits 5 seconds for a message that is never
// stored.
func TestBusViewGivesUp(t *testing.T) {
	onBus(t, func(b *busTest) {
		next := b.step("turn") + 1
		began := time.Now()
		if _, err := b.View(b.Context(), b.run, next); !errors.Is(err, runlog.ErrUnavailable) || time.Since(began) != 5*time.Second {
			b.Errorf("View returned %v after %v", err, time.Since(began))
		}
	})
}

func TestBusDeliversNothingToAnEndedConsumer(t *testing.T) {
	onBus(t, func(b *busTest) {
		deliveries, stop := b.consume(1)
		stop()
		b.step("turn")
		time.Sleep(time.Minute)
		if len(deliveries) > 0 {
			b.Error("a delivery after Consume had returned")
		}
		deliveries, stop = b.consume(1)
		defer stop()
		if d := <-deliveries; d.Redelivered() {
			b.Error("the first delivery is marked as a redelivery")
		}
	})
}

// TestBusForgetsAcknowledgedSteps checks that a step that is acknowledged while it
// waits for its redelivery is not delivered again.
func TestBusForgetsAcknowledgedSteps(t *testing.T) {
	onBus(t, func(b *busTest) {
		deliveries, stop := b.consume(4)
		kept := map[uint64]runlog.Delivery{}
		for range 3 {
			b.step("turn")
		}
		for range 3 {
			d := <-deliveries
			kept[d.Entry().Sequence] = d
		}
		stop()
		time.Sleep(2 * b.AckWait())
		b.must(kept[1].Ack())
		b.must(kept[3].Ack())
		time.Sleep(time.Millisecond) // the acknowledgements arrive
		deliveries, stop = b.consume(4)
		defer stop()
		time.Sleep(b.AckWait() / 2)
		if got := (<-deliveries).Entry().Sequence; got != 2 || len(deliveries) > 0 {
			b.Errorf("sequence %d was delivered and %d more", got, len(deliveries))
		}
	})
}

// TestServerRestartForgetsDeliveries checks the fault ServerRestart: a message that is not
// acknowledged is delivered as if for the first time, an acknowledged one is not delivered.
func TestServerRestartForgetsDeliveries(t *testing.T) {
	var forgotten atomic.Int64
	cfg := sim.Config{Executors: []string{"turn"}, Rates: sim.Rates{ServerRestart: 2000, TimePasses: 2000}, Steps: 200}
	for seed := range uint64(20) {
		cfg.Seed = seed
		sim.Try(t, cfg, func(w *sim.World) {
			run := runlog.Run{Namespace: "test", ID: "r"}
			w.StartRun(run, &harnessv1.Step{To: "turn", Snapshot: &harnessv1.Snapshot{}})
			w.Start("worker", func(ctx context.Context, p *sim.Process) error {
				seen, acknowledged := 0, false
				return p.Log().Consume(ctx, "turn", 1, func(_ context.Context, d runlog.Delivery) {
					if acknowledged {
						t.Errorf("seed %d: delivered after its acknowledgement", seed)
					}
					if seen++; seen > 1 && !d.Redelivered() {
						forgotten.Add(1)
						acknowledged = d.Ack() == nil
						time.Sleep(time.Second) // the acknowledgement arrives
					}
				})
			})
		})
	}
	if forgotten.Load() == 0 {
		t.Error("the server never forgot a delivery")
	}
}
