package sim

import (
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// timer is a timer of a park.
type timer struct {
	run     runlog.Run
	version uint64
	at      time.Time
	fired   bool
}

// setTimer sets a timer. It moves an existing one, and one that has fired will fire
// again.
func (w *World) setTimer(run runlog.Run, version uint64, at time.Time) {
	for _, t := range w.timers {
		if t.run == run && t.version == version {
			t.at, t.fired = at, false
			return
		}
	}
	w.timers = append(w.timers, &timer{run: run, version: version, at: at})
}

// fire fires the timers that are due.
func (w *World) fire(now time.Time) {
	for _, t := range w.timers {
		if t.fired || now.Before(t.at) {
			continue
		}
		t.fired = true
		w.come(t)
	}
}

func (w *World) come(t *timer) {
	w.timerCount++
	c := w.consumer(timersName)
	c.held = append(c.held, &assignment{sequence: w.timerCount, timer: t})
}

// eraseTimers deletes the timers of a run, including those that fired.
func (w *World) eraseTimers(run runlog.Run) {
	w.timers = slices.DeleteFunc(w.timers, func(t *timer) bool { return t.run == run })
	c := w.consumer(timersName)
	c.held = slices.DeleteFunc(c.held, func(h *assignment) bool { return h.timer.run == run })
}
