package markdown

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	extast "github.com/yuin/goldmark/extension/ast"
)

// note is a link of a table, whose address follows the table.
type note struct {
	text, address string
	image         bool
}

// table prints a table and the addresses of its links.
func (p *printer) table(n *extast.Table) []string {
	var notes []note
	p.notes = &notes
	defer func() { p.notes = nil }()
	t := table.New().Width(p.width).Wrap(true).
		Border(lipgloss.Border{
			Top: p.look.mark("─", "-"), Bottom: p.look.mark("─", "-"), Left: p.look.mark("│", "|"), Right: p.look.mark("│", "|"), Middle: p.look.mark("┼", "+"),
		}).
		BorderTop(false).BorderLeft(false).BorderRight(false).BorderBottom(false).
		StyleFunc(func(_, column int) lipgloss.Style {
			s := lipgloss.NewStyle().Margin(0, 1)
			if column < len(n.Alignments) {
				switch n.Alignments[column] {
				case extast.AlignCenter:
					s = s.Align(lipgloss.Center)
				case extast.AlignRight:
					s = s.Align(lipgloss.Right)
				case extast.AlignLeft, extast.AlignNone:
				}
			}
			return s
		})
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, p.inline(cell, p.base))
		}
		if row.Kind() == extast.KindTableHeader {
			t.Headers(cells...)
		} else {
			t.Row(cells...)
		}
	}
	lines := strings.Split(t.String(), "\n")
	for _, images := range []bool{false, true} {
		number := 0
		for _, link := range notes {
			if link.image != images {
				continue
			}
			if number++; number == 1 {
				lines = append(lines, "")
			}
			label := "[" + strconv.Itoa(number) + "]: " + link.text
			if !images {
				label = p.paint(p.base.linkText(), label)
				link.address = p.paint(p.base.link(), link.address)
			}
			lines = append(lines, label+" "+link.address)
		}
	}
	return lines
}

// number returns the number of a link among those of its kind in the table.
func (p *printer) number(link note) string {
	if !slices.Contains(*p.notes, link) {
		*p.notes = append(*p.notes, link)
	}
	n := 0
	for _, have := range *p.notes {
		if have.image == link.image {
			n++
		}
		if have == link {
			break
		}
	}
	return "[" + strconv.Itoa(n) + "]"
}
