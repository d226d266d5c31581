package wire

import "bytes"

// chunks are bytes that grow by pieces. Up to LargeBytes they are in one slice, which is used again; the
// rest is in separate slices until the bytes are read, so that a line that is refused for its size needs
// no more memory than its bytes.
type chunks struct {
	small []byte
	large [][]byte
	n     int
}

func (c *chunks) add(p []byte) {
	c.n += len(p)
	for len(p) > 0 && (c.large != nil || c.n > LargeBytes) {
		if last := len(c.large) - 1; last >= 0 && len(c.large[last]) < cap(c.large[last]) {
			k := min(len(p), cap(c.large[last])-len(c.large[last]))
			c.large[last], p = append(c.large[last], p[:k]...), p[k:]
			continue
		}
		c.large = append(c.large, make([]byte, 0, LargeBytes))
	}
	c.small = append(c.small, p...)
}

// bytes returns them in one slice, which is valid until the next add or reset.
func (c *chunks) bytes() []byte {
	if c.large != nil {
		c.small, c.large = bytes.Join(append([][]byte{c.small}, c.large...), nil), nil
	}
	return c.small
}

// reset removes the bytes, and keeps a slice of ordinary size.
func (c *chunks) reset() {
	if cap(c.small) > LargeBytes {
		c.small = nil
	}
	c.small, c.large, c.n = c.small[:0], nil, 0
}
