package wire

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"unicode/utf8"
)

// Sizes of the blocks of a Body, in bytes.
const (
	minBlock = 4 << 10
	maxBlock = 256 << 10
)

// jsonPiece is the length from which a text is encoded piece by piece, in bytes.
const jsonPiece = 32 << 10

// Body is the JSON of a request as it is written: in blocks, so that a large conversation
// needs about its own size and is not copied as it grows. The zero value is empty.
// Writing is for one goroutine.
type Body struct {
	blocks [][]byte
	size   int
	last   byte

	mu       sync.Mutex // guards blocks from the first reader on
	released bool
}

// Len returns the number of bytes.
func (b *Body) Len() int { return b.size }

// Last returns the last byte; 0 if there is none.
func (b *Body) Last() byte { return b.last }

// Write appends p. It never fails.
func (b *Body) Write(p []byte) (int, error) {
	n := len(p)
	if n > 0 {
		b.size, b.last = b.size+n, p[n-1]
	}
	for len(p) > 0 {
		p = p[b.fill(p):]
	}
	return n, nil
}

// fill appends as much of p as the newest block takes, at least a byte.
func (b *Body) fill(p []byte) int {
	i := len(b.blocks) - 1
	if i < 0 || len(b.blocks[i]) == cap(b.blocks[i]) {
		size := minBlock
		if i >= 0 {
			size = min(2*cap(b.blocks[i]), maxBlock)
		}
		b.blocks = append(b.blocks, make([]byte, 0, size))
		i++
	}
	block := b.blocks[i]
	n := copy(block[len(block):cap(block)], p)
	b.blocks[i] = block[:len(block)+n]
	return n
}

// WriteByte appends a byte. It never fails.
func (b *Body) WriteByte(c byte) error {
	_, err := b.Write([]byte{c})
	return err
}

// WriteString appends a text. It never fails.
func (b *Body) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

// Encode appends a value as encoding/json encodes it, without escapes for HTML. A
// json.RawMessage is appended byte for byte.
func (b *Body) Encode(v any) error {
	switch v := v.(type) {
	case json.RawMessage:
		_, err := b.Write(v)
		return err
	case string:
		return b.encodeText(v)
	}
	return b.encode(v, 0)
}

// EncodeMembers appends the members of a value that is encoded as an object, without its
// braces.
func (b *Body) EncodeMembers(v any) error { return b.encode(v, len("{")) }

// encode appends a value without its first skip and its last skip bytes.
func (b *Body) encode(v any, skip int) error {
	encoder := json.NewEncoder(&trimmer{to: b, skip: skip, cut: skip + len("\n")})
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// encodeText appends a text as a JSON string. A long one is encoded in pieces, so that no
// second copy of it is made: pieces that begin with a character, or with a byte that is
// none, have the same JSON as the whole.
func (b *Body) encodeText(s string) error {
	if len(s) < 2*jsonPiece {
		return b.encode(s, 0)
	}
	_ = b.WriteByte('"')
	for len(s) > 0 {
		n := min(jsonPiece, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		if err := b.encode(s[:n], len(`"`)); err != nil {
			return err
		}
		s = s[n:]
	}
	return b.WriteByte('"')
}

// trimmer writes each write without its first skip and its last cut bytes. An encoder
// writes a value and the line feed after it in one call.
type trimmer struct {
	to        io.Writer
	skip, cut int
}

func (t *trimmer) Write(p []byte) (int, error) {
	_, err := t.to.Write(p[t.skip : len(p)-t.cut])
	return len(p), err
}

// Bytes returns a copy of all bytes.
func (b *Body) Bytes() []byte {
	all := make([]byte, 0, b.size)
	for _, block := range b.blocks {
		all = append(all, block...)
	}
	return all
}

// errReleased is the error of a body that is to be read after release.
var errReleased = errors.New("the body of the request is gone")

// release frees the bytes once no open reader needs them. There are no new readers then.
func (b *Body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks, b.released = nil, true
}

// reader returns a reader of the whole body.
func (b *Body) reader() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.released {
		return nil, errReleased
	}
	return &bodyReader{blocks: b.blocks}, nil
}

// bodyReader reads blocks and frees those that it has read.
type bodyReader struct {
	mu     sync.Mutex // a transport may close a body that it reads
	blocks [][]byte
	read   int // of the first block
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.blocks) > 0 {
		if n := copy(p, r.blocks[0][r.read:]); n > 0 || len(p) == 0 {
			r.read += n
			return n, nil
		}
		r.blocks, r.read = r.blocks[1:], 0
	}
	r.blocks = nil
	return 0, io.EOF
}

// Close frees the rest.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = nil
	return nil
}
