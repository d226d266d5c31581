package explore

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/services/repair"
)

// wakerActions appends what a wake worker may do. It stands for
// repairserver.Server.wake: look, decide, append, acknowledge.
func (m *Model) wakerActions(s *state, who uint8, into []action) []action {
	w := s.wakers[who]
	switch w.at {
	case idle:
		return into
	case looking:
		into = s.looks(action{do: wakeLook, who: who}, m.wakeFrom(w.message), into)
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

// wakeFrom is how far a replica must be for the view of a wake worker with message n.
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
		a.do = wakeLook
		return m.wake(s, w, a)
	case wakeLook:
		d := m.wakeDecision(s, a.arg)
		if d.body < 0 {
			w.at = acking
			m.ackAtOnce(s, w)
			return nil
		}
		newest := s.record(a.arg)
		w.at, w.body, w.fence, w.version = appending, d.body, newest, s.at(newest).version+1
	case wakeAppend:
		f := flight{item: noItem, body: w.body, fence: w.fence, version: w.version}
		switch {
		case a.arg == abandoned:
			s.release(w)
		case a.arg == unknown: // ErrUnavailable: nothing is known, the message is put back
			s.flights = append(s.flights, f)
			s.release(w)
		case m.fits(s, f) && !m.blocked(s, f):
			*w = worker{at: acking, message: w.message, owns: w.owns}
			m.goOn(s, w, a.arg)
			return m.take(s, f)
		case m.Mutation == AckOnConflict, m.Mutation == AckSettled:
			*w = worker{at: acking, message: w.message, owns: w.owns}
		default: // ErrFenced: look again
			*w = worker{at: looking, message: w.message, owns: w.owns}
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

// wakeDecision is repair.Wake on the view of a replica that has the stream up to u;
// its body is negative when there is nothing to do.
func (m *Model) wakeDecision(s *state, u seq) decision {
	newest := s.record(u)
	key := fmt.Sprintf("wake %d %d %d", s.at(newest).body, newest, s.item(u))
	if d, known := m.made[key]; known {
		return d
	}
	d := decision{body: -1}
	if step := repair.Wake(m.view(s, u)); step != nil {
		d.body = m.step(step, nil, nil)
	}
	m.made[key] = d
	return d
}
