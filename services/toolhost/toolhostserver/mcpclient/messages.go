package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxMessage bounds a message of a server, in bytes. A response that is larger is replaced by
	// an error, so that only its call fails.
	maxMessage = 16 << 20
	// maxSkipped bounds how much of a message that is too large is read to find its end.
	maxSkipped = 2 << 30
	// sdkMessage bounds a message for the SDK, which never receives one above maxMessage.
	sdkMessage = maxMessage + 64<<10
)

// messages passes on the lines of a server, of bounded length: one message each, or the fields of
// events.
type messages struct {
	lines *bufio.Reader
	// events are those whose fields the lines are; nil if each line is a message.
	events *events
	// skipped receives lines of a process that are no messages.
	skipped func(line []byte)
	// first receives the first response of a process; nil once it has, or if it is not wanted.
	first func(envelope)
	// pending are the next bytes to return, and err the error after them.
	pending []byte
	err     error
}

// newMessages returns the messages of a source, one a line.
func newMessages(source io.Reader) *messages {
	return &messages{lines: bufio.NewReaderSize(source, 32<<10)}
}

// Read returns the next bytes, at most to the end of a line.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.pending) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.next()
	}
	n := copy(p, m.pending)
	if m.pending = m.pending[n:]; len(m.pending) == 0 {
		m.pending = nil
	}
	return n, nil
}

// messagePipe are the messages of a process, and what closes its standard output.
type messagePipe struct {
	*messages
	io.Closer
}

// next reads a line.
func (m *messages) next() {
	var line []byte
	for {
		part, err := m.lines.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			m.pending, m.err = m.skip(line, part, err)
			return
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			m.pending, m.err = m.passed(line, err), err
			return
		}
	}
}

// passed returns the bytes that replace a line, which ends with err.
func (m *messages) passed(line []byte, err error) []byte {
	if m.events != nil {
		return m.events.line(line, errors.Is(err, io.EOF))
	}
	return m.message(line)
}

// message returns a line whose message can be read. A line of a process that is none is left out:
// the SDKs for TypeScript and Python skip such lines, and servers write them unnoticed.
func (m *messages) message(line []byte) []byte {
	if m.first != nil {
		var e envelope
		if json.Unmarshal(line, &e) == nil && e.Method == nil && (e.Result != nil || e.Error != nil) {
			m.first(e)
			m.first = nil
		}
	}
	read, err := readable(line)
	switch {
	case err != nil:
		if m.skipped != nil {
			m.skipped(line)
		}
		return nil
	case read == nil:
		return line
	}
	return read
}

// skip reads the rest of a line that is too long, and returns its substitute, nil for none.
// part are the bytes read after its start, with err.
func (m *messages) skip(start, part []byte, err error) ([]byte, error) {
	message, ok := start, true
	if m.events != nil {
		message, ok = bytes.CutPrefix(start, []byte(dataField))
	}
	f, size := &frame{invalid: !ok}, len(start)
	if failed := f.feed(message); failed != nil {
		return nil, failed
	}
	start, message = nil, nil //nolint:ineffassign,wastedassign // the memory is free while the rest is read
	for {
		if failed := f.feed(part); failed != nil {
			return nil, failed
		}
		if size += len(part); size > maxSkipped {
			return nil, errEndless
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = m.lines.ReadSlice('\n')
	}
	response := f.substitute()
	switch {
	case response == nil && m.events != nil:
		m.events.answer.fault = errTooLarge
		return m.events.line(nil, errors.Is(err, io.EOF)), err
	case response == nil:
		return nil, err
	case m.events != nil:
		return m.events.substituted(response), err
	}
	return append(response, '\n'), err
}
