package explore

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// admission is what a gateway.Submission does after it has read the run.
type admission struct {
	answer   answer // stored if the item is to be stored
	confirms bool   // the leader has to confirm the answer first
	err      error
}

// admission feeds the run at a replica that has the stream up to u to a submission.
func (m *Model) admission(s *state, item itemID, u seq) admission {
	at := m.stepAt(s, u)
	newest := s.record(u)
	cursor := m.all[s.at(at).body].cursor
	var waiting []seq
	if last := s.item(u); last > cursor {
		waiting = m.inbox(s, cursor, last, 0)
	}
	key := fmt.Sprintf("admit %d %d %d %d", item, s.at(at).body, s.at(newest).body, s.clock)
	for _, n := range waiting {
		key += fmt.Sprintf(" %d", s.at(n).item)
	}
	if known, ok := m.admissions[key]; ok {
		return known
	}
	read := m.runAt(s, newest, m.items[item])
	for _, n := range waiting {
		read.Waiting = append(read.Waiting, m.stored(s, n))
	}
	result := admitted(m.items[item], read)
	m.admissions[key] = result
	return result
}

// runAt returns the run as a gateway reads it when n is the newest record, without its
// inbox.
func (m *Model) runAt(s *state, n seq, item *harnessv1.InboxItem) input.State {
	view := m.view(s, n)
	read := input.State{Run: theRun, Step: view.Step.Record.GetStep(), Quiescent: view.Quiescent(), Now: s.now()}
	if view.Newest.Sequence != view.Step.Sequence && callOf(item) != "" {
		read.Announced = view.Newest.Record.GetJournal().GetModelResponded().GetCalls()
	}
	return read
}

func admitted(item *harnessv1.InboxItem, read input.State) admission {
	submission, a := gateway.Submission{Item: item}.Next(gateway.RunRead{RunState: read})
	switch a := a.(type) {
	case gateway.AppendInput:
		return admission{answer: stored}
	case gateway.Reply:
		return replied(a)
	case gateway.Confirm:
		_, confirmed := submission.Next(gateway.RunConfirmed{})
		if reply, ok := confirmed.(gateway.Reply); ok {
			d := replied(reply)
			d.confirms = true
			return d
		}
	}
	return admission{err: errImpossible}
}

// replied is the answer of a submission to its sender.
func replied(r gateway.Reply) admission {
	var refusal *fault.Error
	switch {
	case errors.As(r.Err, &refusal):
		switch refusal.Reason {
		case harnessv1.ErrorReason_ERROR_REASON_CALL_ANSWERED:
			return admission{answer: alreadyAnswered}
		case harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING:
			return admission{answer: notPending}
		case harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED:
			return admission{answer: runEnded}
		}
		return admission{err: fmt.Errorf("a sender gets an error that the model does not know: %w", r.Err)}
	case r.Err != nil:
		return admission{err: fmt.Errorf("a sender gets an error that the model does not know: %w", r.Err)}
	case r.Admission == input.Store:
		return admission{answer: stored}
	case r.Admission == input.Existed:
		return admission{answer: existed}
	}
	return admission{answer: unneeded}
}

// callOf is the call that an item answers; empty when it is no answer.
func callOf(item *harnessv1.InboxItem) string {
	if call := item.GetApproval().GetCallId(); call != "" {
		return call
	}
	return item.GetToolAnswer().GetCallId()
}
