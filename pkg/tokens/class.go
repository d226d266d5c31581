package tokens

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// class is a set of the properties of a rune that the patterns use.
type class uint8

const (
	upper   class = 1 << iota // Lu Lt Lm Lo M: what may begin a word
	lower                     // Ll Lm Lo M: what may continue one
	letter                    // L
	number                    // N
	space                     // \s
	newline                   // \r \n
	beyond                    // in ascii: a byte of a rune that is not ASCII
)

// ascii has the classes of runes of one byte.
var ascii = func() (t [256]class) {
	for b := range t {
		t[b] = beyond
		if b < utf8.RuneSelf {
			t[b] = classify(rune(b))
		}
	}
	return t
}()

// page has the classes of 256 runes.
type page [256]class

// pages are filled when one of their runes is met for the first time.
var pages [unicode.MaxRune>>8 + 1]atomic.Pointer[page]

func classOf(r rune) class {
	p := pages[r>>8].Load()
	if p == nil {
		p = new(page)
		for i := range p {
			p[i] = classify(r&^0xff | rune(i))
		}
		pages[r>>8].Store(p)
	}
	return p[r&0xff]
}

func classify(r rune) class {
	var c class
	switch {
	case unicode.Is(unicode.Ll, r):
		c = lower | letter
	case unicode.In(r, unicode.Lu, unicode.Lt):
		c = upper | letter
	case unicode.In(r, unicode.Lm, unicode.Lo):
		c = upper | lower | letter
	case unicode.Is(unicode.M, r):
		c = upper | lower
	case unicode.Is(unicode.N, r):
		c = number
	case unicode.IsSpace(r):
		c = space
	}
	if r == '\r' || r == '\n' {
		c |= newline
	}
	return c
}

// next is the class and the length of the rune at i; a length of 0 is the end.
func next(text string, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if c := ascii[text[i]]; c != beyond {
		return c, 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return classOf(r), size
}

// run is where the runes from i on stop that have one of the classes in want.
func run(text string, i int, want class) int {
	for {
		for i < len(text) && ascii[text[i]]&want != 0 {
			i++
		}
		c, size := next(text, i)
		if c&want == 0 {
			return i
		}
		i += size
	}
}
