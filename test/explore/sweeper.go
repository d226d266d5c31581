package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/services/repair"
)

// sweeperActions appends what the sweeper may do. It stands for
// repairserver.Server.sweepRun, which looks, asks how far the consumer has come, decides
// and appends. A sweep that comes to nothing is no action: it changes nothing.
func (m *Model) sweeperActions(s *state, into []action) []action {
	if !m.Sweeps {
		return into
	}
	if w := s.sweeper; w.at == appending {
		if !m.blocked(s, flight{item: noItem, fence: w.fence}) {
			into = append(into, action{do: sweepAppend, arg: answered})
			if s.left.Lost > 0 {
				into = append(into, action{do: sweepAppend, arg: unknown, cost: lost})
			}
		}
		if s.left.Crashes > 0 {
			into = append(into, action{do: sweepAppend, arg: abandoned, cost: crash})
		}
		return into
	}
	if m.overdue(s) {
		into = append(into, action{do: sweepTimer})
	}
	// The question how far the consumer is comes later than the look. What may have
	// happened between them makes the look one at a replica that is behind.
	first := len(into)
	into = s.looks(action{do: sweepLook}, m.floor, into)
	kept := into[:first]
	for _, a := range into[first:] {
		if m.sweep(s, a.arg).body >= 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

func (m *Model) sweeps(s *state, a action) error {
	w := &s.sweeper
	if a.do == sweepTimer {
		m.setTimer(s, s.at(s.record(s.newest())).body)
		return nil
	}
	if a.do == sweepLook {
		newest := s.record(a.arg)
		*w = worker{at: appending, body: m.sweep(s, a.arg).body, fence: newest, version: s.at(newest).version + 1}
		return nil
	}
	f := flight{item: noItem, body: w.body, fence: w.fence, version: w.version}
	*w = worker{}
	switch {
	case a.arg == unknown:
		s.flights = append(s.flights, f)
	case a.arg == answered && m.fits(s, f):
		if m.Mutation == "" {
			return errors.New("a sweep hands a step over again that somebody has")
		}
		return m.take(s, f)
	}
	return nil
}

// overdue says that the run is parked until a timer fires that fired long ago: it was
// parked so at the sweep before, and all that came in since is taken in.
func (m *Model) overdue(s *state) bool {
	b := m.all[s.at(s.record(s.newest())).body]
	if !m.Timers || b.step.GetParked().GetWakeAt() == nil || s.item(s.newest()) > b.cursor {
		return false
	}
	id := timer(b.step.GetSnapshot().GetParkVersion()).GetId()
	return !slices.ContainsFunc(s.senders, func(c sender) bool { return m.items[c.item].GetId() == id && c.at != finished })
}

// sweep is repair.Sweep on the view of a replica that has the stream up to u.
func (m *Model) sweep(s *state, u seq) decision {
	at := m.stepAt(s, u)
	done := m.acknowledged(s)
	return m.remembered(fmt.Sprintf("sweep %d %d %v", s.at(at).body, s.at(s.record(u)).body, at <= done), func() decision {
		rec := repair.Sweep(m.view(s, u), repair.Consumer{Exists: true, AckFloor: uint64(done)})
		if rec == nil {
			return decision{body: -1}
		}
		return decision{body: m.step(rec.GetStep(), rec.GetAppended(), rec.GetEvents())}
	})
}

// acknowledged is the sequence up to which all steps to repair are acknowledged. Those
// to the rest of the loop are, at the moment when a newer one is stored.
func (m *Model) acknowledged(s *state) seq {
	var done seq
	for n := seq(1); n < s.newest()+1; n++ {
		if msg := s.at(n); msg.item == noItem && m.all[msg.body].toRepair() {
			if msg.status != acked {
				break
			}
			done = n
		}
	}
	return done
}
