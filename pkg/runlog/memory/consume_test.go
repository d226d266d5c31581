package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// trace has two workers, of which one never answers, take steps for a while. They
// have room for all, so that nothing depends on which handler returns first.
func trace(t *testing.T) string {
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 100)
		begun := time.Now()
		stops := []func() error{}
		for _, name := range []string{"alive", "hangs"} {
			stops = append(stops, d.work(name, 20, deliveries))
			synctest.Wait()
		}
		for i := range 12 {
			d.step(fmt.Sprint("r", i), "turn")
		}
		for range 40 {
			synctest.Wait()
			var batch []string // those of one moment are handled at the same time
			for range len(deliveries) {
				got := <-deliveries
				batch = append(batch, fmt.Sprint(got.at.Sub(begun), " ", got.worker, " ", got.Entry().Sequence, got.Redelivered()))
				if got.worker == "alive" {
					d.must(got.Ack())
				}
			}
			slices.Sort(batch)
			lines = append(lines, strings.Join(batch, ","))
			time.Sleep(time.Second)
		}
		for _, stop := range stops {
			d.end(stop)
		}
		if floor, err := d.AckFloor(t.Context(), named("r0"), "turn"); err != nil || floor != 12 {
			t.Errorf("acknowledged up to %d, %v", floor, err)
		}
	})
	return strings.Join(lines, "\n")
}

func TestTheSameCallsHaveTheSameEffects(t *testing.T) {
	first := trace(t)
	for range 20 {
		if again := trace(t); again != first {
			t.Fatalf("first\n%s\nthen\n%s", first, again)
		}
	}
}

func TestWorkersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 10)
		for _, name := range []string{"a", "b", "c"} {
			defer d.end(d.work(name, 2, deliveries))
			synctest.Wait()
		}
		var got []string
		for range 7 {
			d.step("r", "turn")
			synctest.Wait()
			next := <-deliveries
			got = append(got, next.worker)
			d.must(next.Ack())
		}
		if fmt.Sprint(got) != "[a b c a b c a]" {
			t.Fatalf("steps went to %v", got)
		}
	})
}

func TestAWorkerThatIsEndingIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- d.Consume(ctx, "turn", 1, func(context.Context, runlog.Delivery) { t.Error("a delivery behind the end") })
		}()
		synctest.Wait()
		cancel()
		d.step("r", "turn") // before the worker has run
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		deliveries := make(chan handed, 1)
		defer d.end(d.work("w", 1, deliveries))
		got := <-deliveries
		if got.Redelivered() {
			t.Error("a first delivery is marked as one that was made before")
		}
		d.must(got.Ack())
	})
}

// The server does not ask whose an acknowledgement is; this program's client does
// not send what would harm another worker.
func TestAHoldThatRanOutCanOnlyBeAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 10)
		defer d.end(d.work("w", 4, deliveries))
		d.step("r", "turn")
		first := <-deliveries
		time.Sleep(d.AckWait() - 1) // the server would still take it
		for what, err := range map[string]error{"renewed": first.InProgress(), "put back": first.Nak(0)} {
			if !errors.Is(err, errOver) {
				t.Errorf("a hold that ran out was %s: %v", what, err)
			}
		}
		second := <-deliveries
		d.must(first.Ack())
		time.Sleep(10 * d.AckWait())
		if len(deliveries) > 0 {
			t.Fatal("what the first worker acknowledged late was delivered again")
		}
		d.must(second.Ack())
		for what, err := range map[string]error{"acknowledged": second.Ack(), "put back": second.Nak(0), "renewed": second.InProgress()} {
			if !errors.Is(err, errSaid) {
				t.Errorf("a delivery that was acknowledged was %s: %v", what, err)
			}
		}
	})
}

func TestACrashOfTheServerMakesDeliveriesNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 20)
		defer d.end(d.work("w", 20, deliveries))
		take := func(n int) map[uint64]handed {
			t.Helper()
			synctest.Wait()
			got := map[uint64]handed{}
			for range len(deliveries) {
				next := <-deliveries
				got[next.Entry().Sequence] = next
			}
			if len(got) != n {
				t.Fatalf("%d deliveries, want %d", len(got), n)
			}
			return got
		}
		for range 5 {
			d.step("r", "turn")
		}
		take(5)
		time.Sleep(d.AckWait())
		before := take(5)
		d.must(before[1].Ack())
		d.must(before[2].Nak(time.Hour)) // is forgotten too
		d.ForgetDeliveries()
		after := take(4)
		for sequence, got := range after {
			if got.Redelivered() || sequence == 1 {
				t.Errorf("%d was delivered, redelivered %v", sequence, got.Redelivered())
			}
		}
		d.must(before[3].Ack()) // from before the crash
		d.must(after[2].Ack())
		time.Sleep(d.AckWait())
		for sequence, got := range take(2) {
			if sequence < 4 || !got.Redelivered() {
				t.Errorf("%d was delivered, redelivered %v", sequence, got.Redelivered())
			}
			d.must(got.Ack())
		}
		d.ForgetDeliveries()
		take(0)
	})
}

// A message that waits for a worker, and is acknowledged by one that had it, is
// not given to the next.
func TestWhatIsAcknowledgedWhileItWaitsIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 20)
		stop := d.work("w", 4, deliveries)
		for range 3 {
			d.step("r", "turn")
		}
		synctest.Wait()
		held := map[uint64]handed{}
		for range 3 {
			got := <-deliveries
			held[got.Entry().Sequence] = got
		}
		d.end(stop)
		time.Sleep(2 * d.AckWait()) // all wait to be delivered again
		d.must(held[1].Ack())
		d.ForgetDeliveries() // all are new
		d.must(held[3].Ack())
		defer d.end(d.work("w", 4, deliveries))
		synctest.Wait()
		if got := <-deliveries; got.Entry().Sequence != 2 || len(deliveries) > 0 {
			t.Fatalf("%d was delivered, and %d more", got.Entry().Sequence, len(deliveries))
		}
	})
}

func TestAnExecutorThatIsProvisionedLaterGetsEarlierSteps(t *testing.T) {
	d := sit(t)
	d.step("r", "turn")
	want := d.step("r", "mine")
	names, err := d.Executors(t.Context())
	d.must(err)
	if fmt.Sprint(names) != "[compaction repair stopdecision turn]" {
		t.Fatalf("executors %v", names)
	}
	if _, err := d.AckFloor(t.Context(), named("r"), "mine"); !errors.Is(err, runlog.ErrNotFound) {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a.b", runlog.Park, runlog.End} {
		if d.Provision(name) == nil {
			t.Errorf("%q was provisioned", name)
		}
	}
	d.must(d.Provision("mine", "turn"))
	ctx, cancel := context.WithCancelCause(t.Context())
	err = d.Consume(ctx, "mine", 1, func(_ context.Context, got runlog.Delivery) {
		if got.Entry().Sequence != want {
			t.Errorf("%d was delivered, want %d", got.Entry().Sequence, want)
		}
		d.must(got.Ack())
		cancel(errEnough)
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	for executor, want := range map[string]uint64{"mine": want, "turn": 0, "repair": 0} {
		if floor, err := d.AckFloor(t.Context(), named("r"), executor); err != nil || floor != want {
			t.Errorf("acknowledged by %s up to %d, %v; want %d", executor, floor, err, want)
		}
	}
}
