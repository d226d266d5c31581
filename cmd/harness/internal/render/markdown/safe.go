package markdown

import (
	"html"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	texts "github.com/harnessmesh/harnessmesh/pkg/content"
)

// Clean makes text from outside safe to print, see content.Printable.
func Clean(text string) string { return texts.Printable(text) }

var entity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`&(#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z0-9]+);?`)
})

// entities escapes the entities of characters that Clean replaces, so that they
// appear as they are written.
func entities(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	return entity().ReplaceAllStringFunc(text, func(e string) string {
		for _, r := range html.UnescapeString(strings.TrimSuffix(e, ";") + ";") {
			if texts.Controls(r) || r == utf8.RuneError {
				return "&amp;" + e[1:]
			}
		}
		return e
	})
}

// lines splits rendered text into lines of text and SGR sequences, without
// trailing spaces and without blank lines at the start and the end. Each line
// switches on what it needs and off what it switched on.
func lines(rendered string, colour bool) []string {
	var out []string
	on := "" // the sequences in force
	for line := range strings.SplitSeq(rendered, "\n") {
		var b strings.Builder
		is, spaces := "", 0 // the sequences in force in the output, and the spaces not yet written
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
