package runlogtest

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var runsCases = map[string]func(*bed){
	"runs/empty":           runsEmpty,
	"runs/stored, live":    runsStored,
	"runs/while it starts": runsWhile,
}

// sight is a call by Runs: of handle with an entry, or of caughtUp.
type sight struct {
	entry    runlog.Entry
	caughtUp bool
}

func (b *bed) runs() (<-chan sight, func() error) {
	ch := make(chan sight, 10_000)
	return ch, b.background(func(ctx context.Context) error {
		return b.log.Runs(ctx, func() { ch <- sight{caughtUp: true} }, func(e runlog.Entry) { ch <- sight{entry: e} })
	})
}

func runsEmpty(b *bed) {
	ch, stop := b.runs()
	if s := recv(b, ch, "the end of what is stored"); !s.caughtUp {
		b.Fatalf("an entry of an empty log: %v", s.entry)
	}
	c := b.chain("r")
	want := c.append("repair")
	s := recv(b, ch, "a step")
	if s.caughtUp {
		b.Fatal("caught up twice")
	}
	b.same(s.entry, want)
	b.wantErr(stop(), context.Canceled)
}

func runsStored(b *bed) {
	want := map[runlog.Run]uint64{}
	chains := make([]*chain, 30)
	for i := range chains {
		c := b.chain(fmt.Sprint("r", i))
		chains[i] = c
		for range 1 + i%3 {
			want[c.run] = c.append("repair").Sequence
			c.append("turn")
			c.append("")
		}
		switch i % 4 {
		case 1:
			want[c.run] = c.append(runlog.Park).Sequence
		case 2:
			want[c.run] = c.append(runlog.End).Sequence
		case 3:
			b.send(c.run, message("i", ""))
		}
	}
	ch, stop := b.runs()
	newest := map[runlog.Run]uint64{}
	for {
		s := recv(b, ch, "the end of what is stored")
		if s.caughtUp {
			break
		}
		if to := s.entry.Record.GetStep().GetTo(); to != "repair" && !runlog.IsRest(to) {
			b.Fatalf("a step to %q", to)
		}
		newest[s.entry.Run] = max(newest[s.entry.Run], s.entry.Sequence)
	}
	for run, sequence := range want {
		if newest[run] != sequence {
			b.Errorf("%v is at %d, want %d", run, newest[run], sequence)
		}
	}
	for range 3 {
		for _, c := range chains[:5] {
			c.append("turn")
			want := c.append("repair")
			s := recv(b, ch, "a live step")
			if s.caughtUp {
				b.Fatal("caught up twice")
			}
			b.same(s.entry, want)
		}
	}
	b.wantErr(stop(), context.Canceled)
}

// runsWhile checks, with records being appended, that everything that was stored at the
// start has arrived when Runs calls caughtUp, once, and that no later step is missing.
func runsWhile(b *bed) {
	var over atomic.Bool
	c := b.chain("busy")
	written := make(chan struct{})
	busy := b.background(func(ctx context.Context) error {
		defer close(written)
		for n := 0; !over.Load() && n < 5000; n++ {
			rec := c.next([]string{"repair", runlog.Park}[n%2])
			sequence, err := b.log.Append(ctx, rec)
			if err != nil {
				return err
			}
			c.stored(rec, sequence)
		}
		return nil
	})
	for round := range 20 {
		before := b.chain(fmt.Sprint("r", round))
		want := before.append("repair").Sequence
		ch, stop := b.runs()
		seen, newest := false, uint64(0)
		note := func(e runlog.Entry) {
			seen = seen || e.Run == before.run && e.Sequence == want
			if e.Run == c.run {
				newest = max(newest, e.Sequence)
			}
		}
		for {
			s := recv(b, ch, "the end of what is stored")
			if s.caughtUp {
				break
			}
			note(s.entry)
		}
		if !seen {
			b.Errorf("round %d: caught up without the step at %d", round, want)
		}
		if round == 19 {
			over.Store(true)
			recv(b, written, "the end of the busy run")
			b.must(busy())
			for newest < c.newest() {
				s := recv(b, ch, "the newest step")
				if s.caughtUp {
					b.Fatal("caught up twice")
				}
				note(s.entry)
			}
		}
		b.wantErr(stop(), context.Canceled)
	}
}
