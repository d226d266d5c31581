package contract

import (
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// clip joins a text into one line and cuts it to limit bytes, including the ellipsis.
func clip(text string, limit int) string {
	if len(text) <= limit && isPlain(text) {
		return text
	}
	if len(text) > 4*limit {
		text = text[:4*limit]
	}
	text = oneLine(text)
	if len(text) <= limit {
		return text
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// clipFront is clip, but keeps the end.
func clipFront(text string, limit int) string {
	if len(text) > 4*limit {
		text = text[len(text)-4*limit:]
	}
	text = oneLine(text)
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit + len("…")
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return "…" + text[start:]
}

// isPlain reports whether a text is one line of ASCII words with single spaces. Such a
// text, the usual case, needs no change.
func isPlain(text string) bool {
	last := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c >= 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' '
}

func oneLine(text string) string {
	return content.OneLine(strings.ToValidUTF8(text, ""))
}

// around returns a match with some text on both sides.
func around(text string, match []int) string {
	const before, after = 24, 96
	start, end := max(match[0]-before, 0), min(match[0]+after, len(text))
	return clip(text[start:end], 120)
}
