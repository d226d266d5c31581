package quality

import (
	"strings"
	"unicode"
)

// Fold returns text in a form in which case and white space make no difference: one case,
// one space for each run of white space, none at its ends. Folding again changes nothing.
func Fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
	}
	return b.String()
}

// QuotedIn reports whether a source that Fold has folded has the words of a quote, case and
// white space folded. A quote without words is not quoted.
func QuotedIn(folded, quote string) bool {
	quote = Fold(quote)
	return quote != "" && strings.Contains(folded, quote)
}
