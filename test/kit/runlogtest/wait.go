package runlogtest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var waitCases = map[string]func(*bed){
	"wait/slots are free":      waitSlotsAreFree,
	"wait/resumed are bounded": waitResumedAreBounded,
	"wait/again":               waitAgain,
	"wait/end":                 waitEnd,
}

// waitSlotsAreFree checks that deliveries that wait do not prevent others, and that
// those still run at most concurrency at the same time.
func waitSlotsAreFree(b *bed) {
	const limit, waits, steps = 4, 40, 40
	c := b.chain("waits")
	for range waits {
		c.append("turn")
	}
	waiting, release := make(chan struct{}, 1000), make(chan struct{})
	handled, full := make(chan struct{}, 1000), make(chan struct{})
	var active, most atomic.Int64
	others := runlog.Run{Namespace: c.run.Namespace, ID: "others"}
	b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, "turn", limit, func(ctx context.Context, d runlog.Delivery) {
			if d.Entry().Run != others {
				if err := d.Wait(ctx, func() { waiting <- struct{}{}; <-release }); err == nil {
					_ = d.Ack()
				}
				return
			}
			now := active.Add(1)
			defer active.Add(-1)
			most.Store(max(most.Load(), now))
			if now == limit {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			select {
			case <-full: // the first ones wait until all slots are taken
			case <-ctx.Done():
			}
			if d.Ack() == nil {
				handled <- struct{}{}
			}
		})
	})
	for range waits {
		recv(b, waiting, "a step that waits")
	}
	o := b.chain(others.ID)
	for range steps {
		o.append("turn")
	}
	for range steps {
		recv(b, handled, "a step while others wait")
	}
	close(release)
	if most.Load() > limit {
		b.Errorf("%d at the same time, want at most %d", most.Load(), limit)
	}
}

// waitResumedAreBounded checks that deliveries that have waited continue in a bounded
// number at the same time, also while new messages use all slots, and that new messages
// are delivered while these continue.
func waitResumedAreBounded(b *bed) {
	const limit, waits = 8, 30
	want := int64(runlog.Resumed(limit))
	c := b.chain("waits")
	for range waits {
		c.append("turn")
	}
	waiting, release := make(chan struct{}, 1000), make(chan struct{})
	resumed, proceed := make(chan struct{}, 1000), make(chan struct{})
	busy, finish := make(chan struct{}, 1000), make(chan struct{})
	var active, most atomic.Int64
	b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, "turn", limit, func(ctx context.Context, d runlog.Delivery) {
			if d.Entry().Run != c.run {
				busy <- struct{}{}
				<-finish
				_ = d.Ack()
				return
			}
			if err := d.Wait(ctx, func() { waiting <- struct{}{}; <-release }); err != nil {
				return
			}
			now := active.Add(1)
			defer active.Add(-1)
			most.Store(max(most.Load(), now))
			resumed <- struct{}{}
			<-proceed
			_ = d.Ack()
		})
	})
	for range waits {
		recv(b, waiting, "a step that waits")
	}
	o := b.chain("others")
	for range limit / 2 {
		o.append("turn")
		recv(b, busy, "a step while others wait")
	}
	close(release)
	for range want {
		recv(b, resumed, "a step that has waited")
	}
	for range limit / 2 {
		o.append("turn")
		recv(b, busy, "a step while others continue")
	}
	close(proceed)
	for range waits - want {
		recv(b, resumed, "a step that has waited, while all slots are in use")
	}
	if most.Load() > want {
		b.Errorf("%d continue at the same time, want at most %d", most.Load(), want)
	}
	close(finish)
}

// waitAgain checks that a delivery can wait several times and uses one slot at most.
func waitAgain(b *bed) {
	c := b.chain("r")
	for range 3 {
		c.append("turn")
	}
	done := make(chan struct{}, 3)
	b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, "turn", 1, func(ctx context.Context, d runlog.Delivery) {
			for range 20 {
				if err := d.Wait(ctx, func() {}); err != nil {
					b.Error(err)
					return
				}
			}
			if d.Ack() == nil {
				done <- struct{}{}
			}
		})
	})
	for range 3 {
		recv(b, done, "a step that waited several times")
	}
}

// waitEnd checks that a wait that the end of ctx interrupts gets no slot, and that
// Consume waits for its handler, which can put the message back.
func waitEnd(b *bed) {
	b.chain("r").append("turn")
	waiting := make(chan struct{})
	ctx, cancel := context.WithCancelCause(b.ctx)
	ended := make(chan error, 1)
	var cause error
	go func() {
		ended <- b.log.Consume(ctx, "turn", 1, func(ctx context.Context, d runlog.Delivery) {
			cause = d.Wait(ctx, func() { close(waiting); <-ctx.Done() })
			if err := d.Nak(0); err != nil {
				b.Error(err)
			}
		})
	}()
	recv(b, waiting, "a step that waits")
	cancel(errEnough)
	b.wantErr(recv(b, ended, "the end of Consume"), errEnough)
	if cause == nil || !errors.Is(cause, context.Canceled) && !errors.Is(cause, errEnough) {
		b.Errorf("the wait ended with %v", cause)
	}
	deliveries, _ := b.consume("turn")
	b.must(recv(b, deliveries, "the step that was put back").Ack())
}
