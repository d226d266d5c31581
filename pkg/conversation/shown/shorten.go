package shown

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// cutter shortens the texts of one message.
type cutter struct {
	// limit is the number of tokens that a text may have.
	limit int
	// count returns the tokens of a text of which the cut text is made.
	count func(text string) int
	// read tells the model how to read the omitted part of a result, and of arguments;
	// both may be empty.
	read, readArguments string
}

// newCutter returns what shortens the texts of a message.
func newCutter(k key) cutter {
	c := cutter{limit: int(k.limit), count: func(text string) int { return tokens.Count(k.model, text) }}
	c.read = "; ask for the part that you need, with an offset or a narrower call"
	if id := k.message.GetId(); k.refs && id > 0 {
		c.read = fmt.Sprintf("; call read_artifact with ref m%d to read them", id)
		c.readArguments = c.read
	}
	return c
}

// result returns a result with at most limit tokens. Bytes bound tokens, so short texts are
// not counted.
func (c cutter) result(text string) string {
	if len(text) <= c.limit {
		return text
	}
	return c.shorten(text, c.read)
}

// Of a text of n tokens at most this many bytes are counted, for each token of the limit,
// before it counts as longer than the limit: tokens rarely have more.
const window = 8

// slack is how many tokens the beginning of a text may have more than the text itself: a
// cut within a long token makes a few short ones of it.
const slack = 64

// shorten returns a text of at most limit tokens: of a longer one the head and the tail,
// cut at lines, with a line between them that names what is missing.
func (c cutter) shorten(text, read string) string {
	if !c.exceeds(text) {
		return text
	}
	note := func(left int) string { return fmt.Sprintf("[%d bytes left out here%s]", left, read) }
	budget := (c.limit - c.count(note(len(text))) - slack/16) / 2
	for budget > 0 {
		head := cutHead(c.fit(text, budget, headOf))
		tail := cutTail(c.fit(text[len(head):], budget, tailOf))
		cut := note(len(text)-len(head)-len(tail)) + "\n" + tail
		if head != "" && !strings.HasSuffix(head, "\n") {
			cut = "\n" + cut
		}
		cut = head + cut
		over := c.count(cut) - c.limit
		if over <= 0 {
			return cut
		}
		budget -= (over + 1) / 2
	}
	return fmt.Sprintf("[%d bytes left out here]", len(text))
}

// exceeds reports whether a text has more tokens than the limit.
func (c cutter) exceeds(text string) bool {
	for size := window * max(c.limit, slack); size < len(text); size *= 2 {
		if c.count(headOf(text, size)) > c.limit+slack {
			return true
		}
	}
	return c.count(text) > c.limit
}

// Bounds of the search of fit.
const (
	fitSteps    = 12
	fitBytes    = 16 // largest number of bytes a token
	usualBytes  = 4
	goodEighths = 7 // of the budget that need not be improved
)

// fit returns about the longest head or tail of a text that has at most budget tokens.
func (c cutter) fit(text string, budget int, part func(text string, size int) string) string {
	best, low, high := "", 0, min(len(text), budget*fitBytes)+1
	size := min(high-1, budget*usualBytes)
	for range fitSteps {
		piece := part(text, size)
		n := c.count(piece)
		next := size * budget / max(n, 1)
		if n <= budget {
			best, low = piece, size
			if size+1 >= high || n*8 >= budget*goodEighths {
				break
			}
		} else {
			high = size
			next -= next / 16
		}
		if next <= low || next >= high {
			next = (low + high) / 2
		}
		if next == low {
			break
		}
		size = next
	}
	return best
}

// headOf returns about the first size bytes of a text.
func headOf(text string, size int) string {
	if size >= len(text) {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// tailOf returns about the last size bytes of a text.
func tailOf(text string, size int) string {
	start := max(len(text)-size, 0)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// cutHead ends a head with a line, unless its last line is half of it.
func cutHead(head string) string {
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		return head[:i+1]
	}
	return head
}

// cutTail begins a tail with a line, unless its first line is half of it.
func cutTail(tail string) string {
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		return tail[i+1:]
	}
	return tail
}
