package openai

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members keep their order and their bytes.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// parseObject reads a JSON object; false if text is another value.
func parseObject(text []byte) (object, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, false
	}
	o := object{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} //nolint:forcetypeassert // a decoder returns no other names
		if decoder.Decode(&m.value) != nil {
			return nil, false
		}
		o = append(o, m)
	}
	_, err := decoder.Token()
	return o, err == nil
}

// value returns the value of a member; nil if it is missing or null.
func (o object) value(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// set returns the object with another value of a member, which is new at its end.
func (o object) set(name string, value json.RawMessage) object {
	for i, m := range o {
		if m.name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

func (o object) json() json.RawMessage {
	var b body
	b.open('{')
	for _, m := range o {
		b.raw(m.name, m.value)
	}
	b.end('}')
	return b.Bytes()
}

// entry is an element of an array that may grow: the bytes that came, until it changes.
type entry struct {
	raw    json.RawMessage // nil: object has changed
	object object          // empty if the element is no object
}

func parseEntry(raw json.RawMessage) entry {
	o, _ := parseObject(raw)
	return entry{raw: raw, object: o}
}

// json returns the element as JSON.
func (e entry) json() json.RawMessage {
	if e.raw != nil {
		return e.raw
	}
	return e.object.json()
}

// list returns the JSON array of entries.
func list(entries []entry) json.RawMessage {
	var b body
	b.open('[')
	for _, e := range entries {
		b.next()
		_, _ = b.Write(e.json())
	}
	b.end(']')
	return b.Bytes()
}

// text returns a value that is a string; empty for any other.
func text(value json.RawMessage) string {
	var s string
	if isString(value) && json.Unmarshal(value, &s) == nil {
		return s
	}
	return ""
}

// isString reports whether a value is a string, which may be empty.
func isString(value json.RawMessage) bool { return len(value) >= 2 && value[0] == '"' }

// join returns the string that two strings make, in their own escapes: also halves of a
// character that the server has cut in two fit again. It may change the bytes of a. A
// value that is no string counts as empty.
func join(a, b json.RawMessage) json.RawMessage {
	switch {
	case !isString(b):
		return a
	case !isString(a):
		return b
	}
	return append(a[:len(a)-1], b[1:]...)
}
