package sim

import (
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// cutOff disconnects one process from the bus for some seconds.
func (w *World) cutOff(now time.Time) {
	p := w.procs[w.random.IntN(len(w.procs))]
	if !p.onBus(now) {
		return
	}
	span := time.Duration(1+w.random.IntN(20)) * time.Second
	p.cut = now.Add(span)
	w.record(event{who: p.Instance, kind: onFault, note: fmt.Sprintf("is cut off for %v", span)})
}

// stopOne ends one process in an orderly way.
func (w *World) stopOne() {
	p := w.procs[w.random.IntN(len(w.procs))]
	if !p.alive() || p.stopping {
		return
	}
	w.record(event{who: p.Instance, kind: onFault, note: "receives a stop request"})
	w.stop(p)
}

// restartServer makes the server forget its deliveries: everything unacknowledged is
// delivered as if for the first time. Feeds are interrupted and timers that fired may
// fire again.
func (w *World) restartServer() {
	w.record(event{kind: onFault, note: "the server of the bus restarts"})
	for _, c := range w.consumers {
		for _, h := range c.held {
			h.out, h.count, h.due = false, 0, time.Time{}
		}
	}
	for _, p := range w.procs {
		for _, f := range p.feeds {
			f.broken = true
		}
	}
	for _, t := range w.timers {
		if t.fired && w.random.IntN(2) == 0 {
			w.come(t)
		}
	}
}

func (w *World) record(e event) { w.trace.add(e) }

func (w *World) recordOp(o *op, fate fate) { w.recordOpAs(o, o.key.kind, fate) }

func (w *World) recordOpAs(o *op, kind kind, fate fate) {
	w.trace.add(event{who: o.p.Instance, kind: kind, run: o.key.run, text: o.key.text, a: o.key.a, b: o.key.b, fate: fate, note: o.note})
}

// stored is called for every stored message.
func (w *World) stored(m *message) {
	w.enqueue(m)
	w.mu.Lock()
	w.published(m)
	w.mu.Unlock()
	w.checkStored(m)
}

// describe returns a message as text.
func describe(m *message) string {
	if m.item != nil {
		return fmt.Sprintf("input %s", m.item.GetId())
	}
	if m.job != nil {
		return fmt.Sprintf("job %s for %s", m.job.GetKey(), m.job.GetPurpose())
	}
	return sketch(m.record())
}

// sketch returns a record as text.
func sketch(rec *harnessv1.Record) string {
	if s := rec.GetStep(); s != nil {
		return "step to " + s.GetTo()
	}
	switch j := rec.GetJournal().GetEntry().(type) {
	case *harnessv1.Journal_TurnStarted:
		return fmt.Sprintf("turn %d claimed, attempt %d", j.TurnStarted.GetTurnNumber(), j.TurnStarted.GetAttempt())
	case *harnessv1.Journal_ModelRetried:
		return "model failed"
	case *harnessv1.Journal_ModelResponded:
		return "model answered"
	case *harnessv1.Journal_ToolsStarted:
		return "tools started"
	case *harnessv1.Journal_ToolFinished:
		return "tool finished: " + j.ToolFinished.GetCallId()
	case *harnessv1.Journal_ExecutorFailed:
		return "executor failed: " + j.ExecutorFailed.GetError()
	}
	return "journal"
}
