package sim

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// settleTime is how long everything has to be at rest before the end is judged: long
// enough for a watcher to notice what its feed has not told it.
const settleTime = 30 * time.Second

// mostFaults bounds the simulated time for which faults go on.
const mostFaults = time.Hour

// mostSteps bounds the interactions after the faults: beyond it something goes
// round in circles.
const mostSteps = 15_000

// simulate lets one interaction take place after another until all is at rest.
func (w *World) simulate() {
	for w.violation == nil {
		synctest.Wait()
		now := time.Now()
		if !now.Equal(w.looked) {
			w.looked = now
			w.overdue(now)
		}
		w.bury()
		synctest.Wait() // for what these have set going
		w.list(now)
		if !w.healing && (w.steps >= w.cfg.Steps || now.Sub(w.began) >= mostFaults || len(w.choices) == 0 && w.rests() == "") {
			w.heal(now)
			continue
		}
		if w.healing && w.finished(now) {
			return
		}
		switch {
		case len(w.choices) == 0:
			w.pass(time.Hour)
			continue
		case w.chance(w.cfg.Rates.TimePasses):
			w.slow()
			continue
		case w.chance(w.cfg.Rates.Cut):
			w.cutOff(now)
			continue
		case w.chance(w.cfg.Rates.ServerRestart):
			w.restartServer()
			continue
		case w.chance(w.cfg.Rates.Stop):
			w.stopOne()
			continue
		}
		w.steps++
		w.act(w.choices[w.random.IntN(len(w.choices))])
	}
}

// finished says whether the end can be judged, and judges it.
func (w *World) finished(now time.Time) bool {
	why := w.rests()
	switch {
	case why != "":
		w.restAt = time.Time{}
	case w.restAt.IsZero():
		w.restAt = now
	case now.Sub(w.restAt) >= settleTime:
		w.healedAt = now
		w.final()
		return true
	}
	if why != "" && now.Sub(w.healedAt) > w.cfg.Healing {
		w.broken("comes to rest", fmt.Sprintf("%v after the last fault: %s", w.cfg.Healing, why))
	}
	if w.steps > w.cfg.Steps+mostSteps {
		w.broken("comes to rest", fmt.Sprintf("%d interactions after the last fault: %s", mostSteps, why))
	}
	return false
}

// heal ends the faults.
func (w *World) heal(now time.Time) {
	w.mu.Lock()
	w.healing = true
	w.mu.Unlock()
	w.healedAt = now
	w.note(event{kind: onFault, note: "the faults are over"})
	for _, p := range w.procs {
		p.cut = time.Time{}
		w.revive(p)
	}
	w.healModel()
	w.healHosts()
}

// overdue does what time has brought.
func (w *World) overdue(now time.Time) {
	w.expire(now)
	w.fire(now)
	w.mu.Lock()
	var late []*op
	var left []*op
	for _, o := range w.pending {
		if !now.Before(o.deadline) {
			late = append(late, o)
		} else {
			left = append(left, o)
		}
	}
	w.pending = left
	w.mu.Unlock()
	slices.SortFunc(late, func(a, b *op) int { return a.key.compare(b.key) })
	for _, o := range late {
		w.noteOp(o, timedOut)
		w.sentOrNot(o)
		w.finish(o, unavailable(o, errNoAnswer))
	}
	for _, f := range w.flights {
		if f.waits && !now.Before(f.o.deadline) {
			f.waits = false
			w.finish(f.o, unavailable(f.o, errNoAnswer))
		}
	}
	for {
		var next *alarm
		for _, a := range w.alarms {
			if !now.Before(a.at) && (next == nil || a.at.Before(next.at)) {
				next = a
			}
		}
		if next == nil {
			return
		}
		w.alarms = without(w.alarms, next)
		next.what()
	}
}

// bury takes processes that have ended by themselves for dead, and takes away what
// nobody waits for.
func (w *World) bury() {
	for _, p := range w.procs {
		w.mu.Lock()
		exited := p.exited && !p.dead
		w.mu.Unlock()
		if exited {
			note := "ends"
			if p.err != nil {
				note += ": " + p.err.Error()
			}
			w.note(event{who: p.Instance, kind: onFault, note: note})
			w.crash(p)
		}
	}
	w.mu.Lock()
	var gone, left []*op
	for _, o := range w.pending {
		if o.left {
			gone = append(gone, o)
		} else {
			left = append(left, o)
		}
	}
	w.pending = left
	w.mu.Unlock()
	slices.SortFunc(gone, func(a, b *op) int { return a.key.compare(b.key) })
	for _, o := range gone {
		w.sentOrNot(o)
	}
}

// pass lets time go on until something comes up, at most for so long.
func (w *World) pass(most time.Duration) {
	synctest.Wait()
	now := time.Now()
	until := now.Add(most)
	earlier := func(t time.Time) {
		if t.After(now) && t.Before(until) {
			until = t
		}
	}
	for _, a := range w.alarms {
		earlier(a.at)
	}
	for _, c := range w.consumers {
		for _, h := range c.held {
			earlier(h.due)
		}
	}
	for _, t := range w.timers {
		if !t.fired {
			earlier(t.at)
		}
	}
	w.mu.Lock()
	for _, o := range w.pending {
		earlier(o.deadline)
	}
	w.mu.Unlock()
	for _, f := range w.flights {
		if f.waits {
			earlier(f.o.deadline)
		}
	}
	for _, p := range w.procs {
		earlier(p.cut)
	}
	if w.healing && !w.restAt.IsZero() {
		earlier(w.restAt.Add(settleTime))
	}
	select {
	case <-w.arrived: // of what is listed already
	default:
	}
	timer := time.NewTimer(until.Sub(now))
	defer timer.Stop()
	select {
	case <-w.arrived:
	case <-timer.C:
	}
}

// slow lets some time pass although something is pending.
func (w *World) slow() {
	spans := [...]time.Duration{time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond, time.Second, w.ackWait / 2, w.ackWait + time.Second, 4 * w.ackWait}
	span := spans[w.random.IntN(len(spans))]
	for end := time.Now().Add(span); w.violation == nil && time.Now().Before(end); {
		w.pass(time.Until(end))
		synctest.Wait()
		if now := time.Now(); !now.Equal(w.looked) {
			w.looked = now
			w.overdue(now)
		}
	}
}
