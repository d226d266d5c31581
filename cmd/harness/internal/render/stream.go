package render

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// stream decides which part of the model's text is printed next. It repeats no byte
// unless it reports that the text restarted: another try or attempt writes it, or the
// committed text differs.
type stream struct {
	turn, attempt, try uint32
	// text is the received text of this try, all of it printed.
	text string
	// gap reports whether a piece was lost: the rest waits for the commit.
	gap bool
	// committed is the newest turn whose text is committed.
	committed uint32
}

// add takes a piece and returns the text to print. restarted reports whether the text
// printed for this turn is void.
func (s *stream) add(d *harnessv1.Delta) (restarted bool, show string) {
	turn := d.GetTurnNumber()
	if turn <= s.committed || s.older(d) {
		return false, ""
	}
	if turn != s.turn || d.GetAttempt() != s.attempt || d.GetTry() != s.try {
		restarted = turn == s.turn && s.text != ""
		*s = stream{turn: turn, attempt: d.GetAttempt(), try: d.GetTry(), committed: s.committed}
	}
	offset, have := d.GetOffset(), uint64(len(s.text))
	switch {
	case s.gap || offset > have:
		s.gap = true
		return restarted, ""
	case strings.HasPrefix(s.text[offset:], d.GetText()):
		return restarted, "" // shown before
	case strings.HasPrefix(d.GetText(), s.text[offset:]):
		show = d.GetText()[have-offset:]
		s.text += show
		return restarted, show
	}
	// The same try has another text from here on.
	s.text = s.text[:offset] + d.GetText()
	return true, s.text
}

// older reports whether a piece belongs to an earlier try.
func (s *stream) older(d *harnessv1.Delta) bool {
	if d.GetTurnNumber() != s.turn {
		return d.GetTurnNumber() < s.turn
	}
	if d.GetAttempt() != s.attempt {
		return d.GetAttempt() < s.attempt
	}
	return d.GetTry() < s.try
}

// commit takes the committed text and returns the part to print.
func (s *stream) commit(turn uint32, text string) (restarted bool, show string) {
	shown := ""
	if turn == s.turn {
		shown = s.text
	}
	*s = stream{turn: turn, committed: max(turn, s.committed)}
	if rest, ok := strings.CutPrefix(text, shown); ok {
		return false, rest
	}
	return shown != "", text
}
