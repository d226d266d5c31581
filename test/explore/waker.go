package explore

import (
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// wakerActions appends the results that the pending action of a wake worker, a
// repair.Wake, can have.
func (m *Model) wakerActions(s *state, who uint8, into []action) []action {
	w := s.wakers[who]
	switch w.at {
	case idle:
		return into
	case viewing:
		into = s.reads(action{do: wakeView, who: who}, m.wakeFrom(w.message), into)
	case appending:
		if m.blocked(s, flight{item: noItem, fence: w.fence}) {
			if m.Mutation == AckOnConflict {
				into = append(into, action{do: wakeAppend, who: who, arg: answered})
			}
			if s.left.Lost > 0 {
				into = append(into, action{do: wakeAppend, who: who, arg: abandoned, cost: lost})
			}
			break
		}
		into = m.appendings(s, action{do: wakeAppend, who: who}, flight{item: noItem, body: w.body, fence: w.fence}, into)
	case acking:
		into = append(into, action{do: wakeAck, who: who, arg: answered})
		if s.left.Lost > 0 {
			into = append(into, action{do: wakeAck, who: who, arg: unknown, cost: lost})
		}
	}
	return s.common(w, action{do: wakeCrash, who: who}, action{do: wakeLapse, who: who}, into)
}

// wakeFrom returns the message that the view of a wake worker with message n must
// contain.
func (m *Model) wakeFrom(n seq) seq {
	if m.Mutation == WakeUnvalidated {
		return m.floor
	}
	return n
}

func (m *Model) wake(s *state, w *worker, a action) error {
	switch a.do {
	case wakeTake:
		if err := m.deliver(s, a); err != nil {
			return err
		}
		a.do = wakeView
		return m.wake(s, w, a)
	case wakeView:
		d := m.wakeViewed(s, a.arg)
		newest := s.record(a.arg)
		m.pend(s, w, d, newest)
		if w.at == acking {
			m.ackImmediately(s, w)
		}
	case wakeAppend:
		f := flight{item: noItem, body: w.body, fence: w.fence, version: w.version}
		var result repair.Event = repair.Conflict{}
		switch {
		case a.arg == unknown: // the append may still arrive
			s.flights = append(s.flights, f)
			result = repair.Failure{}
		case a.arg == abandoned:
			result = repair.Failure{}
		case m.fits(s, f) && !m.blocked(s, f):
			result = repair.Done{}
		}
		m.pend(s, w, decision{action: m.wakeNext(repair.WakeAppending, result)}, 0)
		if _, stored := result.(repair.Done); stored {
			m.proceed(s, w, a.arg)
			return m.take(s, f)
		}
	case wakeAck:
		if m.Mutation == AckFirst {
			a.arg = unknown // it is acknowledged already
		}
		s.ack(w, a.arg)
	case wakeCrash:
		s.release(w)
	case wakeLapse:
		s.lapse(w)
	default:
		return errImpossible
	}
	return nil
}

// wakeNext returns the action of a repair.Wake that follows a result, as far as it
// does not depend on the view.
func (m *Model) wakeNext(state repair.WakeState, result repair.Event) repair.Action {
	if _, fenced := result.(repair.Conflict); fenced && (m.Mutation == AckOnConflict || m.Mutation == AckResolved) {
		return repair.Ack{}
	}
	_, a := repair.Wake{State: state}.Next(result)
	return a
}

// pend makes the action of a decision the pending one of a worker. An append is
// fenced on the record at fence.
func (m *Model) pend(s *state, w *worker, d decision, fence seq) {
	next := worker{message: w.message, owns: w.owns}
	switch d.action.(type) {
	case repair.ReadView:
		next.at = viewing
	case repair.Append:
		next.at, next.body, next.fence, next.version = appending, d.body, fence, s.at(fence).version+1
	case repair.Ack:
		next.at = acking
	default: // put back
		s.release(w)
		return
	}
	*w = next
}

// wakeViewed is what a repair.Wake does after a view of a replica that has the
// stream up to u. Every run is attended.
func (m *Model) wakeViewed(s *state, u seq) decision {
	newest := s.record(u)
	key := wakeKey{s.at(newest).body, newest, s.item(u)}
	d, known := m.wakes[key]
	if known {
		return d
	}
	w, a := repair.Wake{}.Next(repair.ViewRead{View: m.view(s, u)})
	if _, ok := a.(repair.CheckAttendance); ok {
		_, a = w.Next(repair.Attendance{Yes: true})
	}
	d.action = a
	if a, ok := a.(repair.Append); ok {
		d.body = m.step(a.Record.GetStep(), nil, nil)
	}
	m.wakes[key] = d
	return d
}

// wakeKey is what the decision of a repair.Wake depends on.
type wakeKey struct {
	body         bodyID // of the newest record
	newest, item seq
}
