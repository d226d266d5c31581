// Package markdown renders the Markdown that a model writes into lines for a
// terminal, block by block, also while it is being written.
//
// A line contains text and, where colour is allowed, SGR sequences, and no other
// control characters: those in the text, as characters or as entities, are made
// visible. A line ends with all of its sequences switched off.
package markdown

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/parser"
)

// Look is how text looks.
type Look struct {
	// Width is the width of a line in columns, at least 10. Code, and a word that does
	// not fit, may exceed it: they could not be copied if they were broken.
	Width int
	// Colour allows SGR sequences. Without them, marks replace the colours.
	Colour bool
	// UTF8 allows marks beyond ASCII.
	UTF8 bool
}

// Renderer renders Markdown. It is used by one goroutine at a time.
type Renderer struct {
	look   Look
	parser parser.Parser // nil before its first use
}

// New returns a renderer; a width below 10 counts as 10.
func New(look Look) *Renderer {
	look.Width = max(look.Width, 10)
	return &Renderer{look: look}
}

// HasLook reports whether New was called with look.
func (r *Renderer) HasLook(look Look) bool {
	look.Width = max(look.Width, 10)
	return r.look == look
}

// Render renders a whole text. A blank line separates its blocks.
func (r *Renderer) Render(text string) []string {
	var lines []string
	for _, block := range Blocks(Clean(text)) {
		rendered := r.Block(block)
		if len(lines) > 0 && len(rendered) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, rendered...)
	}
	return lines
}

// Block renders one block, without blank lines around it.
func (r *Renderer) Block(text string) []string {
	text = expand(Clean(text))
	if opening, _, _ := strings.Cut(text, "\n"); fence(opening) != "" && indent(opening) < 4 {
		return r.code(text)
	}
	rendered, ok := r.render(entities(text))
	switch {
	case !ok:
		return lines(ansi.Wrap(text, r.look.Width, ""), false)
	case hasTable(text):
		return lines(rendered, r.look.Colour)
	}
	return lines(r.wrap(rendered), r.look.Colour)
}

// render prints a text without breaking its lines. It returns !ok if a library
// panics: the text is not trusted, and must not end the program.
func (r *Renderer) render(text string) (rendered string, ok bool) {
	defer func() {
		if recover() != nil {
			rendered, ok = "", false
		}
	}()
	if r.parser == nil {
		r.parser = newParser()
	}
	p := &printer{look: r.look, source: []byte(text), width: min(natural(text), r.look.Width), code: r.highlight}
	return strings.Join(p.blocks(parse(r.parser, p.source)), "\n"), true
}

// code renders a fenced block.
func (r *Renderer) code(text string) []string {
	opening, rest, _ := strings.Cut(text, "\n")
	mark := fence(opening)
	language, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(opening), mark[:1])), " ")
	var body strings.Builder
	for line := range strings.Lines(rest) {
		if closes(mark, line) {
			break
		}
		body.WriteString(line)
	}
	code := strings.TrimRight(body.String(), "\n ")
	all := lines(r.highlight(code, language), r.look.Colour)
	for i, line := range all {
		if line != "" {
			all[i] = "  " + line
		}
	}
	return all
}

// maxHighlighted bounds the code that is highlighted, in bytes; longer code has no
// colours.
const maxHighlighted = 64 << 10

// highlight colours code in a language that is known.
func (r *Renderer) highlight(code, language string) string {
	if !r.look.Colour || language == "" || len(code) > maxHighlighted {
		return code
	}
	return highlight(code, language)
}

// lead matches the marks of quotes and items in front of the words of a line.
var lead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?: |│ |\| )*(?:(?:• |\* |[0-9]+\. |✓ |○ |\[x\] |\[ \] )(?:✓ |○ |\[x\] |\[ \] )?)?`)
})

// wrap breaks lines at spaces. A continuation is aligned with the words above it.
func (r *Renderer) wrap(rendered string) string {
	var out []string
	for line := range strings.SplitSeq(rendered, "\n") {
		if ansi.StringWidth(line) <= r.look.Width {
			out = append(out, line)
			continue
		}
		mark := lead().FindString(ansi.Strip(line))
		hang := ansi.StringWidth(mark)
		if hang > r.look.Width/2 {
			mark, hang = "", 0
		}
		first, words := ansi.Truncate(line, hang, ""), ansi.TruncateLeft(line, hang, "")
		under := strings.Map(func(c rune) rune {
			if c == '│' || c == '|' {
				return c
			}
			return ' '
		}, mark)
		under += strings.Repeat(" ", max(0, hang-ansi.StringWidth(under)))
		for i, part := range strings.Split(fold(words, r.look.Width-hang), "\n") {
			if i > 0 {
				first = under
			}
			out = append(out, first+part)
		}
	}
	return strings.Join(out, "\n")
}

// fold breaks text at spaces. A word that does not fit stays whole, so that it can
// be copied, unless its script has no spaces.
func fold(text string, width int) string {
	var out []string
	for line := range strings.SplitSeq(ansi.Wordwrap(text, width, ""), "\n") {
		if plain := ansi.Strip(line); ansi.StringWidth(plain) > width && ansi.StringWidth(plain) > utf8.RuneCountInString(plain) {
			line = ansi.Hardwrap(line, width, true)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// hasTable reports whether a block contains a table.
func hasTable(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: ") == "" {
			return true
		}
	}
	return false
}

// natural returns at least the width that a table needs so that no cell is broken:
// marks that are not shown count too. Tables are stretched to the width they get.
func natural(text string) int {
	var columns []int
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Trim(line, "|-: ") == "" {
			continue
		}
		for i, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], ansi.StringWidth(strings.TrimSpace(cell)))
		}
	}
	width := len(columns) - 1
	for _, column := range columns {
		width += column + 2
	}
	return max(width, 10)
}

// expand replaces tabs by spaces, with stops at four columns.
func expand(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		column := 0
		for part := range strings.SplitAfterSeq(line, "\t") {
			words, tab := strings.CutSuffix(part, "\t")
			out.WriteString(words)
			column += ansi.StringWidth(words)
			if tab {
				n := 4 - column%4
				out.WriteString(strings.Repeat(" ", n))
				column += n
			}
		}
	}
	return out.String()
}
