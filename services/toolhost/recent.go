package toolhost

import (
	"strings"
	"unicode/utf8"
)

// RecentBytes bounds what Recent keeps, and so a piece of the output of a running command.
const RecentBytes = 4 << 10

// Recent keeps the newest RecentBytes of an output, for people who watch it. It is an
// io.Writer; Write never fails. The zero value is ready to use.
type Recent struct {
	written uint64
	kept    []byte
}

// Write appends p.
func (r *Recent) Write(p []byte) (int, error) {
	r.written += uint64(len(p))
	r.kept = append(r.kept, p[max(0, len(p)-RecentBytes):]...)
	if over := len(r.kept) - RecentBytes; over > 0 {
		r.kept = append(r.kept[:0], r.kept[over:]...)
	}
	return len(p), nil
}

// After returns the newest output after its first offset bytes, and the number of bytes
// before it, which is more than offset if some of them are no longer kept. The text has as
// many bytes as the output: NUL and bytes that are no UTF-8 become question marks. A character of
// which only a part was written is left for the next time.
func (r *Recent) After(offset uint64) (from uint64, text string) {
	first := r.written - uint64(len(r.kept))
	from = min(max(offset, first), r.written)
	rest := r.kept[from-first:]
	if from > offset { // the rest may begin within a character
		for len(rest) > 0 && !utf8.RuneStart(rest[0]) {
			rest, from = rest[1:], from+1
		}
	}
	return from, printable(wholeCharacters(rest))
}

// wholeCharacters returns the bytes without a last character of which a part is missing.
func wholeCharacters(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// printable returns text of the same length that is valid UTF-8 without NUL.
func printable(b []byte) string {
	var text strings.Builder
	text.Grow(len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == 0 || r == utf8.RuneError && size == 1 {
			text.WriteByte('?')
		} else {
			text.Write(b[:size])
		}
		b = b[size:]
	}
	return text.String()
}
