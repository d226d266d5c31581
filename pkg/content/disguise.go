package content

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text from outside in a form that is safe to print and hides nothing: line
// feeds and tabs stay. Other Controls, characters without a shape, spaces other than that of ASCII, marks that are
// stacked, letters that are taken for those of another script in their word or line, and invalid
// bytes become their number, such as <U+001B> or <0x9B>. The joiners of letters and signs stay.
func Visible(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || unseen(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		visibleLine(&b, line)
	}
	return b.String()
}

// visibleLine writes a line as Visible returns it.
func visibleLine(b *strings.Builder, line string) {
	imitates := imitations(line)
	base, marks := rune(0), 0
	for i := 0; i < len(line); {
		r, width := utf8.DecodeRuneInString(line[i:])
		mark := unicode.In(r, unicode.Mn, unicode.Me) && !unicode.Is(unicode.Variation_Selector, r)
		if mark {
			marks++
		} else if !unicode.In(r, unicode.Variation_Selector, unicode.Mc) && r != '\u200c' && r != '\u200d' {
			base, marks = r, 0
		}
		switch {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(b, "<0x%02X>", line[i])
		case unseen(r), mark && marks > stack(base), imitates[i]:
			fmt.Fprintf(b, "<U+%04X>", r)
		default:
			b.WriteString(line[i : i+width])
		}
		i += width
	}
}

// unseen reports whether Visible replaces a character wherever it is.
func unseen(r rune) bool {
	switch r {
	case '\n', '\t', ' ', '\u200c', '\u200d', '\ufe0f':
		return false
	case '\u2800': // a pattern of Braille without dots
		return true
	}
	return Controls(r) || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		r >= 0x1D400 && r <= 0x1D7FF // letters of mathematics, which look like those of ASCII
}

// stack returns how many marks a character can have so that both are seen: two for the letters of
// Latin, Greek and Cyrillic, one for a digit or a sign of emoji, none for a rune that is no letter, and four in scripts that
// write vowels, tones and cantillation as marks.
func stack(base rune) int {
	switch {
	case unicode.In(base, unicode.Latin, unicode.Greek, unicode.Cyrillic):
		return 2
	case base >= '0' && base <= '9', base == '#', base == '*':
		return 1
	case !unicode.IsLetter(base) && !unicode.IsNumber(base) && base != '\u25cc':
		return 0
	}
	return 4
}

// lookalikes are the letters of Cyrillic and Greek that look like those of Latin.
const lookalikes = "аАВсСԁеЕҽГһНіІїЇјЈкКӏӀМоОрРԛѕЅТтуУвԝԜхХүҮзЗ" + "αΑΒΕγΗιΙκΚΜνΝοΟρΡΤυΥχΧΖϲϳ"

// imitations returns where in a line letters of one script are taken for those of Latin: in a word that has
// both, and in a line with words of Latin in which all letters of the other script look like Latin ones. nil if nowhere.
func imitations(line string) map[int]bool {
	var found map[int]bool
	add := func(at int) {
		if found == nil {
			found = map[int]bool{}
		}
		found[at] = true
	}
	latinLine, own := false, false
	for _, r := range line {
		latinLine = latinLine || unicode.Is(unicode.Latin, r)
		own = own || foreign(r) && !strings.ContainsRune(lookalikes, r)
	}
	if !latinLine {
		return nil
	}
	var word []int // where the letters of other scripts in the word are
	latin := false
	end := func() {
		for _, at := range word {
			r, _ := utf8.DecodeRuneInString(line[at:])
			if !own || latin && (!unicode.Is(unicode.Greek, r) || strings.ContainsRune(lookalikes, r)) {
				add(at)
			}
		}
		word, latin = word[:0], false
	}
	for i, r := range line {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r):
			end()
		case unicode.Is(unicode.Latin, r):
			latin = true
		case foreign(r):
			word = append(word, i)
		}
	}
	end()
	return found
}

// foreign reports whether a letter belongs to a script whose letters are taken for those of Latin.
func foreign(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret)
}

const (
	// maxDisguised bounds the parts that Disguised returns, and maxPart each of them, in bytes.
	maxDisguised = 20
	maxPart      = 200
)

// Disguised returns the parts of a text, between white space of ASCII, that read otherwise than
// they are, as Visible shows them, each once; at most 20, of at most 200 bytes.
func Disguised(text string) []string {
	var parts []string
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		shown := Visible(line)
		if shown == line {
			continue
		}
		given := strings.FieldsFunc(line, asciiSpace)
		for i, part := range strings.FieldsFunc(shown, asciiSpace) {
			if i < len(given) && part == given[i] || seen[part] {
				continue
			}
			if len(parts) == maxDisguised {
				return parts
			}
			seen[part] = true
			parts = append(parts, Cut(part, maxPart))
		}
	}
	return parts
}

func asciiSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }
