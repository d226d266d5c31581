package sim

import (
	"fmt"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// treeState is the state of a run as a part of a tree.
type treeState struct {
	name   string            // of the run, as the model knows it
	parent *harnessv1.Parent // nil for a root
	// turns counts the turns that began, used the tokens of their responses.
	turns, used uint64
	// allowed is the sum of the token budgets of the segments that have ended, budget the largest of this one.
	allowed, budget uint64
	segment         uint32
	// free: a client, not the parent, has the run work.
	free bool
	// ended is true once the run has ended, also if it has continued since.
	ended bool
}

// treeInvariants returns what holds for runs that delegate.
func (w *World) treeInvariants() []Invariant {
	return []Invariant{
		{Name: "tree", Stored: w.recordTree},
		{Name: "one run for each call", Stored: w.oneRun},
		{Name: "nothing works below a run that has stopped", Stored: w.stopped},
		{Name: "a result follows the end of its child", Stored: w.resultOfEnded},
		{Name: "a tree keeps its budget", Stored: w.withinBudget},
		{Name: "each report arrives", Final: reportsArrived},
		{Name: "a child does what its parent wants", Final: wantsDone},
		{Name: "no orphan", Final: noOrphan},
	}
}

// name returns the name of the run, as the model knows it.
func (l *Log) name() string {
	if l.state.tree.name == "" {
		return l.Run.ID
	}
	return l.state.tree.name
}

// parent returns the log of a run's parent; nil for a root, and if the parent is deleted.
func (w *World) parent(l *Log) *Log {
	p := l.state.tree.parent
	if p == nil {
		return nil
	}
	return w.store.incarnation(runlog.Run{Namespace: l.Run.Namespace, ID: p.GetRunId()}, p.GetFirstSequence())
}

// incarnation returns the log of a run with a first record; nil if it is deleted.
func (s *store) incarnation(run runlog.Run, first uint64) *Log {
	l := s.runs[run]
	if l == nil || len(l.records) == 0 || l.state.expired || snapshotOf(l).GetFirstSequence() != first {
		return nil
	}
	return l
}

// snapshotOf returns the newest snapshot of a run; nil if there is none.
func snapshotOf(l *Log) *harnessv1.Snapshot {
	if l == nil {
		return nil
	}
	return l.state.step.Record.GetStep().GetSnapshot()
}

// recordTree updates the states that the other invariants read.
func (w *World) recordTree(l *Log, e runlog.Entry) string {
	t := &l.state.tree
	if trigger := e.Record.GetStep().GetRepairTrigger(); e.Header.Version == 1 {
		*t = treeState{parent: trigger.GetParent()}
		_, _ = fmt.Sscanf(trigger.GetSpec().GetGoal().GetInline(), "%s", &t.name)
	}
	j := e.Record.GetJournal()
	if j.GetTurnStarted() != nil {
		t.turns++
	}
	t.used += runstate.TotalTokens(j.GetModelResponded().GetUsage())
	if s := e.Record.GetStep().GetSnapshot(); s != nil {
		if s.GetSegment() != t.segment {
			t.allowed, t.budget, t.segment = t.allowed+t.budget, 0, s.GetSegment()
		}
		t.budget = max(t.budget, s.GetConfig().GetBudgets().GetTokens())
		t.ended = t.ended || e.Record.GetStep().GetTo() == runlog.End
	}
	for _, ev := range e.Record.GetEvents() {
		if kind := ev.GetInputAccepted().GetKind(); t.parent != nil && t.ended && (kind == "resume" || kind == "user_message") {
			t.free = true
		}
	}
	return ""
}

// oneRun: a call starts one run, whichever id it has. The prompts of calls are unique.
func (w *World) oneRun(l *Log, e runlog.Entry) string {
	t := l.state.tree
	if e.Header.Version != 1 || t.parent == nil {
		return ""
	}
	for _, other := range w.store.order {
		if o := other.state.tree; other != l && o.parent != nil && o.name == t.name &&
			o.parent.GetRunId() == t.parent.GetRunId() && o.parent.GetFirstSequence() == t.parent.GetFirstSequence() {
			return fmt.Sprintf("the call that %s works for starts a second run", other.Run)
		}
	}
	return ""
}

// stopped: a run is interrupted, cancelled or ended only once everything below it is, and nothing below it
// begins a turn then.
func (w *World) stopped(l *Log, e runlog.Entry) string {
	if e.Record.GetJournal().GetTurnStarted() != nil && l.state.tree.parent != nil && !l.state.tree.free {
		p := w.parent(l)
		s := snapshotOf(p)
		switch {
		case p == nil:
		case rest(s):
			return fmt.Sprintf("a turn begins, and the parent %s is %v", p.Run, s.GetStopReason().GetKind())
		case !slices.ContainsFunc(tree.Wanted(s), func(c *harnessv1.Child) bool { return c.GetRunId() == l.Run.ID }):
			return fmt.Sprintf("a turn begins, and no call of the parent %s waits for it", p.Run)
		}
	}
	s := e.Record.GetStep().GetSnapshot()
	if !runlog.IsRest(e.Record.GetStep().GetTo()) || !rest(s) || runstate.Expired(s) {
		return ""
	}
	for _, c := range s.GetChildren() {
		child := w.store.runs[runlog.Run{Namespace: l.Run.Namespace, ID: c.GetRunId()}]
		if child == nil || child.state.tree.turns == 0 || child.state.tree.free || len(child.records) == 0 {
			continue
		}
		if newest := child.Newest().Record; works(newest) {
			return fmt.Sprintf("it stops (%s), and %s below it works: %s", s.GetStopReason().GetKind(), child.Run, sketch(newest))
		}
	}
	return ""
}

// works reports whether a run works by its newest record. One that only takes an input in, or ends, does not.
func works(rec *harnessv1.Record) bool {
	step := rec.GetStep()
	switch {
	case step == nil, step.GetFrom() == workflow.Turn, step.GetTo() == workflow.Turn, step.GetTo() == workflow.Compaction:
		return true
	default:
		return step.GetFrom() == workflow.StopDecision && step.GetTo() == workflow.Repair && !step.GetSnapshot().GetParent().GetHalted()
	}
}

// rest reports whether a run is interrupted or has ended.
func rest(s *harnessv1.Snapshot) bool {
	return runstate.Ended(s) || s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && s.GetStopReason().GetKind() == "interrupted"
}

// unstopped returns what keeps a run from its stop; empty if it does not stop.
func unstopped(s *harnessv1.Snapshot) string {
	if s.GetStopping() == nil {
		return ""
	}
	return "waits until everything below it has stopped"
}

// resultOfEnded: the result of a call is there only once its child has ended.
func (w *World) resultOfEnded(l *Log, e runlog.Entry) string {
	for _, ev := range e.Record.GetEvents() {
		end := ev.GetAgentEnded()
		if end == nil {
			continue
		}
		child := w.store.runs[runlog.Run{Namespace: l.Run.Namespace, ID: end.GetRunId()}]
		if child != nil && len(child.records) > 0 && child.state.tree.turns > 0 && !child.state.tree.ended && !child.deleted() {
			return fmt.Sprintf("it has the result of %s, which has not ended", child.Run)
		}
	}
	return ""
}

// withinBudget: the runs of a tree use up what its root may, and those at work at most a turn each more.
func (w *World) withinBudget(l *Log, e runlog.Entry) string {
	if e.Record.GetJournal().GetModelResponded() == nil {
		return ""
	}
	root := l
	for root.state.tree.parent != nil {
		if root = w.parent(root); root == nil {
			return ""
		}
	}
	used, atWork := w.usedBelow(root)
	if root.state.tree.budget == 0 {
		return ""
	}
	if allowed := root.state.tree.allowed + root.state.tree.budget; used > allowed+atWork*treeTurn {
		return fmt.Sprintf("the tree of %s has used %d tokens, and may use %d and a turn for each of %d runs", root.Run, used, allowed, atWork)
	}
	return ""
}

// usedBelow returns the usage of the runs of a tree, without those that clients continued, and the number of those at work:
// that have not ended, or whose end an ancestor does not know.
func (w *World) usedBelow(root *Log) (used, atWork uint64) {
	for _, l := range w.store.order {
		at, works := l, false
		for at != nil && at != root && !at.state.tree.free {
			p := w.parent(at)
			c := tree.FindRun(snapshotOf(p), at.Run.ID)
			works = works || c == nil || !tree.Ended(c)
			at = p
		}
		if at != root {
			continue
		}
		used += l.state.tree.used
		if works || l == root {
			atWork++
		}
	}
	return used, atWork
}

// children calls f for each run with a parent that is there, with the parent's record of it.
func (w *World) children(f func(l *Log, parent *Log, c *harnessv1.Child) string) string {
	for _, l := range w.store.order {
		if l.state.tree.parent == nil || len(l.records) == 0 || l.state.expired {
			continue
		}
		p := w.parent(l)
		if wrong := f(l, p, tree.FindRun(snapshotOf(p), l.Run.ID)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// reportsArrived: the parent of each run knows its newest park or end.
func reportsArrived(w *World) string {
	return w.children(func(l, parent *Log, c *harnessv1.Child) string {
		if c == nil || l.lives > 0 || c.GetReport().GetVersion() == l.state.step.Header.Version {
			return ""
		}
		return fmt.Sprintf("%s has version %d, and its parent %s knows version %d", l.Run, l.state.step.Header.Version, parent.Run, c.GetReport().GetVersion())
	})
}

// wantsDone: each run follows the newest order of its parent.
func wantsDone(w *World) string {
	return w.children(func(l, parent *Log, c *harnessv1.Child) string {
		s := snapshotOf(l)
		if c == nil || runstate.Ended(s) || l.state.tree.free {
			return ""
		}
		if halted := c.GetWant() == harnessv1.ChildWant_CHILD_WANT_HALT; s.GetParent().GetHalted() != halted ||
			c.GetWant() == harnessv1.ChildWant_CHILD_WANT_END {
			return fmt.Sprintf("%s has taken order %d, halted %v, and its parent %s wants %v by order %d",
				l.Run, s.GetParent().GetOrder(), s.GetParent().GetHalted(), parent.Run, c.GetWant(), c.GetOrder())
		}
		return ""
	})
}

// noOrphan: each run below another is known to it, ends with it and is deleted with it.
func noOrphan(w *World) string {
	return w.children(func(l, parent *Log, c *harnessv1.Child) string {
		switch ended := runstate.Ended(snapshotOf(l)); {
		case parent == nil && w.store.runs[runlog.Run{Namespace: l.Run.Namespace, ID: l.state.tree.parent.GetRunId()}].deleted():
			return fmt.Sprintf("%s is there, and its parent is deleted", l.Run)
		case ended:
			return ""
		case c == nil:
			return fmt.Sprintf("%s works for no call of %s", l.Run, l.state.tree.parent.GetRunId())
		case runstate.Ended(snapshotOf(parent)) && !l.state.tree.free:
			return fmt.Sprintf("%s has not ended, and its parent has", l.Run)
		}
		return ""
	})
}
