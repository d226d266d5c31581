package render

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// stream decides which part of the model's text, or of its reasoning, is printed next.
// It repeats no byte unless it reports that the text restarted: another try or attempt
// writes it, or the committed text differs.
type stream struct {
	turn, attempt, try uint32
	// text is the received text of this try, all of it printed.
	text string
	// gap reports whether a piece was lost: the rest waits for the commit.
	gap bool
	// committed is the newest turn whose text is committed.
	committed uint32
}

// add takes a piece of a delta at its offset and returns the text to print. restarted
// reports whether the text printed for this turn is void. The piece is empty in a delta
// of another kind, which may start another try.
func (s *stream) add(d *harnessv1.Delta, offset uint64, piece string) (restarted bool, show string) {
	turn := d.GetTurnNumber()
	if turn <= s.committed || s.older(d) {
		return false, ""
	}
	if turn != s.turn || d.GetAttempt() != s.attempt || d.GetTry() != s.try {
		restarted = turn == s.turn && s.text != ""
		*s = stream{turn: turn, attempt: d.GetAttempt(), try: d.GetTry(), committed: s.committed}
	}
	have := uint64(len(s.text))
	switch {
	case piece == "":
		return restarted, ""
	case s.gap || offset > have:
		s.gap = true
		return restarted, ""
	case strings.HasPrefix(s.text[offset:], piece):
		return restarted, "" // shown before
	case strings.HasPrefix(piece, s.text[offset:]):
		show = piece[have-offset:]
		s.text += show
		return restarted, show
	}
	// The same try has another text from here on.
	s.text = s.text[:offset] + piece
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

// answer is the model's answer of a turn: a stream of text and one of reasoning.
type answer struct{ text, reasoning stream }

// addition is what a delta or a response adds to an answer.
type addition struct {
	// reasoning and text are printed next, in this order.
	reasoning, text string
	// voidReasoning and voidText report whether the printed reasoning or text is void.
	voidReasoning, voidText bool
}

// add takes a delta.
func (a *answer) add(d *harnessv1.Delta) (s addition) {
	s.voidReasoning, s.reasoning = a.reasoning.add(d, d.GetReasoningOffset(), d.GetReasoning())
	s.voidText, s.text = a.text.add(d, d.GetOffset(), d.GetText())
	return s
}

// commit takes the text and the reasoning of a response. Reasoning is added only where
// it belongs, before the text: pieces that were lost while it was written stay out.
func (a *answer) commit(turn uint32, text, reasoning string) (s addition) {
	spoke := a.spoke(turn)
	s.voidText, s.text = a.text.commit(turn, text)
	void, rest := a.reasoning.commit(turn, reasoning)
	if !void && !spoke {
		s.reasoning = rest
	}
	return s
}

// spoke reports whether text of a turn was printed while it was written.
func (a *answer) spoke(turn uint32) bool { return a.text.turn == turn && a.text.text != "" }
