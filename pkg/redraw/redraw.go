// Package redraw turns the output of a program into the text that a terminal shows at the end.
//
// Progress bars print a line many times: a carriage return, backspaces or an escape sequence
// move the cursor back, and the next frame is drawn over the last one. A reader of the text gets
// each frame, a person at a terminal sees the last. [Filter] keeps the last frame.
//
// Text that draws over nothing passes unchanged, byte for byte: colours, links, and line ends of
// CR LF. A line that is drawn over loses its colours and the blanks at its end. Lines are as wide
// as they need; a program that moves right stops at column 80. Sequences that name a place of the
// screen, as full-screen programs use, are no redraw of a line: they pass unchanged.
package redraw

import (
	"bytes"
	"io"
	"strings"
)

const (
	// reach is how many bytes before the cursor can be drawn over, at least; at most twice as many.
	reach = 16 << 10
	// maxScreen bounds the lines and columns of the lines that are drawn over.
	maxScreen = 16 << 10
	// maxSequence bounds an escape sequence, and a run of carriage returns, in bytes.
	maxSequence = 4 << 10
	// columns is where a cursor stops that moves right over nothing.
	columns = 80
)

// Text returns a whole text as a terminal shows it at the end.
func Text(text string) string {
	if !strings.ContainsAny(text, back) {
		return text
	}
	var out bytes.Buffer
	f := NewFilter(&out)
	_, _ = f.Write([]byte(text)) // a buffer takes all
	_ = f.Close()
	return out.String()
}

// back has the characters that move a cursor back, or begin a sequence that does.
const back = "\r\b\x1b"

// plain reports whether a text has none of back.
func plain(p []byte) bool {
	return bytes.IndexByte(p, '\r') < 0 && bytes.IndexByte(p, esc) < 0 && bytes.IndexByte(p, '\b') < 0
}

// Filter is an io.WriteCloser that passes on the text that a terminal shows at the end. It keeps at most
// about 64 KiB of text, and passes on the rest. The result does not depend on how the text is
// divided into writes. Close passes on the rest.
type Filter struct {
	out io.Writer
	// text is the newest text that has not been passed on and that is not on the screen.
	text []byte
	// partial is the beginning of a character or sequence.
	partial []byte
	// screen has the lines after text that are drawn over; nil if there are none.
	screen *screen
	err    error
}

// NewFilter returns a Filter that writes to out.
func NewFilter(out io.Writer) *Filter { return &Filter{out: out} }

// Write takes the next piece of the text. It fails if a write to the underlying writer fails.
func (f *Filter) Write(p []byte) (int, error) {
	n := len(p)
	if len(f.partial) > 0 {
		p = append(f.partial, p...)
		f.partial = nil
	}
	if f.screen == nil && plain(p) {
		f.keep(p)
		return n, f.err
	}
	for len(p) > 0 {
		if f.screen == nil {
			i := bytes.IndexAny(p, back)
			if i < 0 {
				f.keep(p)
				break
			}
			f.keep(p[:i])
			p = p[i:]
		}
		used := f.step(p)
		if used == 0 {
			f.partial = bytes.Clone(p)
			break
		}
		p = p[used:]
	}
	return n, f.err
}

// Close passes on the rest. It does not close the underlying writer.
func (f *Filter) Close() error {
	if f.screen == nil {
		f.keep(f.partial)
	}
	f.render()
	f.pass(len(f.text))
	f.partial = nil
	return f.err
}

// keep adds to the text that has not been passed on, and passes on the part that nothing can draw over:
// whole lines, unless one is longer than reach.
func (f *Filter) keep(p []byte) {
	for len(p) > 0 {
		n := min(len(p), 2*reach-len(f.text))
		f.text = append(f.text, p[:n]...)
		p = p[n:]
		if len(f.text) == 2*reach {
			f.pass(reach + bytes.IndexByte(f.text[reach:], '\n') + 1)
		}
	}
}

// pass passes on the first n bytes of the text.
func (f *Filter) pass(n int) {
	f.write(f.text[:n])
	f.text = append(f.text[:0], f.text[n:]...)
}

func (f *Filter) write(p []byte) {
	if f.err == nil && len(p) > 0 {
		_, f.err = f.out.Write(p)
	}
}

// step processes the character or sequence at the beginning of p, and returns its length; 0 if
// it is not complete. Without a screen it is a carriage return, a backspace or a sequence.
func (f *Filter) step(p []byte) int {
	if f.screen == nil && p[0] == '\r' {
		n := len(p) - len(bytes.TrimLeft(p, "\r"))
		switch {
		case n >= maxSequence:
		case n == len(p):
			return 0
		case p[n] == '\n':
			f.keep(p[:n])
			return n
		}
	}
	n, m := decode(p)
	switch {
	case n == 0:
		return 0
	case m.op == place:
		f.render()
		f.keep(p[:n])
		return n
	case f.screen == nil && !m.back():
		f.keep(p[:n])
		return n
	case f.screen == nil:
		f.screen = &screen{rows: []row{nil}}
		f.screen.drawLine(f.take())
	}
	s := f.screen
	for m.up() > s.y && len(f.text) > 0 && f.text[len(f.text)-1] == '\n' {
		f.text = f.text[:len(f.text)-1]
		s.insert(f.take())
	}
	s.draw(m)
	if m.op == feed && s.y == len(s.rows)-1 && len(s.rows[s.y]) == 0 || s.size > maxScreen {
		f.render()
	}
	return n
}

// take removes the last line from the text and returns it.
func (f *Filter) take() []byte {
	from := bytes.LastIndexByte(f.text, '\n') + 1
	line := f.text[from:]
	f.text = f.text[:from]
	return line
}

// render makes text of the screen.
func (f *Filter) render() {
	if f.screen == nil {
		return
	}
	text := f.screen.text()
	f.screen = nil
	f.keep(text)
}
