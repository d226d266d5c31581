package runlogtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// absent is a log whose reads fail while failure is set.
type absent struct {
	*Faults
	failure atomic.Pointer[error]
	refused chan struct{} // capacity 1
}

func newAbsent(b *bed) *absent {
	return &absent{Faults: NewFaults(b.log), refused: make(chan struct{}, 1)}
}

// leave makes reads fail with err.
func (a *absent) leave(err error) { a.failure.Store(&err) }

// awaitReads returns after n further reads have failed.
func (a *absent) awaitReads(b *bed, n int) {
	b.Helper()
	select {
	case <-a.refused:
	default:
	}
	for range n {
		recv(b, a.refused, "a read")
	}
}

func (a *absent) refuse() error {
	err := a.failure.Load()
	if err == nil {
		return nil
	}
	select {
	case a.refused <- struct{}{}:
	default:
	}
	return *err
}

// View calls the log's View, or fails.
func (a *absent) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	if err := a.refuse(); err != nil {
		return runlog.View{}, err
	}
	return a.Faults.View(ctx, run, contains)
}

// Read calls the log's Read, or fails.
func (a *absent) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	if err := a.refuse(); err != nil {
		return runlog.Entry{}, err
	}
	return a.Faults.Read(ctx, run, sequence)
}

// patiently watches c's run from version after to until, in the background. ended waits
// for the end and returns the records and the error.
func (c *chain) patiently(log runlog.Log, after, until uint64, patience time.Duration) (caughtUp <-chan struct{}, ended func() ([]runlog.Entry, error)) {
	caught := make(chan struct{}, 2)
	var got []runlog.Entry
	done := make(chan error, 1)
	go func() {
		done <- runlog.Watcher{
			After: after, Patience: patience,
			Handle: func(e runlog.Entry) error {
				if got = append(got, e); e.Header.Version >= until {
					return errEnough
				}
				return nil
			},
			CaughtUp: func() error {
				caught <- struct{}{}
				return nil
			},
		}.Watch(c.ctx, log, c.run)
	}()
	return caught, func() ([]runlog.Entry, error) {
		err := recv(c.bed, done, "the end of the watch")
		if len(caught) > 0 {
			c.Error("caught up twice")
		}
		return got, err
	}
}

// watchAway checks that records that are stored while the bus is unavailable and the
// feed is silent are delivered afterwards.
func watchAway(b *bed) {
	c, log := b.chain("r"), newAbsent(b)
	c.grow(3)
	caught, ended := c.patiently(log, 1, 30, patience)
	recv(b, caught, "the start")
	log.DropFeed(func(*runlog.Entry) bool { return true })
	log.leave(runlog.ErrUnavailable)
	log.Interrupt()
	log.awaitReads(b, 1)
	c.grow(20)
	log.Interrupt() // again, while the bus is unavailable
	log.awaitReads(b, 2)
	log.failure.Store(nil)
	log.DropFeed(nil)
	c.grow(7)
	got, err := ended()
	b.wantErr(err, errEnough)
	c.tail(got, 1)
}

// watchAwayFed checks that the feed alone delivers records while reads fail, and that
// its gaps are filled later.
func watchAwayFed(b *bed) {
	c, log := b.chain("r"), newAbsent(b)
	c.grow(1)
	caught, ended := c.patiently(log, 0, 24, patience)
	recv(b, caught, "the start")
	log.DropFeed(func(e *runlog.Entry) bool { return e.Header.Version%5 == 0 })
	log.leave(runlog.ErrUnavailable)
	log.Interrupt()
	c.grow(3)
	log.awaitReads(b, 1)
	c.grow(15) // with gaps
	log.awaitReads(b, 2)
	log.failure.Store(nil)
	c.grow(5)
	got, err := ended()
	b.wantErr(err, errEnough)
	c.tail(got, 0)
}

// watchAwayAtStart checks that a watch can start while the bus is unavailable.
func watchAwayAtStart(b *bed) {
	c, log := b.chain("r"), newAbsent(b)
	c.grow(10)
	log.leave(runlog.ErrUnavailable)
	caught, ended := c.patiently(log, 4, 12, patience)
	log.awaitReads(b, 2)
	if len(caught) > 0 {
		b.Error("caught up with a log that gave no answer")
	}
	log.failure.Store(nil)
	recv(b, caught, "the start")
	c.grow(2)
	got, err := ended()
	b.wantErr(err, errEnough)
	c.tail(got, 4)
}

// watchAwayPermanently checks that patience ends, and that without patience the first
// failure ends the watch.
func watchAwayPermanently(b *bed) {
	c, log := b.chain("r"), newAbsent(b)
	c.grow(2)
	for _, patience := range []time.Duration{0, 200 * time.Millisecond} {
		caught, ended := c.patiently(log, 0, 9, patience)
		recv(b, caught, "the start")
		begun := time.Now()
		log.leave(runlog.ErrUnavailable)
		log.Interrupt()
		got, err := ended()
		b.wantErr(err, runlog.ErrUnavailable)
		c.tail(got, 0)
		if took := time.Since(begun); took < patience {
			b.Errorf("%v of patience ended after %v", patience, took)
		}
		log.failure.Store(nil)
	}
}

// watchNotFound checks that a run that was seen counts as present if a replica does not
// find it.
func watchNotFound(b *bed) {
	c, log := b.chain("r"), newAbsent(b)
	c.grow(2)
	caught, ended := c.patiently(log, 0, 6, patience)
	recv(b, caught, "the start")
	log.DropFeed(func(*runlog.Entry) bool { return true })
	log.leave(runlog.ErrNotFound)
	log.Interrupt()
	log.awaitReads(b, 2)
	c.grow(4)
	log.failure.Store(nil)
	got, err := ended()
	b.wantErr(err, errEnough)
	c.tail(got, 0)

	// The same for a run with a known message, but not for an unknown run.
	log.leave(runlog.ErrNotFound)
	know := runlog.Watcher{Contains: c.newest(), Patience: time.Millisecond, Handle: func(runlog.Entry) error { return nil }}
	b.wantErr(know.Watch(b.ctx, log, c.run), runlog.ErrUnavailable)
	know.Contains, know.Patience = 0, patience
	b.wantErr(know.Watch(b.ctx, log, c.run), runlog.ErrNotFound)
}
