package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The scanners match the same pieces as these patterns (from tiktoken, the encodings'
// reference implementation), leftmost and first alternative first:
//
//	o200k
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	  \p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]* |\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k
//	  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+
//	  \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+

// class is a set of the properties of a rune that the patterns use.
type class uint8

const (
	upper   class = 1 << iota // Lu Lt Lm Lo M: what may begin a word
	lower                     // Ll Lm Lo M: what may continue one
	letter                    // L
	number                    // N
	space                     // \s
	newline                   // \r \n
)

var ascii = func() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = slowClass(r)
	}
	return t
}()

func slowClass(r rune) class {
	var c class
	switch {
	case unicode.In(r, unicode.Ll):
		c = lower | letter
	case unicode.In(r, unicode.Lu, unicode.Lt):
		c = upper | letter
	case unicode.In(r, unicode.Lm, unicode.Lo):
		c = upper | lower | letter
	case unicode.In(r, unicode.M):
		c = upper | lower
	case unicode.In(r, unicode.N):
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
	if b := text[i]; b < utf8.RuneSelf {
		return ascii[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return slowClass(r), size
}

// run is where the runes from i on stop that have one of the classes in want.
func run(text string, i int, want class) int {
	for {
		c, size := next(text, i)
		if size == 0 || c&want == 0 {
			return i
		}
		i += size
	}
}

func scanO200k(text string) int {
	c, size := next(text, 0)
	var starts [2]int
	begins := starts[:0]
	if c&(letter|number|newline) == 0 {
		begins = append(begins, size) // the optional rune before the word
	}
	if c&(upper|lower) != 0 {
		begins = append(begins, 0)
	}
	for _, alternative := range []func(string, int) int{firstWord, secondWord} {
		for _, i := range begins {
			if end := alternative(text, i); end > 0 {
				return end
			}
		}
	}
	return rest(text, c, "\r\n/")
}

// firstWord matches the first alternative from i on, without the optional rune
// before it; 0 if it does not match. It needs a lower rune after the upper ones;
// greedy matching backtracks over upper runes that are lower too (Lm, Lo, M) until
// one is found.
func firstWord(text string, i int) int {
	end := run(text, i, upper)
	if c, _ := next(text, end); c&lower != 0 {
		return contraction(text, run(text, end, lower))
	}
	for at := end; at > i; {
		r, size := utf8.DecodeLastRuneInString(text[i:at])
		if slowClass(r)&lower != 0 {
			return contraction(text, at)
		}
		at -= size
	}
	return 0
}

// secondWord matches the second alternative from i on, where the first one does
// not: only upper runes; 0 if there are none.
func secondWord(text string, i int) int {
	if end := run(text, i, upper); end > i {
		return contraction(text, end)
	}
	return 0
}

// contraction is the end of the contraction at i, or i.
func contraction(text string, i int) int {
	if i < len(text) && text[i] == '\'' {
		return i + apostrophe(text[i:])
	}
	return i
}

// apostrophe is the length of 's, 't, 're, 've, 'm, 'll or 'd, in any case, at
// the start of text; 0 if there is none.
func apostrophe(text string) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch strings.ToLower(text[1:3]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

func scanCL100k(text string) int {
	c, size := next(text, 0)
	if text[0] == '\'' {
		if n := apostrophe(text); n > 0 {
			return n
		}
	}
	if c&(letter|number|newline) == 0 {
		if end := run(text, size, letter); end > size {
			return end
		}
	}
	if c&letter != 0 {
		return run(text, 0, letter)
	}
	return rest(text, c, "\r\n")
}

// rest matches what both encodings have in common after their words. tail are
// the runes that a run of symbols takes along.
func rest(text string, c class, tail string) int {
	if c&number != 0 {
		end := 0
		for range 3 {
			c, size := next(text, end)
			if size == 0 || c&number == 0 {
				break
			}
			end += size
		}
		return end
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if end := symbols(text, start); end > start {
		for end < len(text) && strings.IndexByte(tail, text[end]) >= 0 {
			end++
		}
		return end
	}
	return blank(text)
}

// symbols is where the run of neither white space, letters nor numbers ends.
func symbols(text string, i int) int {
	for {
		c, size := next(text, i)
		if size == 0 || c&(space|letter|number) != 0 {
			return i
		}
		i += size
	}
}

// blank matches white space: up to the last newline of the run; else all but the
// last rune if something follows, which goes with what follows; else all.
func blank(text string) int {
	end, last, lastNewline := 0, 0, 0
	for {
		c, size := next(text, end)
		if size == 0 || c&space == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			lastNewline = end
		}
	}
	switch {
	case lastNewline > 0:
		return lastNewline
	case end < len(text) && last > 0:
		return last
	default:
		return end
	}
}
