package explore

import (
	"errors"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// fits reports whether the stream would take an append in: it is fenced on the newest
// record, or the newest item, as runlog's Append and AppendInbox are.
func (m *Model) fits(s *state, f flight) bool {
	if f.item != noItem {
		return m.Mutation == SendUnfenced || s.item(s.newest()) == f.fence
	}
	return m.Mutation == WakeUnfenced && m.all[f.body].toRepair() || m.Mutation == CommitUnfenced || s.record(s.newest()) == f.fence
}

// blocked reports whether another append after the same message is under way, so that a
// replicated stream refuses this one for now. Append and AppendInbox then settle
// what became of it and try again: it comes to waiting.
func (m *Model) blocked(s *state, f flight) bool {
	if !m.Replicated {
		return false
	}
	for _, other := range s.flights {
		if (other.item == noItem) == (f.item == noItem) && other.fence == f.fence {
			return true
		}
	}
	return false
}

// take stores an append. The rules for the log are checked here: every record passes
// through.
func (m *Model) take(s *state, f flight) error {
	msg := message{item: f.item, prev: f.fence, status: pending}
	if f.item != noItem {
		s.stream = append(s.stream, msg)
		return m.checkItem(s)
	}
	msg.body, msg.version = f.body, f.version
	if b := m.all[f.body]; !b.rest && !b.toRepair() {
		msg.status = untracked
	}
	before := s.record(s.newest())
	s.stream = append(s.stream, msg)
	return m.checkRecord(s, before)
}

// checkItem: nothing is in the inbox twice, as long as repair remembers its id.
func (m *Model) checkItem(s *state) error {
	if m.TwiceStored || m.fires(s.at(s.newest()).item) {
		return nil
	}
	id := m.items[s.at(s.newest()).item].GetId()
	for n := seq(1); n < s.newest(); n++ {
		if item := s.at(n).item; item != noItem && m.items[item].GetId() == id {
			return fmt.Errorf("item %s is stored twice, at %d and %d", id, n, s.newest())
		}
	}
	return nil
}

// checkRecord checks the newest record against the one before it, 0 for none.
func (m *Model) checkRecord(s *state, before seq) error {
	n := s.newest()
	msg, b := s.at(n), m.all[s.at(n).body]
	s.asked |= b.asked
	if before == 0 {
		s.happened |= b.effects
		return nil
	}
	if old := s.at(before); msg.version != old.version+1 || msg.prev != before {
		return fmt.Errorf("the log is not gap-free: version %d with the link %d follows version %d at %d", msg.version, msg.prev, old.version, before)
	}
	if b.twice != "" {
		return fmt.Errorf("twice in one record: %s", b.twice)
	}
	if again := s.happened & b.effects &^ m.often; again != 0 {
		return fmt.Errorf("twice in a run: %s", m.effectNames(again)[0])
	}
	s.happened |= b.effects
	for _, item := range m.items {
		both := m.effect(acceptanceOf(item.GetId())) | m.effect(rejectionOf(item.GetId()))
		if s.happened&both == both && item.GetTimerFired() == nil {
			return fmt.Errorf("item %s was both accepted and rejected", item.GetId())
		}
	}
	if b.step == nil {
		return nil
	}
	former := m.all[s.at(m.stepAt(s, before)).body]
	if b.cursor < former.cursor {
		return fmt.Errorf("the cursor goes back from %d to %d", former.cursor, b.cursor)
	}
	if former.cause == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE && b.step.GetFrom() == repair.Name && !b.toRepair() && b.cursor == former.cursor {
		return fmt.Errorf("a wake takes in nothing: the cursor stays at %d", b.cursor)
	}
	if err := runstate.CheckPhases(former.step.GetSnapshot(), b.step); err != nil {
		return fmt.Errorf("a step that its predecessor does not lead to: %w", err)
	}
	return nil
}

// deliveries appends the deliveries that can happen. Consumers deliver in any order:
// a message that was put back may follow new ones.
func (m *Model) deliveries(s *state, into []action) []action {
	for n := m.fixed + 1; n <= s.newest(); n++ {
		msg := s.at(n)
		switch {
		case msg.status != pending:
		case msg.item == noItem && !m.all[msg.body].rest:
			if i := unoccupied(s.repairers); i >= 0 {
				into = m.stepDeliveries(s, n, uint8(i), into)
			}
		default:
			if i := unoccupied(s.wakers); i >= 0 {
				into = m.wakeDeliveries(s, n, uint8(i), into)
			}
		}
	}
	return into
}

func (m *Model) wakeDeliveries(s *state, n seq, who uint8, into []action) []action {
	if m.Fine || m.Mutation == ParksNotDelivered {
		return append(into, action{do: deliverWake, who: who, message: n})
	}
	return s.reads(action{do: wakeTake, who: who, message: n}, m.wakeFrom(n), into)
}

func (m *Model) stepDeliveries(s *state, n seq, who uint8, into []action) []action {
	again := s.at(n).again
	switch {
	case m.Fine:
		into = append(into, action{do: deliverStep, who: who, message: n})
	case again:
		into = s.reads(action{do: stepTake, who: who, message: n}, n, into)
	default:
		into = s.reads(action{do: stepTake, who: who, message: n}, m.observeFrom(s, n), into)
	}
	if again && s.left.Crashes > 0 { // of the server, which forgets what it has delivered
		into = append(into, action{do: deliverStep, who: who, message: n, cost: crash})
	}
	return into
}

// unoccupied is a worker that has nothing to do; -1 when all have.
func unoccupied(workers []worker) int {
	for i, w := range workers {
		if w.at == idle {
			return i
		}
	}
	return -1
}

func (m *Model) deliver(s *state, a action) error {
	msg := s.at(a.message)
	w := worker{message: a.message, owns: true}
	if a.do == deliverWake || a.do == wakeTake {
		if m.Mutation == ParksNotDelivered && msg.item == noItem {
			msg.status = acked
			return nil
		}
		w.at = viewing
		msg.status = held
		if m.Mutation == AckFirst {
			msg.status = acked
		}
		s.wakers[a.who] = w
		return nil
	}
	// executor.loop.handle: a redelivery reads first.
	w.at = observing
	if msg.again && a.cost != crash {
		w.at = checking
	}
	msg.status, msg.again = held, true
	s.repairers[a.who] = w
	return nil
}

// release lets a delivery go that was not acknowledged: it will be repeated, unless
// it is another worker's by now. It stands for Nak, for silence until AckWait is
// over, and for the death of the worker.
func (s *state) release(w *worker) {
	if msg := s.at(w.message); w.owns && msg.status == held {
		msg.status = pending
	}
	*w = worker{}
}

// lapse repeats a delivery while its worker still works on it.
func (s *state) lapse(w *worker) {
	s.at(w.message).status = pending
	w.owns = false
}

// ack acknowledges a message. The server does not check which worker has it.
func (s *state) ack(w *worker, how seq) {
	if how == answered {
		msg := s.at(w.message)
		msg.status, msg.again = acked, false
	}
	s.release(w)
}

// ackAtOnce acknowledges where that is part of the action before it.
func (m *Model) ackImmediately(s *state, w *worker) {
	if m.whole(s) {
		s.ack(w, answered)
	}
}

// goOn is what follows on an append that was stored.
func (m *Model) proceed(s *state, w *worker, how seq) {
	switch how {
	case thenDies, thenUnacked:
		s.release(w)
	default:
		m.ackImmediately(s, w)
	}
}

// appendings appends the ways in which an append may go.
func (m *Model) appendings(s *state, a action, f flight, into []action) []action {
	a.arg = answered
	into = append(into, a)
	if s.left.Lost > 0 {
		a.arg, a.cost = unknown, lost
		into = append(into, a)
	}
	if !m.whole(s) || !m.fits(s, f) {
		return into
	}
	if s.left.Lost > 0 {
		a.arg, a.cost = thenUnacked, lost
		into = append(into, a)
	}
	if s.left.Crashes > 0 {
		a.arg, a.cost = thenDies, crash
		into = append(into, a)
	}
	return into
}

// common appends what may happen to every worker that has a delivery.
func (s *state) common(w worker, crashes, lapses action, into []action) []action {
	if s.left.Crashes > 0 {
		crashes.cost = crash
		into = append(into, crashes)
	}
	if s.left.Lapses > 0 && w.owns && s.at(w.message).status == held {
		lapses.cost = lapse
		into = append(into, lapses)
	}
	return into
}

var errImpossible = errors.New("the model has no such action here")
