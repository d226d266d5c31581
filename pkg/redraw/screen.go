package redraw

import (
	"bytes"

	"github.com/charmbracelet/x/ansi"
)

// row is a line of a screen: the text of each column. The columns after the first of a wide
// character or tab are empty.
type row []string

// screen has lines that are drawn over, and the place of the cursor.
type screen struct {
	rows []row
	x, y int
	// size is the number of rows and columns.
	size int
}

// drawLine draws the characters of a line without its end.
func (s *screen) drawLine(line []byte) {
	for len(line) > 0 {
		n, m := decode(line)
		if n == 0 {
			n, m = 1, move{op: put, text: string(line[:1])}
		}
		s.draw(m)
		line = line[n:]
	}
}

// insert adds a line above the first.
func (s *screen) insert(line []byte) {
	above := screen{rows: []row{nil}}
	above.drawLine(line)
	s.rows = append(above.rows, s.rows...)
	s.y += len(above.rows)
	s.size += above.size + 1
}

// draw applies a move.
func (s *screen) draw(m move) {
	switch m.op {
	case nothing, place:
	case put:
		s.put(m.text)
	case tab:
		s.tab()
	case feed:
		s.down(1)
		s.x = 0
	case home:
		s.x = 0
	case left:
		s.x = max(0, s.x-m.n)
	case right:
		s.column(s.x + m.n)
	case column:
		s.column(m.n - 1)
	case up, upHome:
		s.y = max(0, s.y-m.n)
	case down, downHome:
		s.y = min(len(s.rows)-1, s.y+m.n)
	case eraseAfter:
		s.cut(s.x)
	case eraseBefore:
		s.blank(0, s.x+1)
	case eraseLine:
		s.cut(0)
	case eraseBelow:
		s.cut(s.x)
		for _, r := range s.rows[s.y+1:] {
			s.size -= len(r) + 1
		}
		s.rows = s.rows[:s.y+1]
	}
	if m.op == upHome || m.op == downHome {
		s.x = 0
	}
}

// down moves the cursor n rows down, and adds rows if there are none.
func (s *screen) down(n int) {
	for s.y += n; s.y >= len(s.rows); s.size++ {
		s.rows = append(s.rows, nil)
	}
}

// column moves the cursor to a column, at most the end of the row or that of the terminal.
func (s *screen) column(x int) { s.x = min(x, max(columns-1, len(s.rows[s.y]))) }

// put draws a character at the cursor. One without a width joins the character before it.
func (s *screen) put(text string) {
	width := 1
	if len(text) > 1 {
		width = ansi.StringWidth(text)
	}
	if width == 0 {
		s.join(text)
		return
	}
	s.fill(s.x + width)
	s.blank(s.x, s.x+width)
	r := s.rows[s.y]
	r[s.x] = text
	for i := s.x + 1; i < s.x+width; i++ {
		r[i] = ""
	}
	s.x += width
}

// maxJoined bounds the text of a column, in bytes.
const maxJoined = 64

// join adds a character without a width to the one before the cursor.
func (s *screen) join(text string) {
	r, i := s.rows[s.y], min(s.x, len(s.rows[s.y]))-1
	for i > 0 && r[i] == "" {
		i--
	}
	if i >= 0 && len(r[i]) < maxJoined {
		r[i] += text
	}
}

// tab moves to the next stop, as a tab at the end of a row.
func (s *screen) tab() {
	const stop = 8
	next := (s.x/stop + 1) * stop
	if s.x >= len(s.rows[s.y]) {
		at := s.x
		s.fill(next)
		r := s.rows[s.y]
		r[at] = "\t"
		for i := at + 1; i < next; i++ {
			r[i] = ""
		}
	}
	s.x = next
}

// fill adds blanks to the row of the cursor until it has n columns.
func (s *screen) fill(n int) {
	r := s.rows[s.y]
	for ; len(r) < n; s.size++ {
		r = append(r, " ")
	}
	s.rows[s.y] = r
}

// blank replaces the columns from up to to by blanks, and with them all of a wide character of
// which they are a part.
func (s *screen) blank(from, to int) {
	r := s.rows[s.y]
	to = min(to, len(r))
	for from > 0 && from < len(r) && r[from] == "" {
		from--
	}
	for to > from && to < len(r) && r[to] == "" {
		to++
	}
	for i := from; i < to; i++ {
		r[i] = " "
	}
}

// cut removes the columns from x on.
func (s *screen) cut(x int) {
	if r := s.rows[s.y]; x < len(r) {
		s.blank(x, len(r))
		s.size -= len(r) - x
		s.rows[s.y] = r[:x]
	}
}

// text returns the lines without the blanks at their ends, and without empty lines below the
// cursor.
func (s *screen) text() []byte {
	for last := len(s.rows) - 1; last > s.y && len(s.rows[last].text()) == 0; last-- {
		s.rows = s.rows[:last]
	}
	var b bytes.Buffer
	for i, r := range s.rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.Write(r.text())
	}
	return b.Bytes()
}

func (r row) text() []byte {
	var b []byte
	for _, c := range r {
		b = append(b, c...)
	}
	return bytes.TrimRight(b, " ")
}
