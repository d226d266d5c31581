// Package rendertest is a test terminal: it takes the bytes that a program writes and
// returns its screen and its scrollback. It implements the few sequences that this
// program uses, and reports every other one as a fault.
package rendertest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// row is a line of the screen, a cluster of characters in each column; the second
// column of a wide one is empty.
type row struct {
	cells []string
	// on reports whether the line continues in the next row.
	on bool
}

// Terminal is a terminal. New returns one; the zero value is not usable.
type Terminal struct {
	width, height int
	past          []row
	rows          []row
	x, y          int
	pending       []byte
	// Strange has the sequences and control characters that it does not implement.
	Strange []string
	// Hidden reports whether the cursor is hidden.
	Hidden bool
	// Frames counts synchronized updates; Synced reports whether one is open.
	Frames int
	Synced bool
}

// New returns an empty terminal.
func New(width, height int) *Terminal {
	t := &Terminal{width: width, height: height}
	t.rows = make([]row, 1, height)
	return t
}

// Write takes bytes. It never fails.
func (t *Terminal) Write(p []byte) (int, error) {
	t.pending = append(t.pending, p...)
	return len(p), nil
}

// play processes the written bytes.
func (t *Terminal) play() {
	var state byte
	rest := string(t.pending)
	t.pending = nil
	for rest != "" {
		seq, width, n, next := ansi.DecodeSequence(rest, state, nil)
		rest, state = rest[n:], next
		switch {
		case width > 0:
			t.put(seq, width)
		case seq == "\r":
			t.x = 0
		case seq == "\n":
			t.down()
		case strings.HasPrefix(seq, "\x1b["):
			t.control(seq)
		case seq != "" && (seq[0] < ' ' || seq[0] == 0x7f || seq[0] >= 0x80 && seq[0] < 0xa0):
			t.Strange = append(t.Strange, strconv.Quote(seq))
		}
	}
}

func (t *Terminal) put(cluster string, width int) {
	if t.x+width > t.width {
		t.rows[t.y].on = true
		t.x = 0
		t.down()
	}
	r := &t.rows[t.y]
	for len(r.cells) < t.x+width {
		r.cells = append(r.cells, " ")
	}
	r.cells[t.x] = cluster
	for i := 1; i < width; i++ {
		r.cells[t.x+i] = ""
	}
	t.x += width
}

func (t *Terminal) down() {
	t.y++
	if t.y == len(t.rows) {
		t.rows = append(t.rows, row{})
	}
	if len(t.rows) > t.height {
		t.past, t.rows = append(t.past, t.rows[0]), t.rows[1:]
		t.y--
	}
}

func (t *Terminal) control(seq string) {
	final, n := seq[len(seq)-1], 1
	if v, err := strconv.Atoi(seq[2 : len(seq)-1]); err == nil {
		n = v
	}
	switch {
	case final == 'm':
	case seq == "\x1b[?25l", seq == "\x1b[?25h":
		t.Hidden = final == 'l'
	case seq == "\x1b[?2026h", seq == "\x1b[?2026l":
		t.Synced = final == 'h'
		if t.Synced {
			t.Frames++
		}
	case final == 'A':
		t.y = max(0, t.y-n)
	case seq == "\x1b[J":
		t.rows[t.y].cut(t.x)
		t.rows = t.rows[:t.y+1]
	case seq == "\x1b[2K":
		t.rows[t.y] = row{}
	default:
		t.Strange = append(t.Strange, strconv.Quote(seq))
	}
}

func (r *row) cut(x int) {
	r.cells, r.on = r.cells[:min(len(r.cells), x)], false
}

// Resize changes the size and breaks lines again, as most terminals do.
func (t *Terminal) Resize(width, height int) {
	t.play()
	all := append(append([]row(nil), t.past...), t.rows...)
	at := len(t.past) + t.y
	next := New(width, height)
	x, y, seen := 0, 0, 0 // the new place of the cursor, in rows from the top
	for i := 0; i < len(all); i++ {
		var line []string
		column := -1
		for ; ; i++ {
			if i == at {
				column = len(line) + t.x
			}
			line = append(line, all[i].cells...)
			if !all[i].on || i+1 == len(all) {
				break
			}
		}
		parts := broken(line, width)
		if column >= 0 {
			y, x = seen+min(len(parts)-1, column/width), column%width
			if column > 0 && column == len(parts)*width {
				x = width
			}
		}
		next.past = append(next.past, parts...)
		seen += len(parts)
	}
	top := max(0, len(next.past)-height)
	if top > y {
		top = y
	}
	next.rows, next.past = append([]row(nil), next.past[top:]...), next.past[:top]
	next.x, next.y = x, y-top
	next.Strange, next.Hidden, next.Frames, next.Synced = t.Strange, t.Hidden, t.Frames, t.Synced
	*t = *next
}

func broken(line []string, width int) []row {
	rows := []row{{}}
	for i := 0; i < len(line); {
		n := 1
		for i+n < len(line) && line[i+n] == "" {
			n++
		}
		if len(rows[len(rows)-1].cells)+n > width {
			rows[len(rows)-1].on = true
			rows = append(rows, row{})
		}
		last := &rows[len(rows)-1]
		last.cells = append(last.cells, line[i:i+n]...)
		i += n
	}
	return rows
}

// Screen are the lines on the screen, without spaces at their ends.
func (t *Terminal) Screen() []string {
	t.play()
	return texts(t.rows)
}

// All are the lines of the scrollback and the screen. A line that the terminal broke
// because it was too long is one line.
func (t *Terminal) All() []string {
	t.play()
	var lines []row
	on := false
	for _, r := range append(append([]row(nil), t.past...), t.rows...) {
		if on {
			last := &lines[len(lines)-1]
			last.cells = append(append([]string(nil), last.cells...), r.cells...)
		} else {
			lines = append(lines, r)
		}
		on = r.on
	}
	out := texts(lines)
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// Faults returns the faults of the bytes written so far, empty if there is none: unknown
// sequences, and states that a program must not leave open.
func (t *Terminal) Faults() string {
	t.play()
	switch {
	case len(t.Strange) > 0:
		return fmt.Sprint("it does not know ", t.Strange)
	case t.Hidden:
		return "the cursor is left hidden"
	case t.Synced:
		return "an update is left open"
	case t.x != 0:
		return fmt.Sprintf("the cursor is left in column %d", t.x)
	}
	return ""
}

func texts(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimRight(strings.Join(r.cells, ""), " "))
	}
	return out
}
