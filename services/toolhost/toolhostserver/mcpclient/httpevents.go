package mcpclient

import (
	"bytes"
	"fmt"
)

// dataField is the field of events that has their data.
const dataField = "data:"

// events are those of a stream over HTTP. The data of one is a message, on one line or on several. Data
// that is no message is left out.
type events struct {
	answer *answerTo
	// data are the lines of the present event without the name of their field, and lines is how many.
	data  []byte
	lines int
	// large: the data of the present event are more than a message may have.
	large bool
	// resumable: an event had an id, so that the answer may follow in another stream.
	resumable bool
}

// line returns the bytes that replace a line. The line is the last one of the stream if last is set.
func (e *events) line(line []byte, last bool) []byte {
	var out []byte
	text := bytes.TrimRight(line, "\r\n")
	data, ok := bytes.CutPrefix(text, []byte(dataField))
	switch {
	case ok:
		e.add(data)
	case len(text) == 0:
		out = append(e.end(), line...)
	default:
		if id, ok := bytes.CutPrefix(text, []byte("id:")); ok && len(bytes.TrimSpace(id)) > 0 {
			e.resumable = true
		}
		if bytes.IndexByte(text, ':') >= 0 { // the SDK refuses others, which the standard permits
			out = line
		}
	}
	if !last {
		return out
	}
	if text := e.end(); text != nil {
		out = append(append(out, '\n'), text...)
	}
	if missing := e.answer.missing(); missing != nil && !e.resumable {
		out = append(append(out, '\n'), field(missing)...)
	}
	return out
}

// add adds a line of data.
func (e *events) add(data []byte) {
	if len(e.data)+len(data) > maxMessage {
		e.data, e.large = nil, true
		return
	}
	if e.lines > 0 {
		e.data = append(e.data, '\n')
	}
	e.data, e.lines = append(e.data, bytes.TrimSpace(data)...), e.lines+1
}

// end returns the data of the event that ends, as fields.
func (e *events) end() []byte {
	data, large := e.data, e.large
	e.data, e.lines, e.large = nil, 0, false
	if large && e.answer.id != nil {
		return e.substituted(substitute(e.answer.id, false))
	}
	if len(data) == 0 {
		return nil
	}
	var out []byte
	for i, message := range e.answer.take(data) {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(out, field(message)...)
	}
	return out
}

// substituted passes on a response that replaces one.
func (e *events) substituted(response []byte) []byte {
	e.data, e.lines = nil, 0
	e.answer.own = response
	return field(response)
}

// field returns a message as a field. Outside of texts, JSON has line breaks as white space only.
func field(message []byte) []byte {
	return fmt.Appendf(nil, "%s %s\n", dataField, bytes.ReplaceAll(message, []byte("\n"), []byte(" ")))
}
