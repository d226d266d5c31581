package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// CheckTerminal returns what is wrong with a state in which nothing but faults can happen.
func (m *Model) CheckTerminal(s *state) error {
	newest := s.record(s.newest())
	b := m.all[s.at(newest).body]
	if !b.rest {
		return errors.New("stuck: no worker has the run, and it is neither parked nor ended")
	}
	if m.Timers && b.step.GetParked().GetWakeAt() != nil {
		return fmt.Errorf("the run is parked until a timer fires, and timer %d has fired", b.step.GetSnapshot().GetParkVersion())
	}
	if n := s.item(s.newest()); n > b.cursor {
		return fmt.Errorf("lost: the item at %d is beyond the cursor %d of a parked or ended run", n, b.cursor)
	}
	for n := m.fixed + 1; n <= s.newest(); n++ {
		if s.at(n).item != noItem {
			if err := m.checkDrained(s, m.items[s.at(n).item], n); err != nil {
				return err
			}
		}
	}
	for i, c := range s.senders {
		if c.told && !m.inInbox(s, m.items[c.item].GetId()) {
			return fmt.Errorf("sender %d got the reply that its item is stored, and it is not", i+1)
		}
	}
	if len(b.awaited) == 0 && b.step.GetTo() == runlog.Park && b.step.GetSnapshot().GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		return errors.New("the run is parked, awaits no call and is not paused")
	}
	return m.checkCalls(s, newest)
}

// checkDrained: an item that is stored has had one effect or one refusal.
func (m *Model) checkDrained(s *state, item *harnessv1.InboxItem, n seq) error {
	accepted := s.happened&m.effect(acceptanceOf(item.GetId())) != 0
	rejected := s.happened&m.effect(rejectionOf(item.GetId())) != 0
	if !accepted && !rejected {
		return fmt.Errorf("item %s at %d had neither an effect nor a refusal", item.GetId(), n)
	}
	if text := item.GetUserMessage().GetContent(); text != nil {
		if said := s.happened&m.effect(messageOf(content.Text(text))) != 0; said != accepted {
			return fmt.Errorf("item %s: accepted is %v, and its text in the conversation is %v", item.GetId(), accepted, said)
		}
	}
	if a := item.GetApproval(); a != nil && accepted && s.happened&m.effect(decisionOn(a.GetCallId())) == 0 {
		return fmt.Errorf("item %s was accepted and call %s has no decision", item.GetId(), a.GetCallId())
	}
	if a := item.GetToolAnswer(); a != nil && accepted && s.happened&m.effect(resultOf(a.GetCallId())) == 0 {
		return fmt.Errorf("item %s was accepted and call %s has no result", item.GetId(), a.GetCallId())
	}
	return nil
}

// checkCalls: a call that was awaited has its result, or is awaited still by a run
// that is parked for it.
func (m *Model) checkCalls(s *state, newest seq) error {
	now := m.all[s.at(newest).body]
	for i, call := range m.calls {
		switch {
		case s.asked&(1<<i) == 0:
		case s.happened&m.effect(resultOf(call)) != 0:
		case now.pending[call] && now.step.GetTo() == runlog.Park:
		default:
			return fmt.Errorf("call %s has no result and is not awaited", call)
		}
	}
	return nil
}

// inInbox reports whether an item with this id is stored.
func (m *Model) inInbox(s *state, id string) bool {
	return slices.ContainsFunc(s.stream, func(msg message) bool {
		return msg.item != noItem && m.items[msg.item].GetId() == id
	})
}

// checkAnswer checks the reply to a sender at the end of an attempt. before is true if an
// earlier reply was that its item is stored.
func (m *Model) checkAnswer(s *state, c *sender, before bool) error {
	item := m.items[c.item]
	switch c.answer {
	case stored:
		if before {
			return fmt.Errorf("item %s: two replies are that it was stored, and the second not that it existed", item.GetId())
		}
	case existed:
		if !m.inInbox(s, item.GetId()) {
			return fmt.Errorf("item %s: the reply is that it existed, and it does not", item.GetId())
		}
	default:
		return nil
	}
	if first := m.firstAnswer(s, item); first != "" {
		return fmt.Errorf("item %s is the second answer to call %s, after %s, and the reply is OK", item.GetId(), callOf(item), first)
	}
	return nil
}

// firstAnswer is another item in front of item that answers the same call and was not
// refused; empty when there is none.
func (m *Model) firstAnswer(s *state, item *harnessv1.InboxItem) string {
	for _, msg := range s.stream {
		if msg.item == noItem {
			continue
		}
		other := m.items[msg.item]
		if other.GetId() == item.GetId() {
			return ""
		}
		if answersSame(other, item) && s.happened&m.effect(rejectionOf(other.GetId())) == 0 {
			return other.GetId()
		}
	}
	return ""
}

// answersSame reports whether an item answers what another one does. An approval for the rest
// of the run answers all calls that wait for one: here they are of one turn and tool.
func answersSame(a, b *harnessv1.InboxItem) bool {
	if (a.GetApproval() != nil) != (b.GetApproval() != nil) {
		return false
	}
	all := a.GetApproval().GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN
	return callOf(a) != "" && (callOf(a) == callOf(b) || all)
}

// checkRefusal checks an answer with which nothing is stored. It says in its own words
// what behaviour the answers stand for, over all that ever happened and not over what a
// snapshot remembers.
func (m *Model) checkRefusal(s *state, c *sender, got answer) error {
	item := m.items[c.item]
	if m.justified(s, item, got, s.newest()) {
		return nil
	}
	return fmt.Errorf("item %s: the reply is %q, which is wrong for this stream", item.GetId(), got)
}

func (m *Model) justified(s *state, item *harnessv1.InboxItem, got answer, u seq) bool {
	newest := m.all[s.at(s.record(u)).body]
	step := m.all[s.at(m.stepAt(s, u)).body]
	to := ""
	if newest == step && step.rest {
		to = step.step.GetTo()
	}
	var waiting []*harnessv1.InboxItem // not taken in
	for n := step.cursor + 1; n <= u; n++ {
		if s.at(n).item != noItem {
			waiting = append(waiting, m.items[s.at(n).item])
		}
	}
	has := func(is func(*harnessv1.InboxItem) bool) bool { return slices.ContainsFunc(waiting, is) }
	lastIs := func(is func(*harnessv1.InboxItem) bool) bool {
		return len(waiting) > 0 && is(waiting[len(waiting)-1])
	}
	isMessage := func(i *harnessv1.InboxItem) bool { return i.GetUserMessage() != nil }
	isInterrupt := func(i *harnessv1.InboxItem) bool { return i.GetInterrupt() != nil }
	isResume := func(i *harnessv1.InboxItem) bool { return i.GetResume() != nil }
	isCancel := func(i *harnessv1.InboxItem) bool { return i.GetCancel() != nil }
	cancelled := step.step.GetSnapshot().GetStatus() == harnessv1.RunStatus_RUN_STATUS_CANCELLED

	switch {
	case got == runEnded && item.GetResume() != nil:
		return to == runlog.End && !cancelled && !has(isMessage)
	case got == runEnded && item.GetCancel() != nil:
		return to == runlog.End && !has(isMessage) && !has(isResume)
	case got == unneeded && item.GetResume() != nil:
		if to != "" {
			return to == runlog.End && has(isMessage)
		}
		woken := step.cause == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE
		return !woken && !has(isInterrupt) && !has(isCancel)
	case got == unneeded && item.GetCancel() != nil:
		return lastIs(isCancel)
	case got == unneeded && item.GetInterrupt() != nil:
		// The run is parked or has ended, and there is nothing to answer or stop.
		return lastIs(isInterrupt) || len(waiting) == 0 && (to == runlog.End || to == runlog.Park && len(step.awaited) == 0)
	case got == alreadyAnswered:
		return m.answeredBy(s, item, u)
	case got == notPending:
		return !m.answeredBy(s, item, u) && !m.waitsFor(s, item, u)
	}
	return false
}

// answeredBy reports whether up to u another item had answered the call of item, or it
// had its result in another way.
func (m *Model) answeredBy(s *state, item *harnessv1.InboxItem, u seq) bool {
	call, approval := callOf(item), item.GetApproval() != nil
	var happened effects
	for n := seq(1); n <= u; n++ {
		if msg := s.at(n); msg.item == noItem {
			happened |= m.all[msg.body].effects
		}
	}
	if happened&m.effect(resultOf(call)) != 0 || approval && happened&m.effect(decisionOn(call)) != 0 {
		return true
	}
	for n := seq(1); n <= u; n++ {
		if msg := s.at(n); msg.item != noItem && answersSame(m.items[msg.item], item) && happened&m.effect(rejectionOf(m.items[msg.item].GetId())) == 0 {
			return true
		}
	}
	return false
}

// waitsFor reports whether up to u the call of item waited for such an answer, or was
// announced to wait for it.
func (m *Model) waitsFor(s *state, item *harnessv1.InboxItem, u seq) bool {
	kind := ""
	if c := m.all[s.at(m.stepAt(s, u)).body].awaitedCall(callOf(item)); c != nil {
		kind = c.GetKind()
	}
	if j := m.all[s.at(s.record(u)).body].journal; j != nil {
		for _, c := range j.GetJournal().GetModelResponded().GetCalls() {
			if c.GetCallId() == callOf(item) {
				kind = runstate.PendingKind(c.GetDisposition())
			}
		}
	}
	return kind != "" && (kind == runstate.KindApproval) == (item.GetApproval() != nil)
}

// String is the answer as a caller of the gateway knows it.
func (a answer) String() string {
	return [...]string{
		"nothing", "OK", "OK, it existed", "OK, nothing to do", "ALREADY_EXISTS", "FAILED_PRECONDITION, not pending",
		"FAILED_PRECONDITION, ended", "UNAVAILABLE", "stale", "kept", "kept already",
	}[a]
}
