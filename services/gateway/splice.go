package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxHeld bounds the deltas that wait for the record before them.
const maxHeld = 256

// Splice inserts the text of the model, which is sent outside the log and may be lost,
// into a watcher's sequence of records. For each try at the model it delivers an unbroken
// prefix of the text and one of the reasoning, each byte once, after the record that
// claims the turn and before the record with the response. After a loss in one of the two
// the rest of it is left out for this try, and the other continues: both are complete in
// the model.response event. An alert of the monitor is delivered in the same period, also
// after a loss; a watcher that comes to a try in the middle receives those of its record.
//
// The zero Splice is for a watcher that continues after records that it received
// earlier; see NewSplice.
type Splice struct {
	// open: the records show a turn in which the model may be writing.
	open bool
	// seen: a record was delivered. Before that, deltas are accepted without a check.
	seen bool
	// turn, attempt and try identify the answer that is being delivered.
	turn, attempt, try uint32
	// text and reasoning are the numbers of bytes of it that were delivered.
	text, reasoning uint64
	// responded is the last turn whose response was delivered.
	responded uint32
	// held are deltas that arrived before their record.
	held []*harnessv1.Delta
	// outputs are those of the commands that run.
	outputs callOutputs
}

// NewSplice returns a Splice for a watcher that receives the records after version
// after. A watcher from the start receives no text before the record it belongs to; one
// that continues may have received that record before.
func NewSplice(after uint64) Splice {
	return Splice{seen: after == 0, outputs: callOutputs{whole: after == 0}}
}

// Record processes a delivered record and returns the deltas that waited for it.
func (s *Splice) Record(e runlog.Entry) []*harnessv1.Delta {
	s.seen = true
	journal := e.Record.GetJournal()
	if release := s.outputs.record(e.Record); len(release) > 0 {
		return release
	}
	switch {
	case e.Record.GetStep() != nil:
		s.open = false
	case journal.GetTurnStarted() != nil:
		started := journal.GetTurnStarted()
		s.open = true
		s.turn, s.attempt = started.GetTurnNumber(), started.GetAttempt()
		s.restart(0)
		held := s.held
		s.held = nil
		var release []*harnessv1.Delta
		for _, d := range held {
			if d = s.Delta(d); d != nil {
				release = append(release, d)
			}
		}
		return release
	case journal.GetModelResponded() != nil:
		if s.open {
			s.responded = max(s.responded, s.turn)
		}
		s.open = false
	}
	return nil
}

// Delta returns what of a delta is to be delivered now; nil if nothing is.
func (s *Splice) Delta(d *harnessv1.Delta) *harnessv1.Delta {
	if d.GetToolOutput() != nil {
		return s.outputs.add(d)
	}
	if s.late(d) {
		return nil
	}
	if !s.seen && (!s.open || s.ahead(d)) {
		if !isFirst(d) {
			return nil // joined in the middle: the event has everything
		}
		s.open, s.turn, s.attempt = true, d.GetTurnNumber(), d.GetAttempt()
		s.restart(d.GetTry())
	}
	if !s.open || s.ahead(d) {
		if len(s.held) < maxHeld {
			s.held = append(s.held, d)
		}
		return nil
	}
	if d.GetTurnNumber() != s.turn || d.GetAttempt() != s.attempt || d.GetTry() < s.try {
		return nil
	}
	if d.GetTry() > s.try {
		s.restart(d.GetTry())
	}
	return s.fitting(d)
}

// restart begins with another try at the model.
func (s *Splice) restart(try uint32) { s.try, s.text, s.reasoning = try, 0, 0 }

// isFirst reports whether the text or the reasoning of a try starts with d.
func isFirst(d *harnessv1.Delta) bool {
	return d.GetText() != "" && d.GetOffset() == 0 || d.GetReasoning() != "" && d.GetReasoningOffset() == 0
}

// fitting returns d if it is an alert, else its pieces that continue the delivered text or
// reasoning; nil if there are none.
func (s *Splice) fitting(d *harnessv1.Delta) *harnessv1.Delta {
	if d.GetAlert() != nil {
		return d
	}
	text := d.GetText() != "" && d.GetOffset() == s.text
	reasoning := d.GetReasoning() != "" && d.GetReasoningOffset() == s.reasoning
	if !text && !reasoning {
		return nil
	}
	fits := &harnessv1.Delta{
		TurnNumber: d.GetTurnNumber(), Attempt: d.GetAttempt(), Try: d.GetTry(),
		Offset: s.text, ReasoningOffset: s.reasoning,
	}
	if text {
		fits.Text = d.GetText()
		s.text += uint64(len(fits.GetText()))
	}
	if reasoning {
		fits.Reasoning = d.GetReasoning()
		s.reasoning += uint64(len(fits.GetReasoning()))
	}
	return fits
}

// late reports whether the response that d is a part of was delivered.
func (s *Splice) late(d *harnessv1.Delta) bool { return d.GetTurnNumber() <= s.responded }

// ahead reports whether d belongs to a claim that no delivered record has yet.
func (s *Splice) ahead(d *harnessv1.Delta) bool {
	return d.GetTurnNumber() > s.turn || d.GetTurnNumber() == s.turn && d.GetAttempt() > s.attempt
}
