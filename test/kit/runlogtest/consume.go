package runlogtest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var consumeCases = map[string]func(*bed){
	"consume/redelivery":   consumeRedelivery,
	"consume/in progress":  consumeInProgress,
	"consume/expired":      consumeExpired,
	"consume/ack is final": consumeAckIsFinal,
	"consume/nak":          consumeNak,
	"consume/filters":      consumeFilters,
	"consume/concurrency":  consumeConcurrency,
	"consume/end":          consumeEnd,
	"consume/two workers":  consumeTwo,
	"consume/unknown":      consumeUnknown,
	"consume/stored":       consumeStored,
}

// consume sends deliveries to a channel.
func (b *bed) consume(executor string) (<-chan runlog.Delivery, func() error) {
	deliveries := make(chan runlog.Delivery, 1000)
	return deliveries, b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, executor, 16, func(_ context.Context, d runlog.Delivery) { deliveries <- d })
	})
}

// consumeRedelivery checks that a step is redelivered unless it was acknowledged. The
// sentinel is delivered later, so its redelivery shows that the step's would be due.
func consumeRedelivery(b *bed) {
	deliveries, _ := b.consume("turn")
	c, sentinel := b.chain("r"), b.chain("sentinel")
	c.append("turn")
	d := recv(b, deliveries, "the step")
	b.same(d.Entry(), c.entries[0])
	if d.Redelivered() || d.IsInbox() {
		b.Fatal("a first delivery of a step, wrongly marked")
	}
	delivered := time.Now()
	d = recv(b, deliveries, "the redelivery")
	if since := time.Since(delivered); since < b.log.AckWait()/2 || since > 3*b.log.AckWait() {
		b.Fatalf("delivered again after %v", since)
	}
	b.same(d.Entry(), c.entries[0])
	if !d.Redelivered() {
		b.Fatal("a redelivery is not marked")
	}
	b.must(d.Ack())
	sentinel.append("turn")
	for n := range 2 {
		d = recv(b, deliveries, "the sentinel")
		b.same(d.Entry(), sentinel.entries[0])
		if d.Redelivered() != (n > 0) {
			b.Fatalf("delivery %d, redelivered is %v", n, d.Redelivered())
		}
	}
	b.must(d.Ack())
}

// consumeInProgress checks that heartbeats postpone the redelivery.
func consumeInProgress(b *bed) {
	deliveries, _ := b.consume("turn")
	c, sentinel := b.chain("r"), b.chain("sentinel")
	c.append("turn")
	d := recv(b, deliveries, "the step")
	beat := time.NewTicker(b.log.AckWait() / 4)
	defer beat.Stop()
	sentinel.append("turn")
	recv(b, deliveries, "the sentinel")
	for again := false; !again; {
		select {
		case <-beat.C:
			b.must(d.InProgress())
		case other := <-deliveries:
			b.same(other.Entry(), sentinel.entries[0])
			b.must(other.Ack())
			again = true
		case <-b.ctx.Done():
			b.Fatal("the sentinel did not come again")
		}
	}
	b.must(d.Ack())
}

// consumeExpired checks that a worker that kept a step for too long can acknowledge
// it, but neither keep it nor put it back: another worker may have it.
func consumeExpired(b *bed) {
	deliveries, _ := b.consume("turn")
	c, sentinel := b.chain("r"), b.chain("sentinel")
	c.append("turn")
	first := recv(b, deliveries, "the step")
	second := recv(b, deliveries, "the redelivery")
	if err := first.InProgress(); err == nil {
		b.Error("InProgress of an expired delivery succeeded")
	}
	if err := first.Nak(0); err == nil {
		b.Error("Nak of an expired delivery succeeded")
	}
	b.must(first.Ack())
	sentinel.append("turn")
	for n := range 2 { // the redelivery of the sentinel shows that the step's would be due
		d := recv(b, deliveries, "the sentinel")
		b.same(d.Entry(), sentinel.entries[0])
		if d.Redelivered() != (n > 0) {
			b.Fatalf("delivery %d, redelivered is %v", n, d.Redelivered())
		}
	}
	b.must(second.Ack())
}

// consumeAckIsFinal checks that nothing can be done to a delivery after its Ack.
func consumeAckIsFinal(b *bed) {
	deliveries, _ := b.consume("turn")
	b.chain("r").append("turn")
	d := recv(b, deliveries, "the step")
	b.must(d.Ack())
	for what, err := range map[string]error{"Ack": d.Ack(), "Nak": d.Nak(0), "InProgress": d.InProgress()} {
		if err == nil {
			b.Errorf("%s after Ack succeeded", what)
		}
	}
}

func consumeNak(b *bed) {
	deliveries, _ := b.consume("turn")
	c := b.chain("r")
	c.append("turn")
	const delay = 300 * time.Millisecond
	for range 3 {
		d := recv(b, deliveries, "the step")
		begun := time.Now()
		b.must(d.Nak(delay))
		d = recv(b, deliveries, "the redelivery")
		if since := time.Since(begun); since < delay-50*time.Millisecond || since > b.log.AckWait() {
			b.Fatalf("delivered again after %v, want %v", since, delay)
		}
		b.must(d.Nak(0))
	}
	b.must(recv(b, deliveries, "the step").Ack())
}

func consumeFilters(b *bed) {
	c := b.chain("r")
	want := map[string][]runlog.Entry{}
	to := []string{"repair", "", "compaction", "turn", "", "", "stopdecision", runlog.Park, "repair", "turn", runlog.End}
	for _, executor := range to {
		e := c.append(executor)
		want[executor] = append(want[executor], e)
	}
	b.send(c.run, message("i", ""))
	for _, executor := range []string{"repair", "compaction", "turn", "stopdecision"} {
		deliveries, stop := b.consume(executor)
		sentinel := b.chain("sentinel-" + executor)
		missing := map[place]runlog.Entry{}
		for _, e := range append(want[executor], sentinel.append(executor)) {
			missing[place{e.Run, e.Sequence}] = e
		}
		for len(missing) > 0 { // in any order
			d := recv(b, deliveries, "a step to "+executor)
			at := place{d.Entry().Run, d.Entry().Sequence}
			b.same(d.Entry(), missing[at])
			delete(missing, at)
			b.must(d.Ack())
		}
		_ = stop()
	}
}

type place struct {
	run      runlog.Run
	sequence uint64
}

func consumeConcurrency(b *bed) {
	c := b.chain("r")
	const limit, steps = 4, 100
	for range steps {
		c.append("turn")
	}
	var active, most, handled atomic.Int64
	full, all := make(chan struct{}), make(chan struct{})
	b.background(func(ctx context.Context) error {
		return b.log.Consume(ctx, "turn", limit, func(ctx context.Context, d runlog.Delivery) {
			now := active.Add(1)
			defer active.Add(-1)
			if now > most.Load() {
				most.Store(now)
			}
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
			if d.Ack() == nil && handled.Add(1) == steps {
				close(all)
			}
		})
	})
	recv(b, full, "as many handlers as allowed")
	recv(b, all, "the last step")
	if most.Load() > limit {
		b.Fatalf("%d at the same time, want at most %d", most.Load(), limit)
	}
}

// consumeEnd checks that Consume returns after its last handler, and that no handler
// starts after that.
func consumeEnd(b *bed) {
	c := b.chain("r")
	for range 300 {
		c.append("turn")
	}
	for round := range 30 {
		var active atomic.Int64
		var over atomic.Bool
		some := make(chan struct{}, 1000)
		stop := b.background(func(ctx context.Context) error {
			return b.log.Consume(ctx, "turn", 1+round, func(_ context.Context, d runlog.Delivery) {
				active.Add(1)
				defer active.Add(-1)
				if over.Load() {
					b.Error("handled after Consume returned")
				}
				some <- struct{}{}
				if err := d.Nak(0); err != nil && !over.Load() {
					b.Error(err)
				}
			})
		})
		recv(b, some, "a delivery")
		b.wantErr(stop(), context.Canceled)
		over.Store(true)
		if n := active.Load(); n != 0 {
			b.Fatalf("%d handlers are left", n)
		}
	}
	// A handler that takes long is waited for, and its context ends.
	begun, finish := make(chan struct{}, 1000), make(chan struct{})
	ctx, cancel := context.WithCancelCause(b.ctx)
	ended := make(chan error, 1)
	heard := make(chan struct{}, 1000)
	go func() {
		ended <- b.log.Consume(ctx, "turn", 1, func(ctx context.Context, _ runlog.Delivery) {
			begun <- struct{}{}
			<-ctx.Done()
			heard <- struct{}{}
			<-finish
		})
	}()
	recv(b, begun, "a delivery")
	cancel(errEnough)
	recv(b, heard, "the end of the handler's context")
	select {
	case err := <-ended:
		b.Fatalf("Consume did not wait for its handler: %v", err)
	default:
	}
	close(finish)
	b.wantErr(recv(b, ended, "the end of Consume"), errEnough)
}

// consumeTwo checks that each step goes to one of two workers.
func consumeTwo(b *bed) {
	const steps = 200
	var mu sync.Mutex
	times := map[place]int{}
	all := make(chan struct{})
	for range 2 {
		b.background(func(ctx context.Context) error {
			return b.log.Consume(ctx, "turn", 8, func(_ context.Context, d runlog.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				if times[place{d.Entry().Run, d.Entry().Sequence}]++; len(times) == steps {
					select {
					case <-all:
					default:
						close(all)
					}
				}
				_ = d.Ack()
			})
		})
	}
	c := b.chain("r")
	for range steps {
		c.append("turn")
	}
	recv(b, all, "the last step")
	mu.Lock()
	defer mu.Unlock()
	for at, n := range times {
		if n != 1 {
			b.Errorf("step at %v was delivered %d times", at, n)
		}
	}
}

func consumeUnknown(b *bed) {
	err := b.log.Consume(b.ctx, "unknown", 1, func(context.Context, runlog.Delivery) { b.Error("a delivery") })
	if err == nil {
		b.Fatal("an executor that was not provisioned can consume")
	}
}

// consumeStored checks that steps wait for a worker.
func consumeStored(b *bed) {
	c := b.chain("r")
	for range 20 {
		c.append("turn")
		c.append("")
	}
	deliveries, stop := b.consume("turn")
	seen := map[uint64]bool{}
	for range 20 {
		d := recv(b, deliveries, "a step")
		seen[d.Entry().Header.Version] = true
		b.must(d.Ack())
	}
	for v := uint64(1); v < 40; v += 2 {
		if !seen[v] {
			b.Errorf("version %d was not delivered", v)
		}
	}
	b.wantErr(stop(), context.Canceled)
}
