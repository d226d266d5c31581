package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// An output is where the lines of all processes go. A line is written in one
// piece, whoever else writes at the time.
type output struct {
	colours bool
	width   int // of the longest name

	mu sync.Mutex
	w  io.Writer
}

// palette are the colours of entries, in their order, as SGR parameters.
var palette = []string{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94", "91"}

// A label is how an entry's lines begin.
type label struct {
	out    *output
	name   string
	colour string
}

func (o *output) label(name string, index int) label {
	return label{o, name, palette[index%len(palette)]}
}

// line writes a line of the process.
func (l label) line(text []byte) { l.write('|', text) }

// note writes a line about the process.
func (l label) note(format string, args ...any) { l.write('*', fmt.Appendf(nil, format, args...)) }

func (l label) write(mark byte, text []byte) {
	var line []byte
	if l.out.colours {
		line = fmt.Appendf(line, "\x1b[%sm%-*s %c\x1b[0m ", l.colour, l.out.width, l.name, mark)
	} else {
		line = fmt.Appendf(line, "%-*s %c ", l.out.width, l.name, mark)
	}
	line = append(append(line, text...), '\n')
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	_, _ = l.out.w.Write(line) // nobody listens any more: SIGPIPE stops the runner
}

// maxLine bounds a line in bytes; a longer one is broken into several.
const maxLine = 64 << 10

// copyLines writes what in says until its end. A last line without an end gets one.
func (l label) copyLines(in io.Reader) {
	lines := bufio.NewReaderSize(in, maxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if n := len(text); n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
			if n := len(text); n > 0 && text[n-1] == '\r' {
				text = text[:n-1]
			}
			l.line(text)
		} else if n > 0 {
			l.line(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
