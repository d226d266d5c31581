package redraw

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

const esc = 0x1b

// op is what a character or sequence does to a screen.
type op uint8

const (
	nothing     op = iota
	put            // draws text
	tab            // moves to the next stop
	feed           // moves to the beginning of the next row
	home           // moves to the beginning of the row
	left           // moves n columns
	right          //
	column         // moves to column n, from 1
	up             // moves n rows
	upHome         // and to the beginning of the row
	down           //
	downHome       //
	eraseAfter     // erases the row from the cursor on
	eraseBefore    // erases the row up to the cursor
	eraseLine      // erases the row
	eraseBelow     // erases all from the cursor on
	place          // names a place of the screen, or clears it
)

// move is a character or sequence.
type move struct {
	op   op
	n    int
	text string
}

// back reports whether a move at the end of a text can change the text before it.
func (m move) back() bool {
	switch m.op {
	case home, left, column, up, upHome, eraseBefore, eraseLine:
		return true
	case nothing, put, tab, feed, right, down, downHome, eraseAfter, eraseBelow, place:
	}
	return false
}

// up returns the number of rows that a move goes up.
func (m move) up() int {
	if m.op == up || m.op == upHome {
		return m.n
	}
	return 0
}

// decode returns the character or sequence at the beginning of p and its length; 0 if it is not
// complete.
func decode(p []byte) (int, move) {
	switch c := p[0]; {
	case c == esc:
		return sequence(p)
	case c == '\r':
		return 1, move{op: home}
	case c == '\n':
		return 1, move{op: feed}
	case c == '\t':
		return 1, move{op: tab}
	case c == '\b':
		return 1, move{op: left, n: 1}
	case c < ' ' || c == 0x7f:
		return 1, move{}
	case !utf8.FullRune(p):
		return 0, move{}
	}
	_, n := utf8.DecodeRune(p)
	return n, move{op: put, text: string(p[:n])}
}

// sequence decodes an escape sequence (ECMA-48). Otherwise it is the escape character alone,
// which does nothing.
func sequence(p []byte) (int, move) {
	whole, n := p[:min(len(p), maxSequence)], 0
	if len(whole) > 1 {
		n = length(whole)
	}
	switch {
	case n == 0 && len(whole) < maxSequence:
		return 0, move{}
	case n <= 1:
		return 1, move{}
	case whole[1] == 'c': // full reset
		return n, move{op: place}
	case whole[1] != '[':
		return n, move{}
	}
	return n, control(whole[2:n-1], whole[n-1])
}

// length returns the length of the escape sequence at the beginning of p, which has two bytes or
// more; 0 if it is not complete, 1 if it is none.
func length(p []byte) int {
	switch p[1] {
	case '[':
		for i, c := range p[2:] {
			switch {
			case c >= '@' && c <= '~':
				return i + 3
			case c < ' ' || c > '~':
				return 1
			}
		}
		return 0
	case ']', 'P', 'X', '^', '_': // strings, up to BEL or ESC \
		end := bytes.Index(p, []byte{esc, '\\'}) + 2
		if bell := bytes.IndexByte(p, '\a') + 1; bell > 0 && (bell < end || end == 1) {
			return bell
		}
		if end == 1 {
			return 0
		}
		return end
	}
	for i, c := range p[1:] {
		switch {
		case c >= '0' && c <= '~':
			return i + 2
		case c < ' ' || c > '~':
			return 1
		}
	}
	return 0
}

// control returns the move of a control sequence by its parameters and final byte.
func control(parameters []byte, final byte) move {
	number := 0
	if len(parameters) > 0 {
		v, err := strconv.Atoi(string(parameters))
		if err != nil || v < 0 {
			if final == 'H' || final == 'f' || final == 'r' {
				return move{op: place}
			}
			return move{} // private, or more than one number
		}
		number = min(v, maxScreen)
	}
	n := max(1, number)
	switch final {
	case 'A':
		return move{op: up, n: n}
	case 'B', 'e':
		return move{op: down, n: n}
	case 'C', 'a':
		return move{op: right, n: n}
	case 'D':
		return move{op: left, n: n}
	case 'E':
		return move{op: downHome, n: n}
	case 'F':
		return move{op: upHome, n: n}
	case 'G', '`':
		return move{op: column, n: n}
	case 'K':
		return move{op: [...]op{eraseAfter, eraseBefore, eraseLine, nothing}[min(number, 3)]}
	case 'J':
		return move{op: [...]op{eraseBelow, place}[min(number, 1)]}
	case 'H', 'f', 'd', 'r':
		return move{op: place}
	}
	return move{}
}
