package toolhost

import (
	"bytes"
	"fmt"
	"strings"
)

// Excerpt keeps the head and the tail of a text that is written to it. It needs at most
// head + 2 × tail bytes of memory. It is an io.Writer; Write never fails.
type Excerpt struct {
	headMax, tailMax int
	head, tail       []byte
	// Bytes and lines that are in neither head nor tail.
	lostBytes, lostLines int
}

// NewExcerpt returns an Excerpt that keeps up to head and tail bytes.
func NewExcerpt(head, tail int) *Excerpt {
	return &Excerpt{headMax: head, tailMax: tail}
}

// Write appends p.
func (e *Excerpt) Write(p []byte) (int, error) {
	n := len(p)
	if room := e.headMax - len(e.head); room > 0 {
		take := min(room, len(p))
		e.head = append(e.head, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		take := min(len(p), 2*e.tailMax-len(e.tail))
		e.tail = append(e.tail, p[:take]...)
		p = p[take:]
		if len(e.tail) == 2*e.tailMax {
			e.drop(e.tailMax)
		}
	}
	return n, nil
}

// drop removes the first n bytes of the tail.
func (e *Excerpt) drop(n int) {
	e.lostBytes += n
	e.lostLines += bytes.Count(e.tail[:n], []byte("\n"))
	e.tail = append(e.tail[:0], e.tail[n:]...)
}

// Text returns the kept text as Readable does. If the middle is missing, a line has its
// size and hint, the advice for the model on how to get it.
func (e *Excerpt) Text(hint string) string {
	if over := len(e.tail) - e.tailMax; over > 0 {
		e.drop(over)
	}
	if e.lostBytes == 0 {
		return Readable(string(e.head) + string(e.tail))
	}
	head, tail := string(e.head), string(e.tail)
	lines, size := e.lostLines, e.lostBytes
	// Cut at line breaks, unless a line is as long as half of the part.
	if i := strings.LastIndexByte(head, '\n'); i >= len(head)/2 {
		size += len(head) - (i + 1)
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		size += i + 1
		lines++
		tail = tail[i+1:]
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return Readable(fmt.Sprintf("%s[%d bytes (%d lines) left out here. %s]\n%s", head, size, lines, hint, tail))
}

// Cut shortens a text to about limit bytes by leaving out its middle. The limit does not
// include the line about the omitted part.
func Cut(text string, limit int, hint string) string {
	if len(text) <= limit {
		return Readable(text)
	}
	e := NewExcerpt(limit/2, limit-limit/2)
	_, _ = e.Write([]byte(text))
	return e.Text(hint)
}

// Readable returns a text that every model and log can process: valid UTF-8 without NUL.
// Invalid bytes and NUL become U+FFFD.
func Readable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// Clip shortens a line to limit bytes and marks the cut with an ellipsis.
func Clip(line string, limit int) string {
	if len(line) <= limit {
		return Readable(line)
	}
	return Readable(strings.ToValidUTF8(line[:limit], "")) + "…"
}

// AppendLine appends a note to a text, on its own line.
func AppendLine(text, note string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + note
}
