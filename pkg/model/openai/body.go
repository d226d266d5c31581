package openai

import (
	"bytes"
	"encoding/base64"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// body writes the JSON of a request. It writes values as encoding/json does, without
// escapes for HTML, and opaque JSON byte for byte. The first error stays.
type body struct {
	wire.Body
	err error
}

// open and end write the brackets of an object or an array.
func (b *body) open(bracket byte) { _ = b.WriteByte(bracket) }
func (b *body) end(bracket byte)  { _ = b.WriteByte(bracket) }

// next writes a comma, except at the beginning of an object or an array.
func (b *body) next() {
	if last := b.Last(); last != 0 && last != '{' && last != '[' {
		_ = b.WriteByte(',')
	}
}

// name begins a member.
func (b *body) name(name string) {
	b.next()
	b.value(name)
	_ = b.WriteByte(':')
}

// value writes a value.
func (b *body) value(v any) {
	if err := b.Encode(v); err != nil {
		b.err = errors.Join(b.err, err)
	}
}

// member writes a member.
func (b *body) member(name string, v any) {
	b.name(name)
	b.value(v)
}

// raw writes a member whose value is JSON.
func (b *body) raw(name string, value []byte) {
	b.name(name)
	_, _ = b.Write(value)
}

// members writes the members of a JSON object, byte for byte. It trusts that the object is
// valid, because a check of all opaque parts of a long conversation costs more than all
// the rest of its request: adapter.Opaque has checked them when they came.
func (b *body) members(object []byte) {
	inner, ok := within(object, '{', '}')
	if !ok {
		b.err = errors.Join(b.err, errors.New("an opaque part is not a JSON object"))
		return
	}
	if len(inner) > 0 {
		b.next()
		_, _ = b.Write(inner)
	}
}

// data writes a data URL as a string.
func (b *body) data(mediaType string, data []byte) {
	var begin body
	begin.value("data:" + mediaType + ";base64,")
	_, _ = b.Write(begin.Bytes()[:begin.Len()-len(`"`)])
	encoder := base64.NewEncoder(base64.StdEncoding, b)
	_, _ = encoder.Write(data) // a body takes everything
	_ = encoder.Close()
	_ = b.WriteByte('"')
}

// within returns the text between the brackets of JSON, without white space around it.
func within(text []byte, open, end byte) ([]byte, bool) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != open || text[len(text)-1] != end {
		return nil, false
	}
	return bytes.TrimSpace(text[1 : len(text)-1]), true
}
