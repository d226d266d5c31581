package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// The log in a bubble: its time is the bubble's, to the nanosecond, and all that
// waits is durably blocked, or the bubble would stand still. A goroutine that were
// left would fail synctest.Test.
func TestEverythingHappensInFakeTimeAndNothingIsLeftRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		deliveries := make(chan handed, 10)
		stop := d.work("w", 1, deliveries)
		await := func(begun time.Time, after time.Duration, redelivered bool) handed {
			t.Helper()
			got := <-deliveries
			if since := got.at.Sub(begun); since != after || got.Redelivered() != redelivered {
				t.Fatalf("delivered after %v, redelivered %v; want %v, %v", since, got.Redelivered(), after, redelivered)
			}
			return got
		}

		sequence := d.step("r", "turn")
		await(time.Now(), 0, false)
		got := await(time.Now(), d.AckWait(), true)
		if got.Entry().Sequence != sequence {
			t.Fatalf("delivered %d, want %d", got.Entry().Sequence, sequence)
		}
		for range 10 {
			time.Sleep(d.AckWait() * 4 / 5)
			d.must(got.InProgress())
		}
		d.must(got.Nak(time.Hour))
		got = await(time.Now(), time.Hour, true)
		d.must(got.Nak(0))
		got = await(time.Now(), nakPause, true)
		d.must(got.Ack())

		at := time.Now().Add(100 * time.Hour)
		d.must(d.SetTimer(t.Context(), named("r"), 7, at))
		fired := make(chan time.Time, 10)
		ctx, cancel := context.WithCancel(t.Context())
		timers := make(chan error, 1)
		go func() {
			timers <- d.ConsumeTimers(ctx, func(_ context.Context, run runlog.Run, version uint64) error {
				if run != named("r") || version != 7 {
					t.Errorf("%v fired, version %d", run, version)
				}
				fired <- time.Now()
				if len(fired) == 1 {
					return errors.New("not now")
				}
				return nil
			})
		}()
		time.Sleep(200 * time.Hour)
		if len(fired) != 2 || !(<-fired).Equal(at) || !(<-fired).Equal(at.Add(timerPause)) {
			t.Fatal("the timer did not fire at its time and, as it was not handled, again")
		}
		cancel()
		if err := <-timers; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}

		watched := make(chan uint64, 10)
		ended := make(chan error, 1)
		go func() {
			ended <- runlog.Watch(t.Context(), d, named("r"), 0, func(e runlog.Entry) error {
				watched <- e.Header.Version
				if e.Header.Version == 3 {
					return errEnough
				}
				return nil
			}, nil)
		}()
		synctest.Wait()
		d.step("r", "repair")
		synctest.Wait()
		d.step("r", runlog.Park)
		if err := <-ended; !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		for want := uint64(1); want <= 3; want++ {
			if got := <-watched; got != want {
				t.Fatalf("watched version %d, want %d", got, want)
			}
		}

		d.end(stop)
		if len(deliveries) > 0 {
			t.Fatal("a delivery of what was acknowledged")
		}
		if n := len(d.clock.due); n != 0 || !d.clock.armed.IsZero() {
			t.Fatalf("%d alarms are left, the clock is armed for %v", n, d.clock.armed)
		}
		d.Close()
	})
}

var errEnough = errors.New("enough")

// What waits for the log when it is closed is told, and so is who comes later.
func TestCloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		d.step("r", "turn")
		d.must(d.SetTimer(t.Context(), named("r"), 1, time.Now().Add(time.Second)))
		ctx := t.Context()
		heard := make(chan error, 1)
		calls := map[string]func() error{
			"Consume": func() error {
				return d.Consume(ctx, "turn", 1, func(ctx context.Context, _ runlog.Delivery) {
					<-ctx.Done()
					heard <- context.Cause(ctx)
				})
			},
			"ConsumeWakes": func() error { return d.ConsumeWakes(ctx, 1, func(context.Context, runlog.Delivery) {}) },
			"ConsumeTimers": func() error {
				return d.ConsumeTimers(ctx, func(context.Context, runlog.Run, uint64) error { return nil })
			},
			"Runs": func() error { return d.Runs(ctx, nil, func(runlog.Entry) {}) },
			"View": func() error {
				_, err := d.View(ctx, named("r"), 1000)
				return err
			},
			"Append": func() error {
				rec := d.next("r", "turn")
				rec.PrevSequence = 1000
				_, err := d.Append(ctx, rec)
				return err
			},
		}
		ended := map[string]chan error{}
		for name, call := range calls {
			end := make(chan error, 1)
			ended[name] = end
			go func() { end <- call() }()
		}
		if _, err := d.Subscribe(ctx, named("r"), func(*runlog.Entry) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.OnPoke(func(runlog.Run) {}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for name := range calls {
			if len(ended[name]) > 0 {
				t.Fatalf("%s ended: %v", name, <-ended[name])
			}
		}
		d.Close()
		if err := <-heard; !errors.Is(err, runlog.ErrUnavailable) {
			t.Errorf("the handler of Consume heard %v", err)
		}
		for name, call := range calls {
			if err := <-ended[name]; !errors.Is(err, runlog.ErrUnavailable) {
				t.Errorf("%s ended with %v", name, err)
			}
			if name == "Consume" {
				continue // its handler would wait
			}
			if err := call(); !errors.Is(err, runlog.ErrUnavailable) {
				t.Errorf("%s of a closed log: %v", name, err)
			}
		}
		if _, err := d.Subscribe(ctx, named("r"), nil); !errors.Is(err, runlog.ErrUnavailable) {
			t.Errorf("Subscribe to a closed log: %v", err)
		}
	})
}

// A message that the log does not have is waited for, not for ever.
func TestAViewWaitsForWhatItHasToContain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sit(t)
		first := d.step("r", "turn")
		viewed := make(chan error, 1)
		view := func() {
			view, err := d.View(t.Context(), named("r"), first+1)
			if err == nil && view.Newest.Sequence != first+1 {
				err = errors.New("an older view")
			}
			viewed <- err
		}
		begun := time.Now()
		go view()
		if err := <-viewed; !errors.Is(err, runlog.ErrUnavailable) || time.Since(begun) != patience {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
		go view()
		synctest.Wait()
		d.step("r", "turn")
		d.must(<-viewed)
	})
}
