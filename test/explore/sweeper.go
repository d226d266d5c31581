package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// sweeperActions appends the results that the pending action of the sweeper, a
// repair.Recovery, can have. A sweep that has nothing to recover is no action: it
// changes nothing.
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
	// The ack floor is read after the view. What happens between the two makes the
	// view that of a stale replica.
	first := len(into)
	into = s.reads(action{do: sweepView}, m.floor, into)
	kept := into[:first]
	for _, a := range into[first:] {
		if _, recovers := m.recovery(s, a.arg).action.(repair.Append); recovers {
			kept = append(kept, a)
		}
	}
	return kept
}

func (m *Model) sweep(s *state, a action) error {
	w := &s.sweeper
	if a.do == sweepTimer {
		m.setTimer(s, s.at(s.record(s.newest())).body)
		return nil
	}
	if a.do == sweepView {
		m.pend(s, w, m.recovery(s, a.arg), s.record(a.arg))
		return nil
	}
	f := flight{item: noItem, body: w.body, fence: w.fence, version: w.version}
	*w = worker{}
	var result repair.Event = repair.Conflict{}
	switch {
	case a.arg == unknown:
		s.flights = append(s.flights, f)
		result = repair.Failure{}
	case a.arg == abandoned: // it died: no result
		return nil
	case m.fits(s, f):
		result = repair.Done{}
	}
	if _, end := (repair.Recovery{State: repair.RecoveryAppending}).Next(result); !repair.Final(end) {
		return errImpossible
	}
	if _, stored := result.(repair.Done); !stored {
		return nil
	}
	if m.Mutation == "" {
		return errors.New("a sweep commits a step again that a worker has")
	}
	return m.take(s, f)
}

// overdue reports whether two sweeps find the park overdue: it has outlasted its
// timer, which has fired, and all items are taken in.
func (m *Model) overdue(s *state) bool {
	b := m.all[s.at(s.record(s.newest())).body]
	if !m.Timers || !b.overdue || s.item(s.newest()) > b.cursor {
		return false
	}
	id := repair.TimerItem(b.step.GetSnapshot().GetParkVersion()).GetId()
	return !slices.ContainsFunc(s.senders, func(c sender) bool { return m.items[c.item].GetId() == id && c.at != finished })
}

// outlasts reports whether sweeps find a step to park overdue once its time is
// long over.
func outlasts(step *harnessv1.Step) bool {
	var before, now repair.Listing
	e := runlog.Entry{Run: theRun, Sequence: 1, Record: &harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}}}
	for _, l := range []*repair.Listing{&before, &now} {
		l.Add(e, noon.Add(1000*time.Hour), 0)
	}
	return len(now.Since(before).Overdue) > 0
}

// recovery is what a repair.Recovery does after a view of a replica that has the
// stream up to u, and the ack floor.
func (m *Model) recovery(s *state, u seq) decision {
	at := m.stepAt(s, u)
	done := m.acknowledged(s)
	return m.remembered(fmt.Sprintf("sweep %d %d %v", s.at(at).body, s.at(s.record(u)).body, at <= done), func() decision {
		r, a := repair.Recovery{}.Next(repair.ViewRead{View: m.view(s, u)})
		if _, ok := a.(repair.ReadAckFloor); ok {
			_, a = r.Next(repair.Newest{Sequence: uint64(done)})
		}
		if _, ok := a.(repair.ReadNewest); ok {
			a = repair.Finish{} // the leader has the successor of what was acknowledged
		}
		d := decision{action: a}
		if a, ok := a.(repair.Append); ok {
			d.body = m.step(a.Record.GetStep(), a.Record.GetAppended(), a.Record.GetEvents())
		}
		return d
	})
}

// acknowledged is the ack floor of repair's consumer. Steps to the rest of the loop
// are acknowledged in the moment when a newer one is stored.
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
