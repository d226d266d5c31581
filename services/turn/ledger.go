package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/known"
)

// startedCalls returns the calls of the turn that were started under a ledger.
func (p *Progress) startedCalls() []known.Call {
	var calls []known.Call
	for _, c := range p.Calls {
		if p.Started[c.ID] {
			outcome, ended := p.Finished[c.ID]
			calls = append(calls, known.Call{
				ID: c.HostID(), Ledger: p.Ledgers[c.ID], Outcome: outcome, Idempotent: c.Idempotent,
				Sent: p.execution.inFlight[c.ID] || p.execution.cancels != nil && !ended,
			})
		}
	}
	return calls
}

// compares returns a call that has ended and whose response has entries that are to be looked up in the log; nil
// if none has. A stop keeps the result of a call and looks nothing up: the next turn does.
func (p *Progress) compares() *endedCall {
	if p.execution.stop != nil || p.execution.failure != nil || p.execution.fenced {
		return nil
	}
	for _, ended := range p.execution.ended {
		if ended.lost == nil && len(ended.response.GetUnrecorded()) > 0 {
			return ended
		}
	}
	return nil
}

// compare looks up the entries in the responses of calls that have ended, once the conversation is there. A call
// whose response is not complete is sent again.
func (p *Progress) compare() {
	e := &p.execution
	for ended := p.compares(); ended != nil && e.conversation != nil; ended = p.compares() {
		c := ended.call
		lost, again := p.marks.Compare(p.Ledgers[c.ID], c.HostID(), ended.response.GetUnrecorded(), p.knows)
		if ended.lost = lost; !again {
			continue
		}
		e.ended = slices.DeleteFunc(e.ended, func(of *endedCall) bool { return of == ended })
		delete(e.sent, c.ID)
	}
}

// knows reports whether the log has the call of an entry. A call of the turn runs with the arguments that it has
// there; hooks and people may have changed them.
func (p *Progress) knows(entry *harnessv1.LedgerCall) bool {
	id := runstate.RoundCall(entry.GetCallId())
	if c, ok := p.call(id); ok {
		return c.Tool == entry.GetTool() && content.DigestOf(c.Arguments) == entry.GetDigest()
	}
	for _, m := range slices.Backward(p.execution.conversation.Messages) {
		for _, c := range m.GetToolCalls() {
			if c.GetId() == id {
				return content.DigestOf(c.GetArguments()) == entry.GetDigest()
			}
		}
	}
	return false
}

// reportLost adds a message with the calls that the ledger has and the log has lost, once in a turn. It
// returns the number of the newest one; 0 if there is nothing to report.
func (p *Progress) reportLost(d *runstate.Draft, ledger string, lost []*harnessv1.LedgerCall) uint64 {
	if len(lost) == 0 || p.marks.Told(ledger) {
		return 0
	}
	d.GuideOn("", "ledger", "", known.Text(lost)).Kept = d.Marks()
	return lost[len(lost)-1].GetSequence()
}

// addLedgers adds the marks of the ledgers of the turn, and whether the next call that changes something asks.
func (c *completion) addLedgers(end End) {
	asked := slices.ContainsFunc(c.p.Prepared, func(c *harnessv1.PreparedCall) bool {
		return c.GetWrites() && c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_ASK
	})
	c.s.Ledgers = c.p.marks.Next(c.s.GetLedgers(), c.p.startedCalls(), end.Interrupted || end.Error != nil, asked)
}
