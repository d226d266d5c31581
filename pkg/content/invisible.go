package content

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// invisible reports whether a character has neither a shape nor a width:
// characters of no width, format characters, fillers, tags and variation selectors. Signs that
// only have the category of format characters, such as the Arabic sign of a number, are visible.
func invisible(r rune) bool {
	return r >= 0x80 && (unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Prepended_Concatenation_Mark, unicode.Egyptian_Hieroglyphs) ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}

// withoutInvisible returns text without invisible characters that change nothing for a reader.
// Those that a script or a sign needs stay, never two in a row: joiners, variation selectors and
// marks of direction. text has none that reorders.
func withoutInvisible(text string) string {
	if strings.IndexFunc(text, invisible) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	rightToLeft := strings.IndexFunc(text, writesRightToLeft) >= 0
	last, hidden := rune(0), false // the visible character before, and whether one was kept after it
	for i, r := range text {
		switch {
		case !invisible(r):
			last, hidden = r, false
		case unicode.Is(unicode.Variation_Selector, r):
			if hidden || !varies(last, r) {
				continue
			}
			hidden = true
		case r == '\u200d' && isSign(last):
			// ☎️ with a selector can be joined too.
			next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if !isSign(next) {
				continue
			}
			last, hidden = r, true
		case hidden:
			continue
		case r == '\u200c' || r == '\u200d':
			if !joins(last) {
				continue
			}
			hidden = true
		case r == '\u200e' || r == '\u200f' || r == '\u061c':
			if !rightToLeft {
				continue
			}
			hidden = true
		default:
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// varies reports whether a variation selector can change the shape of a character: signs, digits
// of keys, and ideographs.
func varies(r, selector rune) bool {
	switch {
	case selector >= 0xE0100: // of ideographs
		return unicode.Is(unicode.Han, r)
	case r == '#', r == '*', r >= '0' && r <= '9':
		return selector == '\ufe0e' || selector == '\ufe0f'
	}
	return r >= 0x80 && r != '\u200d' && !unicode.IsSpace(r)
}

// isSign reports whether a character is an emoji or another sign that joiners join.
func isSign(r rune) bool { return unicode.In(r, unicode.So, unicode.Sk) && r >= 0x80 }

// joins reports whether letters of the script of a character can be joined or kept apart: those
// of all scripts but the ones whose letters are always separate.
func joins(r rune) bool {
	return r >= 0x80 && unicode.In(r, unicode.L, unicode.M) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// writesRightToLeft reports whether a letter belongs to a script that runs from right to left.
func writesRightToLeft(r rune) bool {
	return r >= 0x590 && unicode.IsLetter(r) && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
}
