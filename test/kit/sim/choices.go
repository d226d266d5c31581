package sim

import (
	"slices"
	"time"
)

// choice is one of the things that can happen next.
type choice struct {
	key      key
	o        *op
	flight   *flight
	consumer *consumer
	held     *assignment
	to       []*listener
	do       func()
}

// busIndex is the process index of keys without a process.
const busIndex = 1 << 20

// list lists everything that can happen next, in an order that does not depend on the
// order of goroutines.
func (w *World) list(now time.Time) {
	w.choices = w.choices[:0]
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.pending {
		if o.left || o.bus() && now.Before(o.p.cut) || w.keptOut(o) || o.waitsFor > uint64(len(w.store.all)) || o.ready != nil && !o.ready() {
			continue
		}
		w.choices = append(w.choices, choice{key: o.key, o: o})
	}
	for _, f := range w.flights {
		if !f.proposed && w.keptOut(f.o) {
			continue
		}
		k := f.o.key
		k.kind, k.n = onLand, uint64(f.since.UnixNano())
		w.choices = append(w.choices, choice{key: k, flight: f})
	}
	for _, c := range w.consumers {
		var to []*listener
		looked := false
		for _, h := range c.held {
			if !h.ready(now) || h.message != nil && h.message.gone {
				continue
			}
			if !looked {
				looked, to = true, w.listeners(c, now)
			}
			if len(to) > 0 {
				w.choices = append(w.choices, choice{key: key{proc: busIndex, kind: onDeliver, run: c.name, a: h.sequence}, consumer: c, held: h, to: to})
			}
		}
	}
	for _, p := range w.procs {
		w.listOf(p, now)
	}
	w.listHosts()
	w.listModel()
	slices.SortFunc(w.choices, func(a, b choice) int { return a.key.compare(b.key) })
}

// bus reports whether an interaction requires that the process is on the bus.
func (o *op) bus() bool {
	return o.key.kind != onModel && o.key.kind != onAnswer && o.key.kind != onCall && o.key.kind != onResume
}

// keptOut reports whether an append has to wait for one in flight with a fence of the
// same spelling.
func (w *World) keptOut(o *op) bool {
	if o.fence == "" {
		return false
	}
	for _, f := range w.flights {
		if f.proposed && f.o.fence == o.fence {
			return true
		}
	}
	return false
}

// listeners returns the listeners that can take messages of c now.
func (w *World) listeners(c *consumer, now time.Time) []*listener {
	var to []*listener
	for _, p := range w.procs {
		if !p.onBus(now) || p.stopping {
			continue
		}
		for _, l := range p.listeners {
			if l.consumer == c && !l.gone && l.busy < l.room {
				to = append(to, l)
			}
		}
	}
	return to
}

// listOf lists the interactions in flight to or from one process.
func (w *World) listOf(p *Process, now time.Time) {
	for i, c := range p.controls {
		if now.Before(p.cut) || !p.first(i) {
			continue
		}
		w.choices = append(w.choices, choice{
			key: key{proc: p.index, kind: onControl, run: c.d.l.consumer.name, text: c.d.l.p.Instance,
				a: c.d.h.sequence, b: uint64(c.d.count)<<8 + uint64(c.nth)},
			do: func() { w.arrive(p, i) },
		})
	}
	if !p.onBus(now) {
		return
	}
	for _, f := range p.feeds {
		if len(f.queue) > 0 || f.broken {
			w.choices = append(w.choices, choice{key: key{proc: p.index, kind: onFeed, run: f.run.ID, a: f.nth}, do: func() { w.feedOne(p, f) }})
		}
	}
	for _, f := range p.follows {
		if len(f.queue) > 0 && len(f.next) == 0 {
			w.choices = append(w.choices, choice{key: key{proc: p.index, kind: onFollow, a: f.nth}, do: func() { w.followOn(p, f) }})
		}
	}
	for _, d := range p.deltas {
		if len(d.queue) > 0 {
			w.choices = append(w.choices, choice{key: key{proc: p.index, kind: onDelta, run: d.run.ID, a: d.nth}, do: func() { w.deltasOn(p, d) }})
		}
	}
	for _, k := range p.pokes {
		if len(k.queue) > 0 {
			w.choices = append(w.choices, choice{key: key{proc: p.index, kind: onPoke, run: k.queue[0].ID, a: k.nth}, do: func() { w.pokeOne(p, k) }})
		}
	}
	for _, e := range p.jobEnds {
		if len(e.queue) > 0 {
			w.choices = append(w.choices, choice{key: key{proc: p.index, kind: onJobEnd, run: e.queue[0].run.ID, a: e.nth}, do: func() { w.reportEnd(p, e) }})
		}
	}
}

// first reports whether a control is the first one of its delivery.
func (p *Process) first(i int) bool {
	for _, c := range p.controls[:i] {
		if c.d == p.controls[i].d {
			return false
		}
	}
	return true
}

// feedOne delivers the next record of a feed.
func (w *World) feedOne(p *Process, f *feed) {
	if f.broken {
		f.broken = false
		w.record(event{who: p.Instance, kind: onFeed, run: f.run.ID, note: "interrupted"})
		go f.handle(nil)
		return
	}
	w.mu.Lock()
	e := f.queue[0]
	f.queue = f.queue[1:]
	w.mu.Unlock()
	fate := through
	switch {
	case w.chance(w.cfg.Rates.LostFeed):
		fate = wentLost
	case w.chance(w.cfg.Rates.DoubledFeed):
		fate = cameTwice
		f.queue = append(f.queue, e)
	}
	w.record(event{who: p.Instance, kind: onFeed, run: f.run.ID, a: e.Sequence, fate: fate})
	if fate != wentLost {
		go f.handle(&e)
	}
}

func (w *World) followOn(p *Process, f *follow) {
	w.mu.Lock()
	entries := f.queue
	f.queue = nil
	w.mu.Unlock()
	w.record(event{who: p.Instance, kind: onFollow, a: entries[0].Sequence, b: entries[len(entries)-1].Sequence})
	f.next <- entries
}

func (w *World) deltasOn(p *Process, d *deltas) {
	w.mu.Lock()
	queue := d.queue
	d.queue = nil
	w.mu.Unlock()
	kept := queue[:0]
	for _, one := range queue {
		if !w.chance(w.cfg.Rates.LostDelta) {
			kept = append(kept, one)
		}
	}
	w.record(event{who: p.Instance, kind: onDelta, run: d.run.ID, a: uint64(len(kept))})
	go func() {
		for _, one := range kept {
			d.handle(one)
		}
	}()
}

func (w *World) pokeOne(p *Process, k *pokeFeed) {
	w.mu.Lock()
	run := k.queue[0]
	k.queue = k.queue[1:]
	w.mu.Unlock()
	fate := through
	if w.chance(w.cfg.Rates.LostPoke) {
		fate = wentLost
	}
	w.record(event{who: p.Instance, kind: onPoke, run: run.ID, fate: fate})
	if fate == through {
		go k.handle(run)
	}
}
