package wire

import "strings"

// textChunk is the size from which a LongText keeps what it has, instead of copying it when it grows.
const textChunk = 1 << 20

// LongText is a text that grows by pieces. A long one is in chunks until it is read, so that one that is
// refused for its size needs no more memory than its bytes. The zero value is empty.
type LongText struct {
	full []string
	last strings.Builder
	n    int
}

// WriteString adds a piece.
func (t *LongText) WriteString(s string) {
	t.n += len(s)
	if t.last.Len() > 0 && t.last.Len()+len(s) > textChunk {
		t.full = append(t.full, t.last.String())
		t.last.Reset()
		t.last.Grow(textChunk)
	}
	t.last.WriteString(s)
}

// Len returns the bytes of the text.
func (t *LongText) Len() int { return t.n }

// String returns the text.
func (t *LongText) String() string {
	if len(t.full) > 0 {
		whole := strings.Join(append(t.full, t.last.String()), "")
		t.full = []string{whole}
		t.last.Reset()
		return whole
	}
	return t.last.String()
}

// Since returns the text after its first n bytes.
func (t *LongText) Since(n int) string {
	if at := n - (t.n - t.last.Len()); at >= 0 {
		return t.last.String()[at:]
	}
	return t.String()[n:]
}
