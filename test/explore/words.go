package explore

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// Say puts an action that led from s to next into words.
func (m *Model) Explain(s *state, a action, next *state) string {
	line := m.subject(s, a) + " " + m.predicate(s, a, next)
	for n := s.newest() + 1; n <= next.newest(); n++ {
		line += fmt.Sprintf(" [stored at %d: %s]", n, m.describe(next, n))
	}
	return line
}

func (m *Model) subject(s *state, a action) string {
	switch a.do {
	case deliverWake, deliverStep, wakeTake, stepTake:
		return "bus:"
	case wakeView, wakeAppend, wakeAck, wakeCrash, wakeLapse:
		return fmt.Sprintf("wake worker with %d (%s):", s.wakers[a.who].message, m.describe(s, s.wakers[a.who].message))
	case stepCheck, stepObserve, stepCommit, stepAck, stepCrash, stepLapse:
		return fmt.Sprintf("repair worker with %d (%s):", s.repairers[a.who].message, m.describe(s, s.repairers[a.who].message))
	case sendStart, sendConfirm, sendSeek, sendPublish, sendCompare, sendCrash, fireTimer:
		c := s.senders[a.who]
		if m.fires(c.item) {
			return m.items[c.item].GetId() + ":"
		}
		return fmt.Sprintf("sender %d (%s):", a.who+1, m.input(c.item))
	case land, vanish:
		return "append without an answer (" + m.flying(s.flights[a.who]) + "):"
	}
	if a.do == sweepView || a.do == sweepAppend || a.do == sweepTimer {
		return "sweeper:"
	}
	return "loop:"
}

func (m *Model) predicate(s *state, a action, next *state) string {
	switch a.do {
	case deliverWake:
		return fmt.Sprintf("delivers %d (%s) to a wake worker", a.message, m.describe(s, a.message))
	case wakeTake:
		return fmt.Sprintf("delivers %d (%s) to a wake worker, which reads the run, %s; %s", a.message, m.describe(s, a.message), m.viewText(s, a), m.wakeText(s, a))
	case deliverStep, stepTake:
		text := fmt.Sprintf("delivers %d (%s) to a repair worker", a.message, m.describe(s, a.message))
		switch {
		case a.do == deliverStep && a.cost == crash:
			return text + " again, having forgotten that it did before"
		case s.at(a.message).again:
			text += " again"
		}
		switch {
		case a.do == deliverStep:
			return text
		case s.at(a.message).again:
			return text + fmt.Sprintf(", which reads the run, %s; %s", m.viewText(s, a), m.stepText(s, a, a.message))
		}
		return text + fmt.Sprintf(", which reads the inbox, %s, and decides", m.viewText(s, a))
	case wakeView:
		return fmt.Sprintf("reads the run, %s; %s", m.viewText(s, a), m.wakeText(s, a))
	case stepCheck:
		return fmt.Sprintf("reads the run, %s; %s", m.viewText(s, a), m.stepText(s, a, s.repairers[a.who].message))
	case stepObserve:
		return fmt.Sprintf("reads the inbox, %s, and decides", m.viewText(s, a))
	case wakeAppend, stepCommit, sendPublish, sweepAppend:
		return m.appends(s, a, next)
	case wakeAck, stepAck:
		if a.arg == unknown {
			return "acknowledges; the acknowledgement is lost"
		}
		return "acknowledges"
	case wakeCrash, stepCrash, sendCrash:
		return "dies"
	case wakeLapse, stepLapse:
		return "is slow: AckWait is over, the message is to be delivered again"
	case sendStart:
		attempt := fmt.Sprintf("attempt %d, the gateway", next.senders[a.who].tries)
		if m.fires(s.senders[a.who].item) {
			attempt = "fires, and a repair worker"
		}
		return fmt.Sprintf("%s reads the run, %s%s", attempt, m.viewText(s, a), m.verdict(next.senders[a.who], m.next(next.senders[a.who])))
	case sendConfirm:
		return "asks the leader for the newest message" + m.verdict(next.senders[a.who], ", and reads again")
	case sendSeek:
		c := next.senders[a.who]
		return fmt.Sprintf("the gateway searches the inbox for it, %s%s", m.viewText(s, a), m.verdict(c, fmt.Sprintf("; to be appended after %d", c.fence)))
	case sendCompare:
		return "the gateway reads whether another answer came first" + m.verdict(next.senders[a.who], "")
	case fireTimer:
		return "is to be delivered again"
	case land:
		return "lands"
	case vanish:
		return "is lost for good"
	case sweepTimer:
		return "finds the park overdue and sets its timer anew"
	case sweepView:
		return fmt.Sprintf("reads the run, %s: the newest step is acknowledged, and nothing follows it", m.viewText(s, a))
	case loopTurn:
		if a.arg == broken {
			return "the turn is broken off"
		}
		return "the turn goes on"
	}
	return "the stop decision"
}

// next describes what a sender does after its read.
func (m *Model) next(c sender) string {
	if c.at == confirming {
		return "; nothing is to be stored"
	}
	return "; it is to be stored"
}

func (m *Model) verdict(c sender, otherwise string) string {
	switch {
	case c.at != finished:
		return otherwise
	case m.fires(c.item):
		return "; it is " + c.answer.String()
	}
	return "; answer: " + c.answer.String()
}

// viewText describes how far a read reaches.
func (m *Model) viewText(s *state, a action) string {
	if a.cost == stale {
		return fmt.Sprintf("at a replica that is at %d", a.arg)
	}
	return fmt.Sprintf("up to %d", a.arg)
}

func (m *Model) newestText(s *state, a action) string {
	return fmt.Sprintf("the newest record is %d, the newest item %d", s.record(a.arg), s.item(a.arg))
}

func (m *Model) wakeText(s *state, a action) string {
	if _, nothing := m.wakeViewed(s, a.arg).action.(repair.Ack); nothing {
		return m.newestText(s, a) + ": nothing to do"
	}
	return m.newestText(s, a) + fmt.Sprintf(": to be woken, after %d", s.record(a.arg))
}

func (m *Model) stepText(s *state, a action, message seq) string {
	if m.stepAt(s, a.arg) > message {
		return m.newestText(s, a) + ": done before"
	}
	return m.newestText(s, a)
}

func (m *Model) appends(s *state, a action, next *state) string {
	var what string
	switch a.do {
	case wakeAppend:
		what = m.appendText(s.wakers[a.who])
	case stepCommit:
		what = m.appendText(s.repairers[a.who])
	case sweepAppend:
		what = m.appendText(s.sweeper)
	default:
		if c := next.senders[a.who]; c.at == finished && (c.answer == existed || c.answer == timerWasStored) {
			return "is looked for in the inbox, and found" + m.verdict(c, "")
		}
		what = "it"
	}
	switch {
	case a.arg == abandoned:
		return "cannot append " + what + ": another append is under way; gives up"
	case a.arg == timerOnly:
		return "sets the timer of " + what + " and dies"
	case a.arg == unknown:
		return "appends " + what + ", has no answer and gives up"
	case a.arg == retried:
		return "appends " + what + ", has no answer and reads again"
	case next.newest() == s.newest():
		return "wants to append " + what + " and is refused"
	case a.arg == thenDies:
		return "appends " + what + " and dies"
	case a.arg == thenUnacked:
		return "appends " + what + " and acknowledges; the acknowledgement is lost"
	case a.do == sendPublish:
		return "appends " + what + m.verdict(next.senders[a.who], "")
	}
	return "appends " + what
}

func (m *Model) appendText(w worker) string {
	return fmt.Sprintf("%s after %d", m.body(w.body), w.fence)
}

// describe describes the message at n.
func (m *Model) describe(s *state, n seq) string {
	msg := s.at(n)
	if msg.item != noItem {
		return m.input(msg.item)
	}
	return fmt.Sprintf("v%d %s", msg.version, m.body(msg.body))
}

func (m *Model) flying(f flight) string {
	if f.item != noItem {
		return m.input(f.item)
	}
	return fmt.Sprintf("v%d %s", f.version, m.body(f.body))
}

// body describes a record.
func (m *Model) body(id bodyID) string {
	b := m.all[id]
	if b.step == nil {
		return "journal"
	}
	text := "step to " + b.step.GetTo()
	switch {
	case b.toRepair():
		text = strings.ToLower(strings.TrimPrefix(b.cause.String(), "TRIGGER_CAUSE_")) + " trigger"
	case b.rest:
		text = b.step.GetTo() + " " + b.step.GetSnapshot().GetStopReason().GetKind()
	}
	text += fmt.Sprintf(", cursor %d", b.cursor)
	if happened := m.effectNames(b.effects); len(happened) > 0 {
		text += ": " + strings.Join(happened, ", ")
	}
	return text
}

// input names an item.
func (m *Model) input(id itemID) string {
	item := m.items[id]
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return "message " + content.Text(in.UserMessage.GetContent())
	case *harnessv1.InboxItem_Approval:
		word := "approval"
		if in.Approval.GetDecision() == harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
			word = "refusal"
		}
		return fmt.Sprintf("%s %s of call %s", word, item.GetId(), in.Approval.GetCallId())
	case *harnessv1.InboxItem_ToolAnswer:
		return fmt.Sprintf("answer %s to call %s", item.GetId(), in.ToolAnswer.GetCallId())
	case *harnessv1.InboxItem_Interrupt:
		return "interrupt " + item.GetId()
	case *harnessv1.InboxItem_Resume:
		return "resume " + item.GetId()
	case *harnessv1.InboxItem_Cancel:
		return "cancel " + item.GetId()
	}
	return item.GetId()
}
