package explore

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// noon is when everything begins. Time passes only when a timer fires:
// nothing else asks for it.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (s *state) now() time.Time { return noon.Add(time.Duration(s.clock) * time.Hour) }

// decision is what a decision came to.
type decision struct {
	body   bodyID
	action repair.Action // of a machine; body is what it appends
	err    error
}

// repairerActions appends what a worker of the executor repair may do. It stands for
// executor.loop.handle around repair.Decide, with repairserver.Server.observe.
func (m *Model) repairerActions(s *state, who uint8, into []action) []action {
	w := s.repairers[who]
	switch w.at {
	case idle:
		return into
	case checking:
		into = s.reads(action{do: stepCheck, who: who}, w.message, into)
	case observing:
		into = s.reads(action{do: stepObserve, who: who}, m.observeFrom(s, w.message), into)
	case committing:
		if m.blocked(s, flight{item: noItem, fence: w.fence}) {
			if s.left.Lost > 0 {
				into = append(into, action{do: stepCommit, who: who, arg: abandoned, cost: lost})
			}
			break
		}
		into = m.appendings(s, action{do: stepCommit, who: who}, flight{item: noItem, body: w.body, fence: w.fence}, into)
		if s.left.Crashes > 0 && m.setsTimer(w.body, w.version) {
			into = append(into, action{do: stepCommit, who: who, arg: timerOnly, cost: crash})
		}
	case acking:
		into = append(into, action{do: stepAck, who: who, arg: answered})
		if s.left.Lost > 0 {
			into = append(into, action{do: stepAck, who: who, arg: unknown, cost: lost})
		}
	}
	return s.common(w, action{do: stepCrash, who: who}, action{do: stepLapse, who: who}, into)
}

// observeFrom returns the message that the read of the inbox must contain for the worker
// with trigger n. Any replica may answer if the trigger is no wake.
func (m *Model) observeFrom(s *state, n seq) seq {
	if m.all[s.at(n).body].reads && m.Mutation != DrainUnvalidated {
		return n
	}
	return m.floor
}

func (m *Model) repair(s *state, w *worker, a action) error {
	switch a.do {
	case stepTake:
		if err := m.deliver(s, a); err != nil {
			return err
		}
		a.do = stepObserve
		if w.at == checking {
			a.do = stepCheck
		}
		return m.repair(s, w, a)
	case stepCheck:
		w.at = observing
		if m.stepAt(s, a.arg) > w.message {
			w.at = acking // done before
			m.ackImmediately(s, w)
		}
	case stepObserve:
		d := m.repairDecision(s, w.message, s.item(a.arg))
		if d.err != nil {
			return d.err
		}
		w.at, w.body, w.fence, w.version = committing, d.body, w.message, s.at(w.message).version+1
	case stepCommit:
		f := flight{item: noItem, body: w.body, fence: w.fence, version: w.version}
		if m.setsTimer(f.body, f.version) {
			m.setTimer(s, f.body) // before the commit, whatever comes of it
		}
		switch {
		case a.arg == abandoned, a.arg == timerOnly:
			s.release(w)
		case a.arg == unknown: // ErrUnavailable
			s.flights = append(s.flights, f)
			if m.Mutation == AckPutBack {
				s.ack(w, answered)
				return nil
			}
			s.release(w)
		case m.fits(s, f):
			*w = worker{at: acking, message: w.message, owns: w.owns}
			m.proceed(s, w, a.arg)
			return m.take(s, f)
		default: // ErrFenced: it falls silent, and the step comes again
			s.release(w)
		}
	case stepAck:
		if m.stepAt(s, s.newest()) <= w.message {
			return errors.New("a step is acknowledged and no newer one is stored")
		}
		s.ack(w, a.arg)
	case stepCrash:
		s.release(w)
	case stepLapse:
		s.lapse(w)
	default:
		return errImpossible
	}
	return nil
}

// repairDecision is repair.Decide on the trigger at n, when last is the newest item
// that the worker sees: repairserver.Server.inbox.
func (m *Model) repairDecision(s *state, n, last seq) decision {
	trigger := m.all[s.at(n).body]
	var items []seq
	cursor := trigger.cursor
	if last > cursor {
		items = m.inbox(s, cursor, last, m.Batch)
		cursor = items[len(items)-1]
	}
	key := fmt.Sprintf("repair %d %d %d %d", s.at(n).body, n, cursor, s.clock)
	for _, i := range items {
		key += fmt.Sprintf(" %d:%d:%d", i, s.at(i).item, s.at(i).prev)
	}
	if d, known := m.made[key]; known {
		return d
	}
	batch, err := m.readInbox(s, n, last)
	if err != nil {
		return decision{err: err}
	}
	observed := []*harnessv1.Observation{
		{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: batch}},
		{Key: repair.NeedEnvironment, Value: &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{}}},
	}
	d := m.decide(repair.Decide, s, n, observed)
	m.made[key] = d
	return d
}

// readInbox drives repair.InboxRead for the trigger at n, when last is the newest
// item that the replica has.
func (m *Model) readInbox(s *state, n, last seq) (*harnessv1.InboxBatch, error) {
	end := repair.Run(repair.InboxRead{Trigger: m.entry(s, n)}, func(a repair.Action) repair.Event {
		switch a := a.(type) {
		case repair.ReadView:
			return repair.ViewRead{View: runlog.View{InboxSequence: uint64(last)}}
		case repair.ReadLastItem:
			return repair.Newest{Sequence: uint64(last)}
		case repair.ReadItems:
			var items []*harnessv1.InboxItem
			for _, i := range m.inbox(s, seq(a.After), seq(a.UpTo), m.Batch) {
				items = append(items, m.stored(s, i))
			}
			return repair.Items{Items: items}
		}
		return repair.Failure{Err: errImpossible}
	})
	if end, ok := end.(repair.Observe); ok {
		return end.Batch, nil
	}
	return nil, errImpossible
}

// decide makes a pure decision on the step at n, and what executor.Task.commit makes
// of it.
func (m *Model) decide(pure func(*harnessv1.StepInput) (*harnessv1.StepOutput, error), s *state, n seq, observed []*harnessv1.Observation) decision {
	version := s.at(n).version
	out, err := pure(&harnessv1.StepInput{
		Namespace: theRun.Namespace, RunId: theRun.ID, Version: uint64(version), Sequence: uint64(n),
		Now: timestamppb.New(s.now()), Step: m.all[s.at(n).body].step, Observed: observed,
	})
	if err != nil {
		return decision{err: fmt.Errorf("a decision on the step at %d failed: %w", n, err)}
	}
	if out.GetOutcome() == nil {
		return decision{err: fmt.Errorf("a decision on the step at %d needs %v", n, out.GetNeeds().GetKeys())}
	}
	return m.outcome(m.mutate(s, n, proto.CloneOf(out.GetOutcome())), version+1)
}

// outcome notes what is committed as version.
func (m *Model) outcome(o *harnessv1.Outcome, version uint8) decision {
	step := o.GetStep()
	if step.GetTo() == runlog.Park && step.GetSnapshot().GetParkVersion() == 0 {
		step.Snapshot.ParkVersion = uint64(version)
	}
	return decision{body: m.step(step, o.GetAppended(), o.GetEvents())}
}

// mutate applies the mutation to an outcome of repair.
func (m *Model) mutate(s *state, n seq, o *harnessv1.Outcome) *harnessv1.Outcome {
	after := o.GetStep().GetSnapshot()
	switch m.Mutation {
	case DrainedForgotten:
		after.DrainedItems = nil
	case CursorBeforeRefused:
		before := m.all[s.at(n).body]
		for _, i := range m.inbox(s, before.cursor, seq(after.GetInboxCursor()), 0) {
			if id := m.items[s.at(i).item].GetId(); rejects(o, id) {
				after.InboxCursor = uint64(s.at(i).prev)
				break
			}
		}
		after.InboxCursor = max(after.GetInboxCursor(), uint64(before.cursor))
	case AnswersForgotten:
		after.AnsweredCalls, after.AnsweredBy = nil, nil
	case AnswererForgotten:
		after.AnsweredBy = nil
	case TimersRemembered:
		for _, e := range o.GetEvents() {
			if r := e.GetInputRejected(); r.GetKind() == "timer_fired" {
				runstate.RecordDrained(after, r.GetItemId())
			}
		}
	}
	return o
}

func rejects(o *harnessv1.Outcome, id string) bool {
	for _, e := range o.GetEvents() {
		if e.GetInputRejected().GetItemId() == id {
			return true
		}
	}
	return false
}

// setsTimer reports whether a record sets a timer: it begins a park that has a time.
func (m *Model) setsTimer(id bodyID, version uint8) bool {
	step := m.all[id].step
	return m.Timers && step.GetParked().GetWakeAt() != nil && step.GetSnapshot().GetParkVersion() == uint64(version)
}

// setTimer sets the timer of a park; one whose time has passed fires immediately.
func (m *Model) setTimer(s *state, id bodyID) {
	step := m.all[id].step
	item := m.item(repair.TimerItem(step.GetSnapshot().GetParkVersion()))
	due := max(s.clock, uint8(step.GetParked().GetWakeAt().AsTime().Sub(noon)/time.Hour))
	for i, c := range s.senders {
		if c.item != item {
			continue
		}
		switch {
		case c.at == finished: // it fired and was handed on
			s.senders[i] = sender{item: item, due: due}
		case c.fired: // its item is not stored yet
			s.senders[i].next = due
		default:
			s.senders[i].due = due
		}
		return
	}
	s.senders = append(s.senders, sender{item: item, due: due})
}

// awaitedCall reports whether a step's snapshot awaitedCall a call.
func (b *body) awaitedCall(call string) *harnessv1.PendingCall {
	for _, c := range runstate.AwaitedCalls(b.step.GetSnapshot()) {
		if c.GetCallId() == call {
			return c
		}
	}
	return nil
}
