package sim

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// settleTime is how long all runs have to be parked or ended before the final checks:
// long enough for a watcher to read what its feed has dropped.
const settleTime = 30 * time.Second

// mostFaults bounds the simulated time with faults.
const mostFaults = time.Hour

// mostSteps bounds the interactions after the faults. More of them indicate an endless
// loop.
const mostSteps = 15_000

// simulate carries out one interaction after another until all runs are parked or
// ended.
func (w *World) simulate() {
	for w.violation == nil {
		synctest.Wait()
		now := time.Now()
		if !now.Equal(w.looked) {
			w.looked = now
			w.overdue(now)
		}
		w.bury()
		synctest.Wait() // for goroutines that these have resumed
		w.list(now)
		if !w.healing && (w.steps >= w.cfg.Steps || now.Sub(w.began) >= mostFaults || len(w.choices) == 0 && w.unfinished() == "") {
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

// finished reports whether the simulation is over, and runs the final checks.
func (w *World) finished(now time.Time) bool {
	why := w.unfinished()
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
		w.broken("runs park or end", fmt.Sprintf("%v after the last fault: %s", w.cfg.Healing, why))
	}
	if w.steps > w.cfg.Steps+mostSteps {
		w.broken("runs park or end", fmt.Sprintf("%d interactions after the last fault: %s", mostSteps, why))
	}
	return false
}

// heal ends the faults.
func (w *World) heal(now time.Time) {
	w.mu.Lock()
	w.healing = true
	w.mu.Unlock()
	w.healedAt = now
	w.record(event{kind: onFault, note: "the faults are over"})
	for _, p := range w.procs {
		p.cut = time.Time{}
		w.revive(p)
	}
	w.healModel()
	w.healHosts()
}

// overdue handles timers, deadlines and alarms that are due.
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
		w.recordOp(o, timedOut)
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

// bury handles processes that have ended by themselves, and removes interactions that
// no goroutine waits for.
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
			w.record(event{who: p.Instance, kind: onFault, note: note})
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

// pass lets time pass until something is due, for at most the given time.
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
	case <-w.arrived: // for an interaction that is listed already
	default:
	}
	timer := time.NewTimer(until.Sub(now))
	defer timer.Stop()
	select {
	case <-w.arrived:
	case <-timer.C:
	}
}

// slow lets some time pass while interactions are pending.
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
