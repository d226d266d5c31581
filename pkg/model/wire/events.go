package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxEvent bounds the data of an event and the length of a line, in bytes. The last event
// of some streams repeats the whole answer.
const MaxEvent = 32 << 20

// Event is one server-sent event.
type Event struct {
	// Type is the value of the event field; empty if there is none.
	Type string
	// Data is the contents of the data fields, joined by line feeds. The next call
	// of Next overwrites it.
	Data []byte
}

// Events decodes a stream of server-sent events (WHATWG HTML, section 9.2.6).
// It differs from the standard in one point: an event without the blank line
// after it is returned when the stream ends in order. Some servers leave that
// line out.
type Events struct {
	r     *bufio.Reader
	line  chunks
	data  chunks
	large func() error
	begun bool // the byte order mark has been looked for
	cr    bool // the last line ended with a carriage return
}

// newEvents returns a decoder that reads from r.
func newEvents(r io.Reader) *Events {
	if b, ok := r.(*bufio.Reader); ok {
		return &Events{r: b}
	}
	return &Events{r: bufio.NewReader(r)}
}

// Next returns the next event that has data. The error is io.EOF where the
// stream ends in order, ErrTooLarge past MaxEvent, else that of the reader.
func (e *Events) Next() (Event, error) {
	if !e.begun {
		e.begun = true
		skipMark(e.r)
	}
	var kind string
	e.data.reset()
	hasData := false
	for {
		line, err := e.readLine()
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return Event{}, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			if !hasData { // most events have one line, which is not copied
				n := copy(line, value)
				e.line, e.data, hasData = e.data, chunks{small: line[:n], n: n}, true
				break
			}
			if e.data.n+len(value) >= MaxEvent {
				return Event{}, ErrTooLarge
			}
			if err := e.admit(e.data.n); err != nil {
				return Event{}, err
			}
			e.data.add([]byte{'\n'})
			e.data.add(value)
		}
		switch {
		case (len(line) == 0 || atEnd) && hasData:
			return Event{Type: kind, Data: e.data.bytes()}, nil
		case atEnd:
			return Event{}, io.EOF
		case len(line) == 0:
			kind = ""
		}
	}
}

// readLine returns a line without its end, which is a line feed, a carriage
// return or both. It does not wait for the byte after a carriage return. The
// error is io.EOF with the last line, which may be empty.
func (e *Events) readLine() ([]byte, error) {
	e.line.reset()
	for {
		if _, err := e.r.Peek(1); err != nil {
			return e.line.bytes(), err
		}
		chunk, _ := e.r.Peek(e.r.Buffered())
		if e.cr && chunk[0] == '\n' {
			chunk = chunk[1:]
			_, _ = e.r.Discard(1)
		}
		e.cr = false
		i := bytes.IndexAny(chunk, "\r\n")
		if i < 0 {
			e.line.add(chunk)
			_, _ = e.r.Discard(len(chunk))
			if e.line.n > MaxEvent {
				return nil, ErrTooLarge
			}
			if err := e.admit(e.line.n); err != nil {
				return nil, err
			}
			continue
		}
		e.line.add(chunk[:i])
		e.cr = chunk[i] == '\r'
		_, _ = e.r.Discard(i + 1)
		if e.line.n > MaxEvent {
			return nil, ErrTooLarge
		}
		return e.line.bytes(), nil
	}
}

// admit calls large for an event of more than LargeBytes.
func (e *Events) admit(size int) error {
	if e.large == nil || size <= LargeBytes {
		return nil
	}
	return e.large()
}

// skipMark drops a byte order mark at the start of a body.
func skipMark(r *bufio.Reader) {
	const mark = "\uFEFF"
	if first, err := r.Peek(1); err != nil || first[0] != mark[0] {
		return
	}
	if b, err := r.Peek(len(mark)); err == nil && string(b) == mark {
		_, _ = r.Discard(len(mark))
	}
}
