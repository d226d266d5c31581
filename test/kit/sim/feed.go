package sim

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// feed is a subscription to the records of a run.
type feed struct {
	run    runlog.Run
	handle func(*runlog.Entry)
	queue  []runlog.Entry
	broken bool // the subscriber will be notified of an interruption
	gone   bool
	nth    uint64
}

// follow is a subscription to all runs.
type follow struct {
	next  chan []runlog.Entry
	queue []runlog.Entry
	gone  bool
	nth   uint64
}

// deltas is a subscription to the model's text.
type deltas struct {
	run    runlog.Run
	handle func(*harnessv1.Delta)
	queue  []*harnessv1.Delta
	gone   bool
	nth    uint64
}

// pokeFeed is a subscription to pokes.
type pokeFeed struct {
	handle func(runlog.Run)
	queue  []runlog.Run
	gone   bool
	nth    uint64
}

func without[T comparable](all []T, one T) []T {
	for i, have := range all {
		if have == one {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}

// Subscribe subscribes to the records of a run.
func (h *handle) Subscribe(ctx context.Context, run runlog.Run, handle func(*runlog.Entry)) (stop func(), err error) {
	p, w := h.p, h.p.world
	f := &feed{run: run, handle: handle}
	o := &op{key: key{kind: onSubscribe, run: run.ID}}
	o.do = func(fate) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.subscribed++
		f.nth = p.subscribed
		p.feeds = append(p.feeds, f)
		return nil
	}
	if err := p.interact(ctx, o); err != nil {
		return nil, err
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f.gone = true
		p.feeds = without(p.feeds, f)
	}, nil
}

// Lost implements runlog.RunFollower: the simulated bus keeps what it has acknowledged.
func (h *handle) Lost() <-chan struct{} { return nil }

// Turned implements runlog.RunFollower: all clocks of the simulation are one.
func (h *handle) Turned() <-chan struct{} { return nil }

// Runs follows the steps that define the state of runs.
func (h *handle) Runs(ctx context.Context, caughtUp func(), handle func(runlog.Entry)) error {
	p, w := h.p, h.p.world
	f := &follow{next: make(chan []runlog.Entry, 1)}
	var stored []runlog.Entry
	o := &op{key: key{kind: onRuns}}
	o.do = func(fate) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.subscribed++
		f.nth = p.subscribed
		stored = w.newestSteps()
		p.follows = append(p.follows, f)
		return nil
	}
	if err := p.interact(ctx, o); err != nil {
		return err
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f.gone = true
		p.follows = without(p.follows, f)
	}()
	for _, e := range stored {
		handle(e)
	}
	if caughtUp != nil {
		caughtUp()
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case entries := <-f.next:
			if entries == nil {
				return unavailable(o, errNoAnswer)
			}
			for _, e := range entries {
				handle(e)
			}
		}
	}
}

// stateStep returns the addressee of a step that defines the state of a run, else "".
func stateStep(rec *harnessv1.Record) string {
	switch to := rec.GetStep().GetTo(); to {
	case workflow.Repair, runlog.Park, runlog.End:
		return to
	}
	return ""
}

// newestSteps returns the newest steps of all runs to each such addressee, in stream
// order.
func (w *World) newestSteps() []runlog.Entry {
	type subject struct {
		run runlog.Run
		to  string
	}
	newest := map[subject]uint64{}
	for _, m := range w.store.all {
		if to := stateStep(m.record()); to != "" && !m.gone {
			newest[subject{m.log.Run, to}] = m.sequence
		}
	}
	var entries []runlog.Entry
	for _, m := range w.store.all {
		if to := stateStep(m.record()); to != "" && newest[subject{m.log.Run, to}] == m.sequence {
			entries = append(entries, m.entry)
		}
	}
	return entries
}

// PublishDelta sends text to the current subscribers.
func (h *handle) PublishDelta(run runlog.Run, delta *harnessv1.Delta) error {
	w := h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.p.dead || w.ended {
		return errNoAnswer
	}
	for _, p := range w.procs {
		for _, d := range p.deltas {
			if d.run == run {
				d.queue = append(d.queue, delta)
			}
		}
	}
	w.signal()
	return nil
}

// SubscribeDeltas subscribes to the text of a run.
func (h *handle) SubscribeDeltas(run runlog.Run, handle func(*harnessv1.Delta)) (stop func(), err error) {
	p, w := h.p, h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	p.subscribed++
	d := &deltas{run: run, handle: handle, nth: p.subscribed}
	p.deltas = append(p.deltas, d)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		d.gone = true
		p.deltas = without(p.deltas, d)
	}, nil
}

// Poke notifies all subscribers.
func (h *handle) Poke(run runlog.Run) error {
	w := h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.p.dead || w.ended {
		return errNoAnswer
	}
	for _, p := range w.procs {
		for _, k := range p.pokes {
			k.queue = append(k.queue, run)
		}
	}
	w.signal()
	return nil
}

// OnPoke subscribes to all pokes.
func (h *handle) OnPoke(handle func(runlog.Run)) (stop func(), err error) {
	p, w := h.p, h.p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	p.subscribed++
	k := &pokeFeed{handle: handle, nth: p.subscribed}
	p.pokes = append(p.pokes, k)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		k.gone = true
		p.pokes = without(p.pokes, k)
	}, nil
}

// published adds a stored record to the feeds; mu is held.
func (w *World) published(m *message) {
	if m.record() == nil {
		return
	}
	for _, p := range w.procs {
		if p.dead {
			continue
		}
		for _, f := range p.feeds {
			if f.run == m.log.Run {
				f.queue = append(f.queue, m.entry)
			}
		}
		if stateStep(m.record()) != "" {
			for _, f := range p.follows {
				f.queue = append(f.queue, m.entry)
			}
		}
	}
}
