package render

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// stream decides what of the model's text is still to be shown. It shows no
// byte twice unless it says that the text starts again: when another try or
// another attempt writes it, or when what was committed is something else.
type stream struct {
	turn, attempt, try uint32
	// text is what was received of this try, all of it shown.
	text string
	// gap says that a part was missed: the rest waits for the commit.
	gap bool
	// committed is the newest turn whose text is committed.
	committed uint32
}

// add takes a piece in and returns what to show. restarted says that what was
// shown of this turn no longer stands.
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
	// The same try now says something else from here on.
	s.text = s.text[:offset] + d.GetText()
	return true, s.text
}

// older says that a piece belongs to a try that is over.
func (s *stream) older(d *harnessv1.Delta) bool {
	if d.GetTurnNumber() != s.turn {
		return d.GetTurnNumber() < s.turn
	}
	if d.GetAttempt() != s.attempt {
		return d.GetAttempt() < s.attempt
	}
	return d.GetTry() < s.try
}

// commit takes in the text that stands and returns what of it is to be shown.
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
