// Package markdown renders what a model writes as Markdown into lines for a
// terminal, block by block, also while it is being written.
//
// What comes out holds no control characters but SGR sequences, and those only
// where colour is allowed; whatever a text does to sneak others in, as characters
// or as entities, becomes visible. Each line is complete: what it switches on it
// switches off.
package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"charm.land/glamour/v2"
	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/charmbracelet/x/ansi"
)

// Look is how text looks.
type Look struct {
	// Width is that of a line, in columns, at least 10. Code, and a word that does not
	// fit, may be longer: broken they could not be copied.
	Width int
	// Colour allows SGR sequences. Without them, marks say what colour would.
	Colour bool
	// UTF8 allows marks beyond ASCII.
	UTF8 bool
}

// Renderer renders. It keeps what it has set up; one goroutine at a time.
type Renderer struct {
	look Look
	// prose does not break lines; tables does, at tableWidth.
	prose, tables *glamour.TermRenderer
	tableWidth    int
	// lexer is the one of language, kept for the frames in which a block grows.
	language string
	lexer    chroma.Lexer
}

// New makes a renderer.
func New(look Look) *Renderer {
	look.Width = max(look.Width, 10)
	return &Renderer{look: look}
}

// Look is how it renders.
func (r *Renderer) Look() Look { return r.look }

// Render renders a whole text, its blocks apart by a blank line.
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
	term, width, table := &r.prose, 0, table(text)
	if table {
		term, width = &r.tables, min(natural(text), r.look.Width)
		if width != r.tableWidth {
			r.tables, r.tableWidth = nil, width
		}
	}
	rendered, ok := r.render(term, width, entities(text))
	switch {
	case !ok:
		return lines(ansi.Wrap(text, r.look.Width, ""), false)
	case table:
		return lines(rendered, r.look.Colour)
	}
	return lines(r.wrap(rendered), r.look.Colour)
}

// render is what the library makes of a text; !ok when it cannot. It is given what
// anybody may write, so a panic of its own must not end the program.
func (r *Renderer) render(term **glamour.TermRenderer, width int, text string) (rendered string, ok bool) {
	defer func() {
		if recover() != nil {
			rendered, ok = "", false
		}
	}()
	if *term == nil {
		made, err := glamour.NewTermRenderer(
			glamour.WithStyles(style(r.look)), glamour.WithWordWrap(width), glamour.WithChromaFormatter(formatter),
		)
		if err != nil {
			return "", false
		}
		*term = made
	}
	rendered, err := (*term).Render(text)
	return rendered, err == nil
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

// maxHighlighted bounds the code that is highlighted, in bytes: what is longer is
// shown as it is.
const maxHighlighted = 64 << 10

// highlight colours code in a language that is known.
func (r *Renderer) highlight(code, language string) string {
	if !r.look.Colour || language == "" || len(code) > maxHighlighted {
		return code
	}
	if r.lexer == nil || r.language != language {
		r.language, r.lexer = language, lexers.Get(language) // looks through hundreds
		if r.lexer == nil {
			r.lexer = lexers.Fallback
		}
	}
	tokens, err := r.lexer.Tokenise(nil, code)
	if err != nil {
		return code
	}
	var out strings.Builder
	if formatters.Get(formatter).Format(&out, styles.Get(theme), tokens) != nil {
		return code
	}
	return out.String()
}

// lead is what stands before the words of a line: marks of quotes and items.
var lead = regexp.MustCompile(`^(?: |│ |\| )*(?:(?:• |\* |[0-9]+\. |✓ |○ |\[x\] |\[ \] )(?:✓ |○ |\[x\] |\[ \] )?)?`)

// wrap breaks lines at spaces; what goes on stands under the words above it.
func (r *Renderer) wrap(rendered string) string {
	var out []string
	for line := range strings.SplitSeq(rendered, "\n") {
		if ansi.StringWidth(line) <= r.look.Width {
			out = append(out, line)
			continue
		}
		mark := lead.FindString(ansi.Strip(line))
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
// be copied, unless it is written without spaces as a matter of course.
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

// table says that a block holds a table.
func table(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: ") == "" {
			return true
		}
	}
	return false
}

// natural is the width that a table takes when no cell is broken, and not less: marks
// that are not shown are counted too. Tables are stretched to the width they are given.
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

// expand puts spaces in place of tabs, at stops of four columns.
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
