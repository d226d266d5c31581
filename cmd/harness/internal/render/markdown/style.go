package markdown

import (
	"strconv"
	"strings"
)

// colour is one of the sixteen colours of a terminal, as the parameter of an SGR
// sequence. The user's terminal defines them, so that they can be read on a light
// and on a dark background.
type colour int

const (
	noColour colour = 0
	red      colour = 31
	green    colour = 32
	blue     colour = 34
	magenta  colour = 35
	cyan     colour = 36
	grey     colour = 90
)

// style is how text looks in colour.
type style struct {
	colour                          colour
	underline, bold, italic, strike bool
}

// code returns the style of code within text of style s.
func (s style) code() style {
	s.colour = cyan
	return s
}

// link returns the style of an address within text of style s.
func (s style) link() style {
	s.colour, s.underline = blue, true
	return s
}

// linkText returns the style of a link's text within text of style s.
func (s style) linkText() style {
	s.bold = true
	return s
}

// paint puts the sequences of the style around text.
func (s style) paint(text string) string {
	var parameters []string
	for _, p := range []struct {
		on    bool
		value int
	}{{s.colour != noColour, int(s.colour)}, {s.underline, 4}, {s.bold, 1}, {s.italic, 3}, {s.strike, 9}} {
		if p.on {
			parameters = append(parameters, strconv.Itoa(p.value))
		}
	}
	if len(parameters) == 0 {
		return text
	}
	return "\x1b[" + strings.Join(parameters, ";") + "m" + text + reset
}

// mark returns a mark, or its substitute on a terminal without UTF-8.
func (l Look) mark(utf8, ascii string) string {
	if l.UTF8 {
		return utf8
	}
	return ascii
}
