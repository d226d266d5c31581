package explore

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// admitted is what gateway.Admit says; stored means that the item is to be stored.
type admitted struct {
	answer answer
	err    error
}

// admission is gateway.Admit on a view of the stream up to u.
func (m *Model) admission(s *state, item itemID, u seq) admitted {
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
	standing := m.standing(s, newest, m.items[item])
	for _, n := range waiting {
		standing.Waiting = append(standing.Waiting, m.stored(s, n))
	}
	result := told(gateway.Admit(standing, m.items[item]))
	m.admissions[key] = result
	return result
}

// standing is gatewayserver.Server.standing when n is the newest record, but for what
// waits in the inbox.
func (m *Model) standing(s *state, n seq, item *harnessv1.InboxItem) gateway.Standing {
	view := m.view(s, n)
	standing := gateway.Standing{Run: theRun, Step: view.Step.Record.GetStep(), Rests: view.Quiescent(), Now: s.now()}
	if view.Newest.Sequence != view.Step.Sequence && callOf(item) != "" {
		standing.Announced = view.Newest.Record.GetJournal().GetModelResponded().GetCalls()
	}
	return standing
}

// told is what a sender is told of an admission.
func told(a gateway.Admission, err error) admitted {
	var refusal *fault.Error
	switch {
	case errors.As(err, &refusal):
		switch refusal.Reason {
		case harnessv1.ErrorReason_ERROR_REASON_CALL_ANSWERED:
			return admitted{answer: answeredOnce}
		case harnessv1.ErrorReason_ERROR_REASON_CALL_NOT_PENDING:
			return admitted{answer: notPending}
		case harnessv1.ErrorReason_ERROR_REASON_RUN_ENDED:
			return admitted{answer: runEnded}
		}
		return admitted{err: fmt.Errorf("a sender is told something that the model does not know: %w", err)}
	case err != nil:
		return admitted{err: fmt.Errorf("a sender is told something that the model does not know: %w", err)}
	case a == gateway.Store:
		return admitted{answer: stored}
	case a == gateway.Existed:
		return admitted{answer: existed}
	}
	return admitted{answer: unneeded}
}

// callOf is the call that an item answers; empty when it is no answer.
func callOf(item *harnessv1.InboxItem) string {
	if call := item.GetApproval().GetCallId(); call != "" {
		return call
	}
	return item.GetToolAnswer().GetCallId()
}
