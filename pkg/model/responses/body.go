package responses

import "github.com/harnessmesh/harnessmesh/pkg/model/wire"

// body is a request as it is written. Opaque items become part of it byte for byte,
// which encoding/json does not promise.
type body struct {
	wire.Body

	members int
	items   int
}

func newBody() *body {
	b := &body{}
	_ = b.WriteByte('{')
	return b
}

// member writes a member.
func (b *body) member(name string, value any) error {
	b.name(name)
	return b.Encode(value)
}

// openInput starts the last member, the list of items.
func (b *body) openInput() {
	b.name("input")
	_ = b.WriteByte('[')
}

// item writes an item of the input.
func (b *body) item(value any) error {
	if b.items++; b.items > 1 {
		_ = b.WriteByte(',')
	}
	return b.Encode(value)
}

// end returns the whole request.
func (b *body) end() *wire.Body {
	_, _ = b.WriteString("]}")
	return &b.Body
}

func (b *body) name(name string) {
	if b.members++; b.members > 1 {
		_ = b.WriteByte(',')
	}
	_ = b.Encode(name) // a string always encodes
	_ = b.WriteByte(':')
}
