package sim

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Observer checks what one watcher of a run receives, over all its streams. One client
// at a time may use it.
type Observer struct {
	w   *World
	run runlog.Run
	// Last is the version up to which everything was received, to continue after.
	Last uint64
	// part is the number of received events of version at, if some are missing.
	at   uint64
	part int
	// The position of the received text in the turns.
	turn, attempt, try uint32
	offset             uint64
	fresh              bool
	// Awaited contains the announced calls that wait for an answer, in order.
	Awaited []pendingCall
	// Agents contains the runs of the sub-agents that were started, in order.
	Agents []string
	// Result is the newest result.
	Result *harnessv1.HarnessResult
}

// pendingCall is a call that a client has to answer.
type pendingCall struct {
	// ID of the call; Kind is approval, client_tool or question.
	ID, Kind string
}

// deleted reports whether the run is deleted: nothing more is sent.
func (o *Observer) deleted() bool {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	l := o.w.store.runs[o.run]
	return l != nil && l.deleted()
}

// Observe returns an observer of a run from its start.
func (w *World) Observe(run runlog.Run) *Observer {
	o := &Observer{w: w, run: run}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observers = append(w.observers, o)
	return o
}

// Attach starts another stream, after version Last.
func (o *Observer) Attach() {
	o.fresh = true
	o.at, o.part = 0, 0
	o.turn, o.attempt, o.try, o.offset = 0, 0, 0, 0
}

// Receive checks the next update that a watcher receives.
func (o *Observer) Receive(u *harnessv1.RunUpdate) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if wrong := o.check(u); wrong != "" && !o.w.ended {
		o.w.broken("watchers see all", fmt.Sprintf("%s: %s", o.run, wrong))
	}
}

func (o *Observer) check(u *harnessv1.RunUpdate) string {
	switch b := u.GetUpdate().(type) {
	case *harnessv1.RunUpdate_Attached:
		if !o.fresh {
			return "attached twice"
		}
		o.fresh = false
	case *harnessv1.RunUpdate_Event:
		return o.event(b.Event)
	case *harnessv1.RunUpdate_Delta:
		return o.delta(b.Delta)
	case *harnessv1.RunUpdate_Result:
		o.Result = b.Result
	}
	return ""
}

// event checks that an event is the next one.
func (o *Observer) event(ev *harnessv1.Event) string {
	if o.fresh {
		return "an event before attached"
	}
	l := o.w.store.runs[o.run]
	if l == nil {
		return "an event of a run that is not stored"
	}
	version := ev.GetVersion()
	if l.deleted() {
		return "" // some of its records are deleted
	}
	if version != o.at {
		if o.at != 0 && o.part < len(o.recordAt(l, o.at).GetEvents()) {
			return fmt.Sprintf("version %d comes before all events of version %d", version, o.at)
		}
		after := max(o.Last, o.at)
		if version <= after {
			return fmt.Sprintf("version %d comes after version %d", version, after)
		}
		for v := after + 1; v < version; v++ {
			if len(o.recordAt(l, v).GetEvents()) > 0 {
				return fmt.Sprintf("version %d comes, version %d is missing", version, v)
			}
		}
		o.at, o.part = version, 0
	}
	rec := o.recordAt(l, version)
	if want := fmt.Sprintf("%d-%d", version, o.part); ev.GetId() != want {
		return fmt.Sprintf("got event %s, expected %s", ev.GetId(), want)
	}
	o.part++
	if o.part == len(rec.GetEvents()) {
		o.Last = version
	}
	switch b := ev.GetEvent().(type) {
	case *harnessv1.Event_ToolCall:
		if kind := b.ToolCall.GetAwaits(); kind != "" {
			o.Awaited = append(o.Awaited, pendingCall{ID: b.ToolCall.GetCallId(), Kind: kind})
		}
	case *harnessv1.Event_AgentStarted:
		o.Agents = append(o.Agents, b.AgentStarted.GetRunId())
	case *harnessv1.Event_ApprovalAnswered: // a call of a client's tool waits for the client now
		if b.ApprovalAnswered.GetTool() == "fax" && b.ApprovalAnswered.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
			o.Awaited = append(o.Awaited, pendingCall{ID: b.ApprovalAnswered.GetCallId(), Kind: runstate.KindClientTool})
		}
	case *harnessv1.Event_StepStart: // an interrupted turn without a response is claimed again under its number
		o.turn, o.attempt, o.try, o.offset = ev.GetTurnNumber(), b.StepStart.GetAttempt(), 0, 0
	case *harnessv1.Event_ModelResponse:
		o.turn, o.attempt, o.try, o.offset = ev.GetTurnNumber()+1, 0, 0, 0
	}
	return ""
}

// recordAt returns the record with a version; nil if it is not stored.
func (o *Observer) recordAt(l *Log, version uint64) *harnessv1.Record {
	if len(l.records) == 0 {
		return nil
	}
	first := l.records[0].entry.Header.Version
	if version < first || version >= first+uint64(len(l.records)) {
		return nil
	}
	return l.records[version-first].record()
}

// delta checks that text is in order, each byte once, and not after its response.
func (o *Observer) delta(d *harnessv1.Delta) string {
	type place struct{ turn, attempt, try uint32 }
	now, was := place{d.GetTurnNumber(), d.GetAttempt(), d.GetTry()}, place{o.turn, o.attempt, o.try}
	switch {
	case now == was:
	case now.turn < was.turn, now.turn == was.turn && now.attempt < was.attempt,
		now.turn == was.turn && now.attempt == was.attempt && now.try < was.try:
		return fmt.Sprintf("text of %v comes after that of %v", now, was)
	default:
		o.turn, o.attempt, o.try, o.offset = now.turn, now.attempt, now.try, 0
	}
	if d.GetAlert() != nil {
		return "" // it comes also after a loss
	}
	if d.GetOffset() != o.offset {
		return fmt.Sprintf("got text of %v at offset %d, expected %d", now, d.GetOffset(), o.offset)
	}
	o.offset += uint64(len(d.GetText()))
	return ""
}

// watchersSaw checks that every watcher has received everything.
func watchersSaw(w *World) string {
	for _, o := range w.observers {
		l := w.store.runs[o.run]
		if l == nil || l.deleted() {
			continue
		}
		for _, m := range l.records {
			if v := m.entry.Header.Version; v > max(o.Last, o.at) && len(m.record().GetEvents()) > 0 {
				return fmt.Sprintf("a watcher of %s has received everything up to version %d, but not version %d", o.run, o.Last, v)
			}
		}
	}
	return ""
}

// Acknowledged records that an input was accepted: it must have exactly one effect or
// one refusal. Clients may call it.
func (w *World) Acknowledged(run runlog.Run, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = append(w.accepted, acceptedInput{run, id})
}

type acceptedInput struct {
	run runlog.Run
	id  string
}

// inputsTaken checks that every acknowledged input was taken in.
func inputsTaken(w *World) string {
	for _, g := range w.accepted {
		l := w.store.runs[g.run]
		if l == nil {
			return fmt.Sprintf("run %s was acknowledged and is not stored", g.run)
		}
		if g.id != "" && l.state.settled[g.id] != 1 && !l.deleted() {
			return fmt.Sprintf("input %s of %s was acknowledged and taken in %d times", g.id, g.run, l.state.settled[g.id])
		}
	}
	return ""
}
