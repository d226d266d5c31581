package runlogtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var wakeCases = map[string]func(*bed){
	"wake/park, end and inbox": wakes,
	"timer/fires":              timerFires,
	"timer/set twice":          timerTwice,
	"timer/moved":              timerMoved,
	"timer/set again":          timerSetAgain,
	"timer/past":               timerPast,
	"timer/handler fails":      timerFails,
}

var feedCases = map[string]func(*bed){
	"feed/deltas":    deltas,
	"feed/pokes":     pokes,
	"feed/executors": executors,
}

func wakes(b *bed) {
	deliveries := make(chan runlog.Delivery, 100)
	stop := b.background(func(ctx context.Context) error {
		return b.log.ConsumeWakes(ctx, 4, func(_ context.Context, d runlog.Delivery) { deliveries <- d })
	})
	c := b.chain("r")
	c.append("repair")
	c.append("turn")
	c.append("")
	next := func(want uint64, inbox bool) {
		b.Helper()
		d := recv(b, deliveries, "a wake")
		e := d.Entry()
		if e.Run != c.run || e.Sequence != want || d.IsInbox() != inbox || d.Redelivered() {
			b.Fatalf("%v at %d, inbox %v; want %d", e.Run, e.Sequence, d.IsInbox(), want)
		}
		if inbox != (e.Record == nil) || e.Err != nil {
			b.Fatalf("record %v, error %v", e.Record, e.Err)
		}
		b.must(d.Ack())
	}
	next(c.append(runlog.Park).Sequence, false)
	next(b.send(c.run, message("1", ""))[0], true)
	c.append("repair")
	next(c.append(runlog.End).Sequence, false)
	next(b.send(c.run, message("2", ""))[0], true)
	b.wantErr(stop(), context.Canceled)
}

type firedTimer struct {
	run     runlog.Run
	version uint64
	at      time.Time
}

// timers sends fired timers to a channel.
func (b *bed) timers() <-chan firedTimer {
	ch := make(chan firedTimer, 100)
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeTimers(ctx, func(_ context.Context, run runlog.Run, version uint64) error {
			ch <- firedTimer{run, version, time.Now()}
			return nil
		})
	})
	return ch
}

func timerFires(b *bed) {
	ch := b.timers()
	run := b.chain("r").run
	at := time.Now().Add(time.Second)
	b.must(b.log.SetTimer(b.ctx, run, 7, at))
	f := recv(b, ch, "the timer")
	if f.run != run || f.version != 7 {
		b.Fatalf("got %v", f)
	}
	if early := at.Sub(f.at); early > 100*time.Millisecond {
		b.Fatalf("%v early", early)
	}
}

// timerTwice checks that setting the same timer twice sets one, and that other timers
// are separate.
func timerTwice(b *bed) {
	ch := b.timers()
	run, other := b.chain("r").run, b.chain("other").run
	at := time.Now().Add(time.Second)
	for range 3 {
		b.must(b.log.SetTimer(b.ctx, run, 7, at))
	}
	b.must(b.log.SetTimer(b.ctx, run, 8, at.Add(time.Second)))
	b.must(b.log.SetTimer(b.ctx, other, 7, at.Add(2*time.Second)))
	for _, want := range []firedTimer{{run: run, version: 7}, {run: run, version: 8}, {run: other, version: 7}} {
		f := recv(b, ch, "a timer")
		if f.run != want.run || f.version != want.version {
			b.Fatalf("%v %d fired, want %v %d", f.run, f.version, want.run, want.version)
		}
	}
}

// timerMoved checks that a timer that is set again fires only at the new time.
func timerMoved(b *bed) {
	ch := b.timers()
	run, at := b.chain("r").run, time.Now().Add(time.Second)
	b.must(b.log.SetTimer(b.ctx, run, 7, at))
	b.must(b.log.SetTimer(b.ctx, run, 7, at.Add(2*time.Second)))
	b.must(b.log.SetTimer(b.ctx, run, 8, at.Add(time.Second)))
	for _, want := range []uint64{8, 7} {
		if f := recv(b, ch, "a timer"); f.version != want {
			b.Fatalf("%d fired, want %d", f.version, want)
		}
	}
}

// timerSetAgain checks that a timer that is set again by its handler fires again.
func timerSetAgain(b *bed) {
	run := b.chain("r").run
	calls := make(chan uint64, 100)
	once := false
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeTimers(ctx, func(ctx context.Context, _ runlog.Run, version uint64) error {
			if !once {
				once = true
				b.must(b.log.SetTimer(ctx, run, 7, time.Now().Add(time.Second)))
			}
			calls <- version
			return nil
		})
	})
	b.must(b.log.SetTimer(b.ctx, run, 7, time.Now()))
	for range 2 {
		if version := recv(b, calls, "the timer"); version != 7 {
			b.Fatalf("%d fired", version)
		}
	}
}

func timerPast(b *bed) {
	ch := b.timers()
	run := b.chain("r").run
	for version, at := range map[uint64]time.Time{1: time.Now().Add(-time.Hour), 2: time.Now(), 3: time.Unix(1, 0)} {
		b.must(b.log.SetTimer(b.ctx, run, version, at))
		if f := recv(b, ch, "a timer in the past"); f.run != run || f.version != version {
			b.Fatalf("got %v", f)
		}
	}
}

func timerFails(b *bed) {
	calls := make(chan uint64, 100)
	n := 0
	b.background(func(ctx context.Context) error {
		return b.log.ConsumeTimers(ctx, func(_ context.Context, _ runlog.Run, version uint64) error {
			calls <- version
			if n++; n == 1 {
				return errors.New("not now")
			}
			return nil
		})
	})
	run := b.chain("r").run
	b.must(b.log.SetTimer(b.ctx, run, 1, time.Now()))
	for range 2 {
		if v := recv(b, calls, "the timer"); v != 1 {
			b.Fatalf("timer %d", v)
		}
	}
	b.must(b.log.SetTimer(b.ctx, run, 2, time.Now()))
	if v := recv(b, calls, "the second timer"); v != 2 {
		b.Fatalf("timer %d after it was handled", v)
	}
}

func deltas(b *bed) {
	run, other := b.chain("r").run, b.chain("other").run
	ch := make(chan *harnessv1.Delta, 10)
	stop, err := b.log.SubscribeDeltas(run, func(d *harnessv1.Delta) { ch <- d })
	b.must(err)
	b.must(b.log.PublishDelta(other, &harnessv1.Delta{Text: "theirs"}))
	for _, text := range []string{"Hel", "lo", ""} {
		want := &harnessv1.Delta{Text: text, TurnNumber: 3}
		b.must(b.log.PublishDelta(run, want))
		if got := recv(b, ch, "a delta"); !proto.Equal(got, want) {
			b.Fatalf("got %v, want %v", got, want)
		}
	}
	stop()
}

func pokes(b *bed) {
	ch := make(chan runlog.Run, 10)
	stop, err := b.log.OnPoke(func(r runlog.Run) { ch <- r })
	b.must(err)
	for _, id := range []string{"a", "b"} {
		run := b.chain(id).run
		b.must(b.log.Poke(run))
		if got := recv(b, ch, "a poke"); got != run {
			b.Fatalf("poked %v, received %v", run, got)
		}
	}
	stop()
}

func executors(b *bed) {
	names, err := b.log.Executors(b.ctx)
	b.must(err)
	for _, name := range []string{"repair", "compaction", "turn", "stopdecision"} {
		if !slices.Contains(names, name) {
			b.Errorf("%s is not among %v", name, names)
		}
	}
}
