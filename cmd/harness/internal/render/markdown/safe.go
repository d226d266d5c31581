package markdown

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean takes the teeth out of text that others wrote: control characters, which
// could move the cursor or rename the window, become visible, and so do those that
// make text read in another order than it is written.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), Reorders(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// Reorders says that a character overrides the order in which text around it reads.
// Marks that only say the direction of a word are fine.
func Reorders(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u2028' || r == '\u2029'
}

var entity = regexp.MustCompile(`&(#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z0-9]+);?`)

// entities leaves those as they are written that stand for a character that Clean
// would not let through.
func entities(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	return entity.ReplaceAllStringFunc(text, func(e string) string {
		for _, r := range html.UnescapeString(strings.TrimSuffix(e, ";") + ";") {
			if unicode.IsControl(r) || Reorders(r) || r == utf8.RuneError {
				return "&amp;" + e[1:]
			}
		}
		return e
	})
}

// lines cuts what was rendered into lines: nothing but text and SGR sequences,
// without spaces at their ends and blank lines around them, each complete in itself.
func lines(rendered string, colour bool) []string {
	var out []string
	on := "" // the sequences that hold for what comes next
	for line := range strings.SplitSeq(rendered, "\n") {
		var b strings.Builder
		is, spaces := "", 0 // the sequences that are written, and the spaces that are not
		var state byte
		for line != "" {
			seq, _, n, next := ansi.DecodeSequence(line, state, nil)
			line, state = line[n:], next
			switch {
			case seq == " ":
				spaces++
			case strings.IndexFunc(seq, unicode.IsControl) < 0:
				if is != on && is != "" {
					b.WriteString(reset)
					is = ""
				}
				b.WriteString(strings.Repeat(" ", spaces))
				if is != on {
					b.WriteString(on)
				}
				b.WriteString(seq)
				is, spaces = on, 0
			case !colour || !sgr(seq):
			case seq == reset || seq == "\x1b[m":
				on = ""
			default:
				on += seq
			}
		}
		if is != "" {
			b.WriteString(reset)
		}
		out = append(out, b.String())
	}
	for len(out) > 0 && out[0] == "" {
		out = out[1:]
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

const reset = "\x1b[0m"

func sgr(seq string) bool {
	return strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") && strings.Trim(seq[2:len(seq)-1], "0123456789;:") == ""
}
