package sim

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// unfinished returns what keeps the simulation from ending; empty if nothing does.
func (w *World) unfinished() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		if !c.done && !c.watches {
			return "client " + c.name + " is not done"
		}
	}
	for _, o := range w.pending {
		if o.write {
			return fmt.Sprintf("%s has not been answered: %s %s", o.p.Instance, o.key.kind, o.note)
		}
	}
	if len(w.flights) > 0 {
		return "a write is in flight"
	}
	for _, l := range w.store.order {
		if why := w.unfinishedRun(l); why != "" {
			return why
		}
	}
	for _, c := range w.consumers {
		for _, h := range c.held {
			if !c.served || h.message != nil && h.message.gone {
				continue
			}
			return fmt.Sprintf("sequence %d is not acknowledged to %q", h.sequence, c.name)
		}
	}
	for _, t := range w.timers {
		if !t.fired && w.due(w.store.runs[t.run], t) {
			return fmt.Sprintf("the timer of version %d of %s has not fired", t.version, t.run)
		}
	}
	return ""
}

// acked checks an acknowledgement: a step may be acknowledged only once a newer step of
// its run is stored, a job only once its result is.
func (w *World) acked(c *control) {
	m := c.d.h.message
	if m != nil && m.job != nil && !c.completed && w.executors {
		w.broken("a job is acknowledged once its result is stored",
			fmt.Sprintf("%s acknowledged job %s of %s, which has no result", c.d.l.p.Instance, m.job.GetKey(), m.log.Run))
	}
	if m == nil || m.record() == nil || c.d.l.consumer.name == wakes || m.gone {
		return
	}
	if c.step <= m.sequence && w.executors {
		w.broken("a step is acknowledged once a newer one is stored",
			fmt.Sprintf("%s acknowledged sequence %d of %s, the newest step", c.d.l.p.Instance, m.sequence, m.log.Run))
	}
}

// unfinishedRun returns why a run is neither parked nor ended; empty if it is.
func (w *World) unfinishedRun(l *Log) string {
	n := len(l.records)
	if n == 0 {
		return ""
	}
	if l.state.expired {
		return fmt.Sprintf("%s was deleted, and version %d of it is still there", l.Run, l.Newest().Header.Version)
	}
	step := l.records[n-1].record().GetStep()
	if !runlog.IsRest(step.GetTo()) {
		return fmt.Sprintf("%s is at version %d: %s", l.Run, l.Newest().Header.Version, sketch(l.records[n-1].record()))
	}
	if i := len(l.items); i > 0 && l.items[i-1].sequence > step.GetSnapshot().GetInboxCursor() {
		return fmt.Sprintf("input %s of %s was not taken in", l.items[i-1].item.GetId(), l.Run)
	}
	if step.GetTo() == runlog.End {
		return ""
	}
	if why := unstopped(step.GetSnapshot()); why != "" {
		return l.Run.String() + " " + why
	}
	if step.GetSnapshot().GetStopReason().GetKind() == "interrupted" {
		return ""
	}
	if awaited := runstate.AwaitedCalls(step.GetSnapshot()); len(awaited) > 0 {
		if at := runstate.FirstDeadline(step.GetSnapshot()); at != nil && at.AsTime().Before(w.healedAt.Add(w.cfg.Healing/2)) {
			return fmt.Sprintf("a call of %s waits for an answer until %v", l.Run, at.AsTime().Sub(w.began))
		}
		return ""
	}
	switch kind := step.GetSnapshot().GetStopReason().GetKind(); {
	case strings.HasPrefix(kind, "budget_exceeded:"):
		return ""
	case kind == runstate.KindAgent && len(tree.Awaited(step.GetSnapshot())) > 0: // of these each is looked at by itself
		return ""
	default:
		return fmt.Sprintf("%s is parked for %q", l.Run, kind)
	}
}

// due reports whether a timer has to fire before the simulation ends: that of a
// deletion, and one of the newest park that is not later than half the healing. A worker
// that lost the race for the park may have set a later one, for calls that it saw waiting.
func (w *World) due(l *Log, t *timer) bool {
	if l == nil || len(l.records) == 0 {
		return false
	}
	if l.state.expired {
		return true
	}
	s := l.records[len(l.records)-1].record().GetStep().GetSnapshot()
	if s.GetParkVersion() != t.version || s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED {
		return false
	}
	return t.at.Before(w.healedAt.Add(w.cfg.Healing / 2))
}
