package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxHeld bounds the deltas that wait for the record before them.
const maxHeld = 256

// Splice inserts the model's text, which is sent outside the log and may be lost, into a
// watcher's sequence of records. For each try at the model it delivers an unbroken
// prefix of the text, each byte once, after the record that claims the turn and before
// the record with the response. After a loss the rest of the try is left out: the whole
// text is in the model.response event.
//
// The zero Splice is for a watcher that continues after records that it received
// earlier; see NewSplice.
type Splice struct {
	// open: the records show a turn in which the model may be writing.
	open bool
	// seen: a record was delivered. Before that, deltas are accepted without a check.
	seen bool
	// turn, attempt and try identify the text that is being delivered.
	turn, attempt, try uint32
	// offset is the number of bytes of it that were delivered.
	offset uint64
	// responded is the last turn whose response was delivered.
	responded uint32
	// held are deltas that arrived before their record.
	held []*harnessv1.Delta
}

// NewSplice returns a Splice for a watcher that receives the records after version
// after. A watcher from the start receives no text before the record it belongs to; one
// that continues may have received that record before.
func NewSplice(after uint64) Splice { return Splice{seen: after == 0} }

// Record processes a delivered record and returns the deltas that waited for it.
func (s *Splice) Record(e runlog.Entry) []*harnessv1.Delta {
	s.seen = true
	journal := e.Record.GetJournal()
	switch {
	case e.Record.GetStep() != nil:
		s.open = false
	case journal.GetTurnStarted() != nil:
		started := journal.GetTurnStarted()
		s.open = true
		s.turn, s.attempt, s.try, s.offset = started.GetTurnNumber(), started.GetAttempt(), 0, 0
		held := s.held
		s.held = nil
		var release []*harnessv1.Delta
		for _, d := range held {
			if s.Delta(d) {
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

// Delta reports whether a delta is to be delivered now.
func (s *Splice) Delta(d *harnessv1.Delta) bool {
	if s.late(d) {
		return false
	}
	if !s.seen && (!s.open || s.ahead(d)) {
		if d.GetOffset() != 0 {
			return false // joined in the middle: the event has the text
		}
		s.open, s.turn, s.attempt, s.try, s.offset = true, d.GetTurnNumber(), d.GetAttempt(), 0, 0
	}
	if !s.open || s.ahead(d) {
		if len(s.held) < maxHeld {
			s.held = append(s.held, d)
		}
		return false
	}
	if d.GetTurnNumber() != s.turn || d.GetAttempt() != s.attempt || d.GetTry() < s.try {
		return false
	}
	if d.GetTry() > s.try {
		s.try, s.offset = d.GetTry(), 0
	}
	if d.GetOffset() != s.offset {
		return false
	}
	s.offset += uint64(len(d.GetText()))
	return true
}

// late reports whether the response that d is a part of was delivered.
func (s *Splice) late(d *harnessv1.Delta) bool { return d.GetTurnNumber() <= s.responded }

// ahead reports whether d belongs to a claim that no delivered record has yet.
func (s *Splice) ahead(d *harnessv1.Delta) bool {
	return d.GetTurnNumber() > s.turn || d.GetTurnNumber() == s.turn && d.GetAttempt() > s.attempt
}
