// Package known decides which entries in the ledgers of tool hosts the log of a run knows.
//
// The bus can lose the newest records of a run, while the ledger of a tool host has the calls that these
// records had started. The entries of a run are numbered in each ledger. The log has a mark of each ledger:
// the number up to which it knows all entries, and ids of calls that it knows and that may have later ones.
// Each request has the mark. The host compares it with its ledger, which costs no further request.
//
// A mark only saves requests. The log decides: an entry is known if a message of the
// conversation, or the turn, has a call with its id and arguments. So an entry that is later than the mark
// is looked up there before it counts as lost.
//
//	what became of the call                 in its ledger   how the log knows it
//	ended: done, failed, asks a person      yes             the number in its response
//	ended, its result was made in memory    no: idempotent  needs nothing
//	ended before an interrupt could kill it yes             the number in its response, or the conversation
//	UNKNOWN, from the host with its entry   yes             the number in its response
//	UNKNOWN, from a host with another       in the other    its id in the mark of the ledger it was started under
//	UNKNOWN, its host was given up          perhaps         its id in the mark, until a response has a number
//	killed by an interrupt                  perhaps         its id in the mark, until a response has a number
//	runs, sent by this worker               yes             its id in the request
//	runs, sent by a worker that died        yes             the turn
//	its worker died, the turn was closed    yes             the conversation
//	moved to another host                   in the new one  as above, by the mark of that ledger
//	started, refused, never sent            no              needs nothing
//	continued with a person's answer        yes, by round   the number, or the call without the round
//	approved, with changed arguments        yes             the number, or its id in the mark
//	of a run of an earlier version          not numbered    is not compared
//	its ledger was replaced                 in the old one  the new ledger has a separate mark
//	its ledger forgot it, or is an older    no              numbers follow the mark, so they still grow
//	of more than 8 ledgers                  yes             the conversation
//	of a sub-agent, a client, the harness   no              needs nothing
//	a check, a hook, a background command   not numbered    is not compared
//
// Everything here is a function of its input and fails in no way.
package known

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// maxMarks bounds the ledgers that the state has marks of.
	maxMarks = 8
	// maxCalls bounds the ids in a mark.
	maxCalls = 64
	// maxCompared bounds how often a call is sent again, if its host does not heed what requests name.
	maxCompared = 64
)

// Call is a call of the turn that was started under a ledger.
type Call struct {
	// ID is its id for the tool host.
	ID string
	// Ledger is the ledger that it was started under.
	Ledger string
	// Outcome is how it ended; unset: it has no end.
	Outcome harnessv1.ToolOutcome
	// Sent is true while this worker waits for its end, or has it killed.
	Sent bool
	// Idempotent is true for a call without an entry.
	Idempotent bool
}

// Request has the values that the request of a call names.
type Request struct {
	// Sequence is the number up to which all entries are known.
	Sequence uint64
	// Calls have ids of calls that may have later entries.
	Calls []string
	// Compared is true once the log was searched for entries of this ledger.
	Compared bool
}

// Marks are the marks of a run, as the journal of a turn continues them.
type Marks struct {
	of map[string]*mark // by ledger
	// numbered are the calls of the turn whose end has a number, by ledger and id.
	numbered map[[2]string]bool
	// compared counts the responses to each call that were compared.
	compared map[string]int
}

// mark has the entries of one ledger that the log knows.
type mark struct {
	sequence uint64
	calls    []string
	// told is the newest entry in the message of this turn about lost ones; 0: there was none.
	told uint64
	// found are entries that the log knows although they are later; compared is true once it was searched.
	found    []string
	compared bool
}

// New returns the marks of a snapshot.
func New(s *harnessv1.LedgerState) *Marks {
	m := &Marks{of: map[string]*mark{}, numbered: map[[2]string]bool{}, compared: map[string]int{}}
	for _, of := range s.GetMarks() {
		m.of[of.GetLedgerId()] = &mark{sequence: of.GetSequence(), calls: of.GetCalls()}
	}
	return m
}

func (m *Marks) mark(ledger string) *mark {
	if m.of[ledger] == nil {
		m.of[ledger] = &mark{}
	}
	return m.of[ledger]
}

// Finish adds the end of a call with an id for the tool host. A response with a number has been compared, so
// all entries up to it are known. After a message about lost ones none becomes known in the turn: a call that
// the model made before it has read the message must not run.
func (m *Marks) Finish(ledger, id string, e *harnessv1.ToolFinished) {
	if e.GetLedgerSequence() == 0 && e.GetToldSequence() == 0 {
		return
	}
	of := m.mark(ledger)
	of.told = max(of.told, e.GetToldSequence())
	if e.GetLedgerSequence() > 0 && of.told == 0 {
		of.sequence, of.calls = max(of.sequence, e.GetLedgerSequence()), nil
		m.numbered[[2]string{ledger, id}] = true
	}
}

// Told reports whether the turn has a message about lost entries of a ledger.
func (m *Marks) Told(ledger string) bool { return m.mark(ledger).told > 0 }

// Request returns the values that the request of a call under a ledger names, given the calls of the turn.
func (m *Marks) Request(ledger, id string, calls []Call) *Request {
	of := m.mark(ledger)
	r := &Request{Sequence: of.sequence, Calls: slices.Concat(of.calls, of.found), Compared: of.compared}
	for _, c := range calls {
		if c.ID != id && (c.Ledger == ledger && c.Sent && !c.Idempotent || m.later(ledger, c)) {
			r.Calls = append(r.Calls, c.ID)
		}
	}
	return r
}

// later reports whether a call of the turn has ended without a number and may have an entry that is later than
// the mark of a ledger.
func (m *Marks) later(ledger string, c Call) bool {
	switch c.Outcome {
	case harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		return c.Ledger == ledger && !c.Idempotent && !m.numbered[[2]string{ledger, c.ID}]
	default:
		return false
	}
}

// Compare divides the entries that the response to a call has as unrecorded into those that the log knows, by
// knows, and those that it has lost. again is true if the call is to be sent again: its response is not complete
// until the log was searched and all lost calls have ended.
func (m *Marks) Compare(ledger, id string, unrecorded []*harnessv1.LedgerCall, knows func(*harnessv1.LedgerCall) bool) (lost []*harnessv1.LedgerCall, again bool) {
	of := m.mark(ledger)
	of.compared = true
	if m.compared[id]++; m.compared[id] > maxCompared {
		return unrecorded, false
	}
	runs := false
	for _, c := range unrecorded {
		if knows(c) {
			of.found = append(of.found, c.GetCallId())
			continue
		}
		lost = append(lost, c)
		runs = runs || c.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED
	}
	return lost, runs || len(lost) == 0
}

// Next returns the state after a turn with calls. stopped is true if the turn did not come to its end, asked if a
// call of it that changes something waits for an approval.
func (m *Marks) Next(before *harnessv1.LedgerState, calls []Call, stopped, asked bool) *harnessv1.LedgerState {
	next := &harnessv1.LedgerState{Marks: slices.Clone(before.GetMarks()), Told: before.GetTold(), Asks: before.GetAsks()}
	told := false
	for i, c := range calls {
		if slices.ContainsFunc(calls[:i], func(earlier Call) bool { return earlier.Ledger == c.Ledger }) {
			continue
		}
		of := m.mark(c.Ledger)
		told = told || of.told > 0
		mark := &harnessv1.LedgerMark{LedgerId: c.Ledger, Sequence: max(of.sequence, of.told), Calls: slices.Clone(of.calls)}
		for _, c := range calls {
			if m.later(mark.GetLedgerId(), c) || of.told > 0 && c.Ledger == mark.GetLedgerId() && c.Outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
				mark.Calls = append(mark.Calls, c.ID)
			}
		}
		mark.Calls = mark.Calls[max(0, len(mark.GetCalls())-maxCalls):]
		if mark.GetSequence() == 0 && len(mark.GetCalls()) == 0 {
			continue
		}
		next.Marks = slices.DeleteFunc(next.Marks, func(of *harnessv1.LedgerMark) bool { return of.GetLedgerId() == mark.GetLedgerId() })
		next.Marks = append(next.Marks, mark)
	}
	next.Marks = next.Marks[max(0, len(next.GetMarks())-maxMarks):]
	switch {
	case told:
		next.Told, next.Asks = next.GetTold()+1, true
	case asked && !stopped:
		next.Asks = false
	}
	if len(next.GetMarks()) == 0 && next.GetTold() == 0 {
		return nil
	}
	return next
}
