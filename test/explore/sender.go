package explore

import (
	"cmp"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/services/gateway"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// senderActions appends what a sender may do. It stands for gatewayserver.Server's
// give and store around input.Admit, with AppendInbox of the run log, and for a
// client that sends again; for a timer, for repairserver.Server.fired.
func (m *Model) senderActions(s *state, who uint8, into []action) []action {
	c := s.senders[who]
	switch c.at {
	case idle:
		return s.reads(action{do: sendStart, who: who}, m.floor, into)
	case finished:
		switch {
		case !m.retries(s, c):
		case m.fires(c.item): // its acknowledgement is lost, or a bus that was restarted fires it again
			into = append(into, action{do: fireTimer, who: who, cost: lost})
		default:
			into = s.reads(action{do: sendStart, who: who}, m.floor, into)
		}
		return into
	case confirming:
		into = append(into, action{do: sendConfirm, who: who})
	case seeking:
		if m.separate() {
			into = s.reads(action{do: sendSeek, who: who}, m.floor, into)
			break
		}
		c.fence = s.item(s.newest())
		fallthrough
	case publishing:
		if m.blocked(s, flight{item: c.item, fence: c.fence}) {
			if s.left.Lost > 0 {
				into = append(into, action{do: sendPublish, who: who, arg: abandoned, cost: lost})
			}
			break
		}
		into = append(into, action{do: sendPublish, who: who, arg: answered})
		if s.left.Lost > 0 {
			into = append(into, action{do: sendPublish, who: who, arg: unknown, cost: lost}, action{do: sendPublish, who: who, arg: retried, cost: lost})
		}
		if s.left.Crashes > 0 {
			into = append(into, action{do: sendPublish, who: who, arg: thenDies, cost: crash})
		}
	case comparing:
		into = append(into, action{do: sendCompare, who: who})
	}
	if s.left.Crashes > 0 {
		into = append(into, action{do: sendCrash, who: who, cost: crash})
	}
	return into
}

// retries reports whether a sender that has an answer, or a timer that was handed on, may
// begin another attempt.
func (m *Model) retries(s *state, c sender) bool {
	switch {
	case m.fires(c.item):
		return c.answer != timerIsStale && s.left.Lost > 0
	case c.answer == unavailable:
		return c.tries < cmp.Or(m.Tries, 2)
	}
	return c.tries <= c.again
}

func (m *Model) send(s *state, c *sender, a action) error {
	switch a.do {
	case sendStart:
		if m.fires(c.item) {
			*c = sender{at: seeking, item: c.item, due: c.due, next: c.next, fired: true}
			s.clock = max(s.clock, c.due)
			return m.fired(s, c, a.arg)
		}
		*c = sender{at: seeking, item: c.item, again: c.again, tries: c.tries + 1, told: c.told}
		return m.give(s, c, a.arg)
	case sendConfirm:
		seen := c.fence
		c.fence = 0
		if seen == s.newest() {
			return m.refuse(s, c, m.admission(s, c.item, seen).answer)
		}
		return m.give(s, c, s.newest())
	case sendSeek:
		c.fence = s.item(a.arg)
		c.at = publishing
		if same := m.same(s, c.item, c.after, c.fence); same != 0 {
			return m.continueStored(s, c, same, true)
		}
	case sendPublish:
		if c.at == seeking {
			c.fence = s.item(s.newest())
			if same := m.same(s, c.item, c.after, c.fence); same != 0 {
				return m.continueStored(s, c, same, true)
			}
		}
		f := flight{item: c.item, fence: c.fence}
		switch {
		case a.arg == abandoned:
			return m.finish(s, c, unavailable)
		case a.arg == unknown:
			s.flights = append(s.flights, f)
			return m.finish(s, c, unavailable)
		case a.arg == retried:
			s.flights = append(s.flights, f)
			c.at, c.fence = seeking, 0
		case m.fits(s, f):
			if err := m.take(s, f); err != nil {
				return err
			}
			if a.arg == thenDies {
				return m.finish(s, c, unavailable)
			}
			return m.continueStored(s, c, s.newest(), false)
		default: // another sender was first, or its own append arrived: search again
			c.at, c.fence = seeking, 0
		}
	case sendCompare:
		return m.compare(s, c)
	case sendCrash:
		return m.finish(s, c, unavailable)
	case fireTimer:
		*c = sender{item: c.item, due: c.due, fired: true}
	default:
		return errImpossible
	}
	return nil
}

// separate reports whether a sender searches for its item in one action and appends it in another.
// As what it appends is fenced on what it has seen, whatever comes between makes it read
// again.
func (m *Model) separate() bool { return m.Fine || m.Mutation == SendUnfenced }

// continueStored continues with an item that is in the inbox, because it was appended or
// found.
func (m *Model) continueStored(s *state, c *sender, at seq, found bool) error {
	c.at, c.fence, c.stored, c.found = comparing, 0, at, found
	got := stored
	if found {
		got = existed
	}
	if m.fires(c.item) || m.Mutation == SecondUnchecked || found && m.Mutation == FoundUnchecked {
		return m.finish(s, c, got)
	}
	_, a := m.storing(c).Next(gateway.InputStored{Sequence: uint64(at), Existed: found})
	switch a := a.(type) {
	case gateway.Reply:
		return m.finish(s, c, replied(a).answer)
	case gateway.ReadInputs:
		if m.separate() {
			return nil
		}
		return m.compare(s, c)
	}
	return errImpossible
}

// judge feeds the inbox up to the sender's own item, which no longer changes, to its
// submission.
func (m *Model) compare(s *state, c *sender) error {
	submission := m.storing(c)
	submission.RunState = m.runAt(s, c.by, m.items[c.item])
	submission, _ = submission.Next(gateway.InputStored{Sequence: uint64(c.stored), Existed: c.found})
	var items []*harnessv1.InboxItem
	for _, n := range m.inbox(s, c.after, c.stored, 0) {
		items = append(items, m.stored(s, n))
	}
	_, a := submission.Next(gateway.InputsRead{Items: items})
	reply, ok := a.(gateway.Reply)
	if !ok {
		return errImpossible
	}
	d := replied(reply)
	if d.err != nil {
		return d.err
	}
	return m.finish(s, c, d.answer)
}

// storing returns the submission of a sender that appends its item.
func (m *Model) storing(c *sender) gateway.Submission {
	return gateway.Submission{State: gateway.SubmissionStoring, Item: m.items[c.item], RunState: input.State{Step: &harnessv1.Step{}}}
}

// same is the item with the same id in (after, upTo], as AppendInbox finds it; 0 for
// none.
func (m *Model) same(s *state, item itemID, after, upTo seq) seq {
	if m.Mutation == SendWithoutRead {
		return 0
	}
	for _, n := range m.inbox(s, after, upTo, 0) {
		if m.items[s.at(n).item].GetId() == m.items[item].GetId() {
			return n
		}
	}
	return 0
}

func (m *Model) fires(item itemID) bool { return m.items[item].GetTimerFired() != nil }

// fired is what a repair.Timer does after a view of a replica that has the stream
// up to u.
func (m *Model) fired(s *state, c *sender, u seq) error {
	view, park := m.view(s, u), m.items[c.item].GetTimerFired().GetParkVersion()
	_, a := repair.Timer{ParkVersion: park}.Next(repair.ViewRead{View: view})
	switch a := a.(type) {
	case repair.Finish:
		return m.finish(s, c, timerIsStale)
	case repair.AppendItem:
		c.after = seq(a.After)
		if m.Mutation == TimersFoundEarlier {
			c.after = seq(view.Step.Header.InboxCursor)
		}
		return nil
	}
	return errImpossible
}

// give continues a submission after it has read the run at a replica that has the
// stream up to u, until the append.
func (m *Model) give(s *state, c *sender, u seq) error {
	d := m.admission(s, c.item, u)
	switch {
	case d.err != nil:
		return d.err
	case d.answer == stored:
		c.at, c.after = seeking, m.all[s.at(m.stepAt(s, u)).body].cursor
		if callOf(m.items[c.item]) != "" {
			c.by = s.record(u)
		}
		return nil
	case !d.confirms:
		return m.finish(s, c, d.answer)
	case m.Mutation == RefusalsUnchecked:
		return m.refuse(s, c, d.answer)
	case m.Fine:
		c.at, c.fence = confirming, u
		return nil
	case u < s.newest():
		return m.give(s, c, s.newest())
	}
	return m.refuse(s, c, d.answer)
}

// refuse ends an attempt with nothing stored.
func (m *Model) refuse(s *state, c *sender, got answer) error {
	if err := m.finish(s, c, got); err != nil {
		return err
	}
	return m.checkRefusal(s, c, got)
}

// finish is the end of an attempt.
func (m *Model) finish(s *state, c *sender, got answer) error {
	if m.fires(c.item) {
		switch {
		case got == unavailable: // it is delivered again
			*c = sender{item: c.item, due: c.due, next: c.next, fired: true}
			return nil
		case c.next != 0:
			*c = sender{item: c.item, due: c.next}
			return nil
		case got == stored:
			got = timerIsStored
		case got == existed:
			got = timerWasStored
		}
	}
	before := c.told
	*c = sender{at: finished, item: c.item, again: c.again, due: c.due, fired: c.fired, tries: c.tries, answer: got, told: before || got == stored || got == existed}
	return m.checkAnswer(s, c, before)
}
