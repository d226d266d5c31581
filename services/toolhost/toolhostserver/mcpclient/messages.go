package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
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
	// field is what precedes a message in its line.
	field string
	// skipped receives lines of a process that are no messages.
	skipped func(line []byte)
	// first receives the first response of a process; nil once it has, or if it is not wanted.
	first func(envelope)
	// pending are the next bytes to return, and err the error after them.
	pending []byte
	err     error
}

// newMessages returns the messages of a source. field precedes each in its line.
func newMessages(source io.Reader, field string) *messages {
	return &messages{lines: bufio.NewReaderSize(source, 32<<10), field: field}
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
			m.pending, m.err = m.message(line), err
			return
		}
	}
}

// message returns a line whose message can be read. A line of a process that is none is left out:
// the SDKs for TypeScript and Python skip such lines, and servers write them unnoticed.
func (m *messages) message(line []byte) []byte {
	message, ok := bytes.CutPrefix(line, []byte(m.field))
	if !ok {
		return line
	}
	if m.first != nil {
		var e envelope
		if json.Unmarshal(message, &e) == nil && e.Method == nil && (e.Result != nil || e.Error != nil) {
			m.first(e)
			m.first = nil
		}
	}
	read, err := readable(message)
	switch {
	case err != nil && m.field == "":
		if m.skipped != nil {
			m.skipped(line)
		}
		return nil
	case err != nil, read == nil:
		return line
	}
	return append([]byte(m.field), read...)
}

// skip reads the rest of a line that is too long, and returns its substitute, nil for none.
// part are the bytes read after its start, with err.
func (m *messages) skip(start, part []byte, err error) ([]byte, error) {
	message, ok := bytes.CutPrefix(start, []byte(m.field))
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
	if response := f.substitute(); response != nil {
		return append([]byte(m.field), append(response, '\n')...), err
	}
	return nil, err
}

// bounded bounds the bytes read of the response to a request.
func bounded(response *http.Response, request *http.Request) *http.Response {
	body, kind := response.Body, response.Header.Get("Content-Type")
	var read io.Reader
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		read = newMessages(body, "data:")
	case strings.HasPrefix(kind, "application/json") && response.StatusCode == http.StatusOK && request.Method == http.MethodPost:
		read = &document{body: body, request: request}
	default:
		read = io.LimitReader(body, maxMessage)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{read, body}
	return response
}

// document is a body that is the response to one request.
type document struct {
	body    io.Reader
	request *http.Request
	read    io.Reader
}

// Read reads the response, or the error that replaces it.
func (d *document) Read(p []byte) (int, error) {
	if d.read == nil {
		data, err := io.ReadAll(io.LimitReader(d.body, maxMessage+1))
		if err != nil {
			return 0, err
		}
		if len(data) > maxMessage {
			f := &frame{}
			if err := f.feed(data); err != nil {
				return 0, err
			}
			id, err := requestID(d.request)
			if err != nil {
				return 0, err
			}
			data = substitute(id, f.key == "error" || f.failure)
		} else if read, err := readable(data); err == nil && read != nil {
			data = read
		}
		d.read = bytes.NewReader(data)
	}
	return d.read.Read(p)
}

// requestID returns the id of the message that a request has sent.
func requestID(request *http.Request) (json.RawMessage, error) {
	if request.GetBody == nil {
		return nil, errTooLarge
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var message struct{ ID json.RawMessage }
	if err := json.NewDecoder(body).Decode(&message); err != nil || len(message.ID) == 0 {
		return nil, errors.Join(errTooLarge, err)
	}
	return message.ID, nil
}
