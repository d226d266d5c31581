package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// WithLog runs f in a bubble of package synctest with the log of a process on a bus
// without faults. The seed decides the order of concurrent interactions. The
// invariants of records hold, those of executors are not checked, and the
// simulation lasts until f and its cleanups have ended.
func WithLog(t *testing.T, cfg Config, f func(t *testing.T, log runlog.Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Rates = Rates{}
		w := newWorld(cfg.withDefaults())
		w.invariants, w.executors = busInvariants(), false
		p := &Process{Name: "process", Instance: "process.1", world: w}
		p.ctx, p.cancel = context.WithCancel(context.Background())
		w.procs = append(w.procs, p)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			w.runUntil(stop)
		}()
		t.Cleanup(func() {
			close(stop)
			w.mu.Lock()
			w.signal()
			w.mu.Unlock()
			<-stopped
			w.final()
			w.end()
			if v := w.violation; v != nil {
				t.Errorf("%s: %s", v.Invariant, v.Message)
			}
		})
		f(t, p.Log())
	})
}

// runUntil lets one interaction take place after another until stop is closed.
func (w *World) runUntil(stop <-chan struct{}) {
	for {
		synctest.Wait()
		select {
		case <-stop:
			return
		default:
		}
		now := time.Now()
		w.overdue(now)
		w.bury()
		synctest.Wait()
		w.list(now)
		if len(w.choices) == 0 {
			w.pass(time.Hour)
			continue
		}
		w.steps++
		w.act(w.choices[w.random.IntN(len(w.choices))])
	}
}
