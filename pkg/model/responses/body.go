package responses

import (
	"bytes"
	"encoding/json"
)

// body is a request as it is written. Opaque items become part of it byte for byte,
// which encoding/json does not promise.
type body struct {
	buffer  bytes.Buffer
	encoder *json.Encoder
	members int
	items   int
}

func newBody() *body {
	b := &body{}
	b.encoder = json.NewEncoder(&b.buffer)
	b.encoder.SetEscapeHTML(false)
	b.buffer.WriteByte('{')
	return b
}

// member writes a member.
func (b *body) member(name string, value any) error {
	b.name(name)
	return b.value(value)
}

// openInput starts the last member, the list of items.
func (b *body) openInput() {
	b.name("input")
	b.buffer.WriteByte('[')
}

// item writes an item of the input.
func (b *body) item(value any) error {
	if b.items++; b.items > 1 {
		b.buffer.WriteByte(',')
	}
	return b.value(value)
}

// end returns the whole request.
func (b *body) end() json.RawMessage {
	b.buffer.WriteString("]}")
	return b.buffer.Bytes()
}

func (b *body) name(name string) {
	if b.members++; b.members > 1 {
		b.buffer.WriteByte(',')
	}
	quoted, _ := json.Marshal(name) // a string always encodes
	b.buffer.Write(quoted)
	b.buffer.WriteByte(':')
}

// value writes a value: raw JSON unchanged, another one without the line feed that the
// encoder adds.
func (b *body) value(value any) error {
	if raw, ok := value.(json.RawMessage); ok {
		b.buffer.Write(raw)
		return nil
	}
	if err := b.encoder.Encode(value); err != nil {
		return err
	}
	b.buffer.Truncate(b.buffer.Len() - 1)
	return nil
}
