package tokens

import (
	"strings"
	"unicode/utf8"
)

// The scanners match the same pieces as the patterns of tiktoken-go, leftmost and first
// alternative first, which TestPieces proves:
//
//	o200k
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	  \p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]* |\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k
//	  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+
//	  \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+

// asciiWord is the end of an ASCII word, and of at most one rune before it: letters of
// one of the classes in first, and then of those in others. It is 0 if there is none, or
// if a rune that is not ASCII follows, with which the word may continue.
func asciiWord(text string, first, others class) int {
	start := 0
	if ascii[text[0]]&(letter|number|newline|beyond) == 0 {
		start = 1
	}
	end := start
	for end < len(text) && ascii[text[end]]&first != 0 {
		end++
	}
	for end < len(text) && ascii[text[end]]&others != 0 {
		end++
	}
	if end == start || end < len(text) && ascii[text[end]] == beyond {
		return 0
	}
	return end
}

func scanO200k(text string) int {
	if end := asciiWord(text, upper, lower); end > 0 {
		return contraction(text, end)
	}
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
		if classOf(r)&lower != 0 {
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
	if text[0] == '\'' {
		if n := apostrophe(text); n > 0 {
			return n
		}
	}
	if end := asciiWord(text, letter, 0); end > 0 {
		return end
	}
	c, size := next(text, 0)
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
