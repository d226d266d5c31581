package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxHeld bounds the deltas that wait for the record that they belong behind.
const maxHeld = 256

// Splice fits the model's text, which travels beside the log and may be lost,
// into a watcher's sequence of records. What it lets through is, for each try
// at the model, an unbroken prefix of the text, each byte once, behind the
// record that claims the turn and before the one that holds the response. After
// a loss the rest of the try is left out: the whole text comes with the
// model.response event.
//
// The zero Splice is one whose watcher goes on behind records that it saw
// earlier; see NewSplice.
type Splice struct {
	// open says that records show a turn in which the model may be writing.
	open bool
	// seen says that a record was seen: before, deltas are taken at their word.
	seen bool
	// turn, attempt and try are those of the text that is let through.
	turn, attempt, try uint32
	// offset is the number of bytes of it that were let through.
	offset uint64
	// responded is the last turn whose response was seen.
	responded uint32
	// held are deltas that came before their record.
	held []*harnessv1.Delta
}

// NewSplice is for a watcher that is delivered the records behind version after.
// One that begins at the start is shown no text before the record it belongs to;
// one that goes on may have seen that record before.
func NewSplice(after uint64) Splice { return Splice{seen: after == 0} }

// Record notes a record that was delivered and returns the deltas that waited
// for it.
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

// Delta says whether a delta is to be delivered now.
func (s *Splice) Delta(d *harnessv1.Delta) bool {
	if s.late(d) {
		return false
	}
	if !s.seen && (!s.open || s.ahead(d)) {
		if d.GetOffset() != 0 {
			return false // joined in the middle: the text comes with its event
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

// late says that the response which d is a part of was delivered.
func (s *Splice) late(d *harnessv1.Delta) bool { return d.GetTurnNumber() <= s.responded }

// ahead says that d belongs to a claim that no delivered record shows yet.
func (s *Splice) ahead(d *harnessv1.Delta) bool {
	return d.GetTurnNumber() > s.turn || d.GetTurnNumber() == s.turn && d.GetAttempt() > s.attempt
}
