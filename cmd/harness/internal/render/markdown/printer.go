package markdown

import (
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// newParser returns a parser of GitHub's Markdown with definition lists.
func newParser() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.GFM, extension.DefinitionList)).Parser()
}

// printer turns a syntax tree into lines of text and SGR sequences. It breaks
// lines only in tables.
type printer struct {
	look   Look
	source []byte
	width  int     // of a table, in columns
	base   style   // of the block that is printed
	notes  *[]note // the links of the table that is printed; nil outside of one
	code   func(code, language string) string
}

// blocks prints the children of a node, with a blank line between them unless
// the first is a heading.
func (p *printer) blocks(parent ast.Node) (lines []string) {
	heading := false
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		printed := p.block(n)
		if len(printed) == 0 {
			continue
		}
		if len(lines) > 0 && !heading {
			lines = append(lines, "")
		}
		lines = append(lines, printed...)
		heading = n.Kind() == ast.KindHeading
	}
	return lines
}

func (p *printer) block(node ast.Node) []string {
	switch n := node.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		return nonBlank(p.inline(n, p.base))
	case *ast.Heading:
		return p.heading(n)
	case *ast.Blockquote:
		return prefixed(p.blocks(n), p.look.mark("│ ", "| "), p.look.mark("│ ", "| "))
	case *ast.List:
		return p.list(n)
	case *ast.ThematicBreak:
		return []string{p.look.mark("────────", "--------")}
	case *ast.FencedCodeBlock:
		return p.codeBlock(n, string(n.Language(p.source)))
	case *ast.CodeBlock:
		return p.codeBlock(n, "")
	case *ast.HTMLBlock:
		raw := string(n.Lines().Value(p.source))
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(p.source))
		}
		return nonBlank(withoutTags(raw))
	case *extast.Table:
		return p.table(n)
	case *extast.DefinitionList:
		return p.definitions(n)
	default:
		return p.blocks(n)
	}
}

func (p *printer) heading(n *ast.Heading) []string {
	outer := p.base
	defer func() { p.base = outer }()
	prefix := strings.Repeat("#", n.Level) + " "
	if p.look.Colour {
		p.base.colour, p.base.bold = blue, true
		if n.Level <= 2 {
			p.base.underline, prefix = true, ""
		}
	}
	return []string{p.paint(p.base, prefix) + strings.ReplaceAll(p.inline(n, p.base), "\n", " ")}
}

// list prints items without blank lines between them. What follows the first
// line of an item is indented by two columns.
func (p *printer) list(n *ast.List) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := p.look.mark("• ", "* ")
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		if first := item.FirstChild(); first != nil {
			if box, ok := first.FirstChild().(*extast.TaskCheckBox); ok {
				marker = p.look.mark("○ ", "[ ] ")
				if box.IsChecked {
					marker = p.look.mark("✓ ", "[x] ")
				}
			}
		}
		lines = append(lines, prefixed(p.item(item), marker, "  ")...)
	}
	return lines
}

// item prints the blocks of an item. A paragraph that follows another block is
// set off by a blank line.
func (p *printer) item(item ast.Node) []string {
	var lines []string
	for n := item.FirstChild(); n != nil; n = n.NextSibling() {
		printed := p.block(n)
		if n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock {
			for i, line := range printed { // the item indents it already
				printed[i] = strings.TrimPrefix(line, "  ")
			}
		}
		if len(lines) > 0 && n.Kind() == ast.KindParagraph {
			lines = append(lines, "")
		}
		if n == item.FirstChild() && n.Kind() != ast.KindParagraph && n.Kind() != ast.KindTextBlock {
			lines = append(lines, "") // the marker has the line for itself
		}
		lines = append(lines, printed...)
	}
	if len(lines) == 0 {
		return []string{""}
	}
	return lines
}

func (p *printer) codeBlock(n ast.Node, language string) []string {
	code := strings.TrimRight(string(n.Lines().Value(p.source)), "\n ")
	return prefixed(strings.Split(p.code(code, language), "\n"), "  ", "  ")
}

func (p *printer) definitions(list ast.Node) (lines []string) {
	for n := list.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == extast.KindDefinitionDescription {
			lines = append(lines, prefixed(p.blocks(n), "  ", "  ")...)
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, nonBlank(p.inline(n, p.base))...)
	}
	return lines
}

// inline prints the inline children of a node. A line break is a line feed.
func (p *printer) inline(parent ast.Node, s style) string {
	var out strings.Builder
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		switch n := node.(type) {
		case *ast.Text:
			out.WriteString(p.paint(s, unescape(html.UnescapeString(string(n.Segment.Value(p.source))))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteString("\n")
			}
		case *ast.String:
			out.WriteString(p.paint(s, string(n.Value)))
		case *ast.CodeSpan:
			out.WriteString(p.marked(p.base.code(), "`", html.UnescapeString(plain(n, p.source))))
		case *ast.Emphasis:
			inner, mark := s, "*"
			if n.Level > 1 {
				inner.bold, mark = true, "**"
			} else {
				inner.italic = true
			}
			out.WriteString(p.enclosed(mark, p.inline(n, inner)))
		case *extast.Strikethrough:
			inner := s
			inner.strike = true
			out.WriteString(p.enclosed("~~", p.inline(n, inner)))
		case *ast.Link:
			out.WriteString(p.link(p.inline(n, p.base.linkText()), plain(n, p.source), string(n.Destination)))
		case *ast.AutoLink:
			out.WriteString(p.autoLink(n))
		case *ast.Image:
			out.WriteString(p.image(plain(n, p.source), string(n.Destination)))
		case *ast.RawHTML:
			out.WriteString(p.paint(s, withoutTags(string(n.Segments.Value(p.source)))))
		case *extast.TaskCheckBox: // the marker of the item shows it
		default:
			out.WriteString(p.inline(n, s))
		}
	}
	return out.String()
}

// link prints a text and its address.
func (p *printer) link(shown, text, address string) string {
	if p.notes != nil {
		return p.paint(p.base.linkText(), text+p.number(note{text: text, address: address}))
	}
	if u, err := url.Parse(address); err != nil || "#"+u.Fragment == address {
		return shown
	}
	return shown + " " + p.paint(p.base.link(), address)
}

func (p *printer) autoLink(n *ast.AutoLink) string {
	address := string(n.URL(p.source))
	switch {
	case p.notes != nil:
		text := "link"
		if u, err := url.Parse(address); err == nil {
			text = u.Hostname()
		}
		return p.link("", text, address)
	case n.AutoLinkType == ast.AutoLinkEmail:
		return p.paint(p.base.linkText(), address)
	default:
		return p.paint(p.base.link(), address)
	}
}

func (p *printer) image(text, address string) string {
	if p.notes != nil {
		if u, err := url.Parse(address); text == "" && err == nil {
			text = u.Hostname()
		}
		return p.paint(p.base, text+p.number(note{text, address, true}))
	}
	return p.paint(p.base, text+" "+address)
}

// marked paints text, or puts marks around it where there is no colour.
func (p *printer) marked(s style, mark, text string) string {
	if p.look.Colour {
		return p.paint(s, text)
	}
	return mark + text + mark
}

// enclosed puts marks around text that has been painted where there is no
// colour.
func (p *printer) enclosed(mark, text string) string {
	if p.look.Colour || text == "" {
		return text
	}
	return mark + text + mark
}

func (p *printer) paint(s style, text string) string {
	if !p.look.Colour || text == "" {
		return text
	}
	return s.paint(text)
}

// plain returns the text below a node without styles.
func plain(parent ast.Node, source []byte) string {
	var out strings.Builder
	for node := parent.FirstChild(); node != nil; node = node.NextSibling() {
		switch n := node.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				out.WriteString(" ")
			}
		case *ast.String:
			out.Write(n.Value)
		default:
			out.WriteString(plain(n, source))
		}
	}
	return out.String()
}

// escapable are the characters that a backslash escapes.
const escapable = "\\`*_{}[]<>()#+-.!|"

// unescape removes the backslashes in front of characters that they escape.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(escapable, text[i+1]) >= 0 {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// tags matches what withoutTags removes: comments, scripts and style sheets with
// their content, and tags.
var tags = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)\s*>|</?[a-z!?][^>]*>`)
})

// withoutTags returns the text of HTML.
func withoutTags(raw string) string {
	return html.UnescapeString(strings.TrimSpace(tags().ReplaceAllString(raw, "")))
}

// nonBlank returns text as one line, or no line if it is blank.
func nonBlank(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []string{strings.ReplaceAll(text, "\n", " ")}
}

// prefixed puts a prefix before the first line and another before the others.
func prefixed(lines []string, first, other string) []string {
	for i, line := range lines {
		if i == 0 {
			lines[i] = first + line
		} else {
			lines[i] = other + line
		}
	}
	return lines
}

// parse returns the syntax tree of source.
func parse(p parser.Parser, source []byte) ast.Node { return p.Parse(text.NewReader(source)) }
