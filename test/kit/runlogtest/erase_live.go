package runlogtest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// eraseWatched checks that a watch of an erased run ends.
func eraseWatched(b *bed) {
	c, faults := b.chain("r"), NewFaults(b.log)
	c.grow(5)
	caught, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- watch(b.ctx, faults, c.run, 0, func(runlog.Entry) error { return nil }, func() error {
			caught <- struct{}{}
			return nil
		})
	}()
	recv(b, caught, "the start")
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	var err error
	b.until("an end of the watch", func() bool {
		faults.Interrupt() // makes the watch read again, perhaps from a replica that lags
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	b.wantErr(err, runlog.ErrUnavailable)
}

// eraseKeptWatched checks that a watch from an erased version returns ErrNotFound.
func eraseKeptWatched(b *bed) {
	c := b.chain("r")
	c.grow(5)
	b.must(b.log.Erase(b.ctx, c.run, c.newest(), runlog.Everything))
	b.until("a watch without the erased records", func() bool {
		var got []runlog.Entry
		err := watch(b.ctx, b.log, c.run, 2, func(e runlog.Entry) error {
			got = append(got, e)
			return nil
		}, func() error { return errEnough })
		if errors.Is(err, errEnough) { // from a replica that lags
			c.tail(got, 2)
			return false
		}
		b.wantErr(err, runlog.ErrNotFound)
		return true
	})
	// A watch from after the erased versions continues.
	b.wantErr(watch(b.ctx, b.log, c.run, 4, func(e runlog.Entry) error {
		b.same(e, c.entries[4])
		return errEnough
	}, nil), errEnough)
}

// eraseUnacknowledged checks that unacknowledged steps and items of an erased run are
// not redelivered and do not block other deliveries.
func eraseUnacknowledged(b *bed) {
	c, sentinel := b.chain("r"), b.chain("sentinel")
	type came struct {
		runlog.Delivery
		wake bool
	}
	deliveries := make(chan came, 10_000)
	b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, "turn", 16, func(_ context.Context, d runlog.Delivery) { deliveries <- came{d, false} })
	})
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeWakes(ctx, 16, func(_ context.Context, d runlog.Delivery) { deliveries <- came{d, true} })
	})
	await := func(run runlog.Run, wake bool) runlog.Delivery {
		for {
			if d := recv(b, deliveries, "a delivery"); d.Entry().Run == run && d.wake == wake {
				return d
			}
		}
	}
	c.append("turn")
	b.send(c.run, message("1", ""))
	c.append(runlog.Park)
	step := await(c.run, false)
	await(c.run, true)
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	_ = step.InProgress() // there is nothing to keep or to put back
	_ = step.Nak(0)
	sentinel.append("turn")
	sentinel.append(runlog.Park)
	await(sentinel.run, false) // deliveries in flight may arrive first
	await(sentinel.run, true)
	for steps, wakes := 0, 0; steps < 2 || wakes < 2; {
		d := recv(b, deliveries, "a sentinel")
		switch {
		case d.Entry().Run == c.run:
			b.Fatalf("sequence %d of an erased run was delivered, redelivered is %v", d.Entry().Sequence, d.Redelivered())
		case d.wake:
			wakes++
		default:
			steps++
		}
	}
}

// eraseTimer checks that a timer of an erased run does not fire, and that a later one
// of another run does.
func eraseTimer(b *bed) {
	sentinel, ch := b.chain("sentinel"), b.timers()
	for wait := 2 * time.Second; ; wait *= 2 {
		c, at := b.chain(wait.String()), time.Now().Add(wait)
		c.grow(1)
		for version := range uint64(3) {
			b.must(b.log.SetTimer(b.ctx, c.run, 7+version, at))
		}
		b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
		late := time.Now().After(at)
		b.must(b.log.SetTimer(b.ctx, sentinel.run, uint64(wait), at.Add(500*time.Millisecond)))
		for {
			f := recv(b, ch, "the sentinel")
			if f.run == sentinel.run {
				break
			}
			if f.run == c.run && !late { // else the timers were due before the erasure
				b.Fatalf("timer %d of an erased run fired", f.version)
			}
		}
		if !late {
			return
		}
	}
}

// eraseFired checks that a timer that fired and was not handled is not redelivered
// after the erasure.
func eraseFired(b *bed) {
	c, sentinel := b.chain("r"), b.chain("sentinel")
	var erased atomic.Int64
	came, sentinels := make(chan struct{}, 10_000), make(chan struct{}, 10_000)
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeTimers(ctx, func(_ context.Context, run runlog.Run, _ uint64) error {
			if run == c.run {
				erased.Add(1)
				came <- struct{}{}
			} else {
				sentinels <- struct{}{}
			}
			return errors.New("not now")
		})
	})
	c.append("end")
	b.must(b.log.SetTimer(b.ctx, c.run, 7, time.Now()))
	recv(b, came, "the timer")
	b.must(b.log.Erase(b.ctx, c.run, 0, runlog.Everything))
	b.must(b.log.SetTimer(b.ctx, sentinel.run, 7, time.Now()))
	recv(b, sentinels, "the sentinel")
	before := erased.Load()
	for range 2 { // the erased timer would be redelivered as often
		recv(b, sentinels, "the sentinel again")
	}
	if n := erased.Load() - before; n != 0 {
		b.Fatalf("a timer of an erased run was delivered %d times after it", n)
	}
}
