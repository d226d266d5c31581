package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// frame reads a JSON object of any size, and keeps only what identifies it as a message: its id,
// and which members it has.
type frame struct {
	depth            int
	quoted, escaped  bool
	value            bool // at depth 1: after a colon
	text             []byte
	key              string
	id               json.RawMessage
	result, failure  bool
	request, invalid bool
}

// maxScalar bounds the keys and scalars that a frame keeps, in bytes.
const maxScalar = 256

// Reasons why bytes are not a message.
var (
	errNoMessage = errors.New("it wrote something that is not a message of the protocol")
	errEndless   = fmt.Errorf("it wrote a message of more than %d MiB", maxSkipped>>20)
)

// feed reads the next bytes. The error is errNoMessage.
func (f *frame) feed(data []byte) error {
	for len(data) > 0 && !f.invalid {
		if f.quoted {
			data = f.string(data)
			continue
		}
		f.structure(data[0])
		data = data[1:]
	}
	if f.invalid {
		return errNoMessage
	}
	return nil
}

// string reads a part of a string, and returns what follows.
func (f *frame) string(data []byte) []byte {
	if f.escaped {
		f.keep(data[:1])
		f.escaped = false
		return data[1:]
	}
	end := bytes.IndexAny(data, `"\`)
	if end < 0 {
		f.keep(data)
		return nil
	}
	f.keep(data[:end+1])
	if data[end] == '"' {
		f.quoted = false
	} else {
		f.escaped = true
	}
	return data[end+1:]
}

// structure reads a byte outside of strings.
func (f *frame) structure(b byte) {
	switch {
	case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		return
	case f.depth == 0 && (b != '{' || f.text != nil):
		f.invalid = true
		return
	case f.depth == 0:
		f.text = []byte{}
	}
	switch b {
	case '"':
		f.quoted = true
		f.keep([]byte{b})
	case '{', '[':
		f.depth++
	case '}', ']':
		if f.depth == 1 {
			f.member()
		}
		f.depth--
	case ':':
		if f.depth == 1 {
			_ = json.Unmarshal(f.text, &f.key)
			f.text, f.value = f.text[:0], true
		}
	case ',':
		if f.depth == 1 {
			f.member()
		}
	default:
		f.keep([]byte{b})
	}
}

// keep adds bytes to the present key or scalar.
func (f *frame) keep(data []byte) {
	if f.depth == 1 {
		f.text = append(f.text, data[:min(len(data), maxScalar-len(f.text))]...)
	}
}

// member records the member that ends.
func (f *frame) member() {
	if f.value {
		switch f.key {
		case "id":
			f.id = bytes.Clone(f.text)
		case "result":
			f.result = true
		case "error":
			f.failure = true
		case "method":
			f.request = true
		}
	}
	f.text, f.key, f.value = f.text[:0], "", false
}

// tooLargeCode is the code of errors that replace messages that are too large.
const tooLargeCode = -32098

// substitute returns the response that replaces the frame, if it is one to a request; nil if not.
func (f *frame) substitute() []byte {
	if f.depth != 0 || f.request || !f.result && !f.failure || !json.Valid(f.id) {
		return nil
	}
	return substitute(f.id, f.failure)
}

// substitute returns a response that replaces one that is too large: a result, or an error.
func substitute(id json.RawMessage, failure bool) []byte {
	code, message := tooLargeCode, errTooLarge.Error()
	if failure {
		code, message = -32603, fmt.Sprintf("an error of more than %d MiB", maxMessage>>20)
	}
	return errorResponse(id, int64(code), errors.New(message))
}

// tooLarge reports whether an error is that of a call whose result was too large.
func tooLarge(err error) bool {
	e := rpcError(err)
	return e != nil && e.Code == tooLargeCode && e.Message == errTooLarge.Error()
}
