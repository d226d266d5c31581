package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// ledgerMark has the entries of the run in one ledger that the journal of a turn knows.
type ledgerMark struct {
	// known is the newest entry that the log knew before the message about others.
	known uint64
	// newest is the newest entry that the log knows now.
	newest uint64
	// told is the newest entry in the message about others in this turn; 0: there was none.
	told uint64
}

// marksOf returns the marks of a snapshot, by ledger.
func marksOf(s *harnessv1.Snapshot) map[string]ledgerMark {
	marks := map[string]ledgerMark{}
	for _, m := range s.GetLedgers().GetMarks() {
		marks[m.GetLedgerId()] = ledgerMark{known: m.GetSequence(), newest: m.GetSequence()}
	}
	return marks
}

// foldMark adds the entry of a call that has ended. After the message about others none becomes
// known in the turn: a call that the model made before it has read the message must not run.
func (p *Progress) foldMark(e *harnessv1.ToolFinished) {
	if e.GetLedgerSequence() == 0 && e.GetToldSequence() == 0 {
		return
	}
	ledger := p.Ledgers[e.GetCallId()]
	m := p.marks[ledger]
	m.told = max(m.told, e.GetToldSequence())
	m.newest = max(m.newest, e.GetLedgerSequence(), m.told)
	if m.told == 0 {
		m.known = m.newest
	}
	p.marks[ledger] = m
}

// known returns the entries of the run in a ledger that the log knows, for the request of a call.
func (p *Progress) known(c toolcall.Call, ledger string) *toolcall.Knowledge {
	m, marked := p.marks[ledger]
	if !marked && len(p.marks) >= maxMarks { // the mark may be one of those that were left out
		return nil
	}
	k := &toolcall.Knowledge{Sequence: m.known}
	for _, other := range p.Calls {
		if _, ended := p.Finished[other.ID]; !ended && p.Started[other.ID] && !other.Idempotent && other.ID != c.ID {
			k.Calls = append(k.Calls, other.HostID())
		}
	}
	return k
}

// reportLost adds a message with the calls that the ledger has and the log has lost, once in a turn. It
// returns the number of the newest one; 0 if there is nothing to tell.
func (p *Progress) reportLost(d *runstate.Draft, c toolcall.Call, r *harnessv1.ExecuteToolResponse) uint64 {
	lost := r.GetUnrecorded()
	if len(lost) == 0 || p.marks[p.Ledgers[c.ID]].told > 0 {
		return 0
	}
	d.GuideOn("", "ledger", "", lostText(lost)).Kept = d.Marks()
	var newest uint64
	for _, l := range lost {
		newest = max(newest, l.GetSequence())
	}
	return newest
}

// lostText tells the model of calls whose results the conversation does not have.
func lostText(lost []*harnessv1.LedgerCall) string {
	var b strings.Builder
	b.WriteString("The newest part of this conversation was lost. In it you had made these calls. They have been carried out, so do not make them again:")
	for i, c := range lost {
		fmt.Fprintf(&b, "\n\n%d. %s %s\n%s", i+1, content.Clip(c.GetTool(), maxName), c.GetArguments(), endText(c))
	}
	b.WriteString("\n\nCalls that you have made since without this message did not run. Check what is done before you continue. " +
		"A person is asked before your next change or command.")
	return b.String()
}

func endText(c *harnessv1.LedgerCall) string {
	switch {
	case c.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		return "It was killed; what it had done until then stays."
	case c.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		return "It was started, and its effect is unknown: check."
	case c.GetResult() == "":
		return "It is done. Its result is not known any more."
	case c.GetIsError():
		return "It failed: " + c.GetResult()
	}
	return "It is done: " + c.GetResult()
}

// maxMarks bounds the ledgers that the state has marks of.
const maxMarks = 8

// addLedgers adds the newest entries that the turn knows, and whether the next call that
// changes something asks.
func (c *completion) addLedgers(end End) {
	s, told := c.s, false
	for _, call := range c.p.Calls {
		ledger := c.p.Ledgers[call.ID]
		m := c.p.marks[ledger]
		if m.newest == 0 {
			continue
		}
		told = told || m.told > 0
		if s.Ledgers == nil {
			s.Ledgers = &harnessv1.LedgerState{}
		}
		marks := slices.DeleteFunc(s.Ledgers.Marks, func(of *harnessv1.LedgerMark) bool { return of.GetLedgerId() == ledger })
		marks = append(marks, &harnessv1.LedgerMark{LedgerId: ledger, Sequence: m.newest})
		s.Ledgers.Marks = marks[max(0, len(marks)-maxMarks):]
	}
	switch {
	case told:
		s.Ledgers.Told, s.Ledgers.Asks = s.GetLedgers().GetTold()+1, true
	case s.GetLedgers().GetAsks() && !end.Interrupted && end.Error == nil && slices.ContainsFunc(c.p.Prepared, func(c *harnessv1.PreparedCall) bool {
		return c.GetWrites() && c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_ASK
	}):
		s.Ledgers.Asks = false
	}
}
