// Package screen writes to a terminal whose last lines are live: it redraws them,
// while finished lines go up above them into the scrollback and never change again.
//
// It uses only relative moves, so that earlier text on the terminal stays, and all
// text can be scrolled to, copied and resized. A frame is one write, which terminals
// with synchronized output (mode 2026) show without flicker.
package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const (
	begin      = "\x1b[?2026h"
	end        = "\x1b[?2026l"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseLine  = "\x1b[2K"
	eraseBelow = "\x1b[J"
)

// Screen is the end of a terminal. Without live lines the cursor is at the beginning
// of a free line, else at the end of the last live line.
type Screen struct {
	w io.Writer
	// last is the current frame.
	last []string
	// width is the width of the terminal at that frame.
	width int
	err   error
}

// New returns a Screen that writes to w. The cursor must be at the beginning of a line.
func New(w io.Writer) *Screen { return &Screen{w: w} }

// Err returns the first error of a write; nothing is written after it.
func (s *Screen) Err() error { return s.err }

// Frame writes lines above the live ones and redraws those, on a terminal of width
// columns and height rows. Lines above may be longer than width; live ones are cut,
// and the first are left out if there is no room for all.
func (s *Screen) Frame(above, live []string, width, height int) {
	width, height = max(width, 2), max(height, 2)
	live = live[max(0, len(live)-(height-1)):]
	cut := make([]string, len(live))
	for i, line := range live {
		cut[i] = ansi.Truncate(line, width-1, "")
	}
	if len(above) == 0 && width == s.width && slices.Equal(cut, s.last) {
		return
	}
	keep := 0 // lines at the top that need no drawing
	if len(above) == 0 && width == s.width {
		for keep < len(cut)-1 && keep < len(s.last) && cut[keep] == s.last[keep] {
			keep++
		}
	}
	var b strings.Builder
	b.WriteString(begin)
	if len(s.last) == 0 && len(cut) > 0 {
		b.WriteString(hideCursor)
	}
	s.home(&b, width, keep)
	for _, line := range above {
		// Lines are erased before they are written: some terminals remember the length of
		// a line that is only erased after its text, and break it when they shrink.
		if ansi.StringWidth(line) > width {
			b.WriteString(eraseBelow)
		}
		b.WriteString(eraseLine + line + "\r\n")
	}
	for i, line := range cut[keep:] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(eraseLine + line)
	}
	if len(s.last) > 0 {
		b.WriteString(eraseBelow)
	}
	if len(s.last) > 0 && len(cut) == 0 {
		b.WriteString(showCursor)
	}
	b.WriteString(end)
	s.last, s.width = cut, width
	if s.err == nil {
		_, s.err = io.WriteString(s.w, b.String())
	}
}

// home moves to the beginning of a live line, from 0. A terminal that became narrower
// has broken lines that were too long for it.
func (s *Screen) home(b *strings.Builder, width, line int) {
	if len(s.last) == 0 {
		return
	}
	rows := -1
	for _, text := range s.last[min(line, len(s.last)-1):] {
		// Wrapped, not divided: a wide character that does not fit leaves a column free.
		rows += 1 + strings.Count(ansi.Hardwrap(text, width, true), "\n")
	}
	b.WriteString("\r")
	if rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
	if line >= len(s.last) {
		b.WriteString("\r\n")
	}
	if width < s.width {
		b.WriteString(eraseBelow)
	}
}

// Plain writes lines without sequences, to a file or a pipe.
func (s *Screen) Plain(lines []string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, strings.Join(lines, "\n")+"\n")
	}
}
