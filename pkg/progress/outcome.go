package progress

import "strings"

// Basis is what distinguishes the outcomes of a tool from each other.
type Basis int

const (
	// ByArguments is for tools that change something: another argument is another change.
	ByArguments Basis = iota
	// ByPlace is for tools that read and for commands: numbers in the arguments make no
	// difference, such as a limit, an offset or the seconds of a sleep.
	ByPlace
	// ByResult is for tools whose arguments make no difference.
	ByResult
)

// Outcomes are the signatures of one outcome of a call, by their basis.
type Outcomes [ByResult + 1]uint64

// SignOutcome returns the signatures of the outcome of a call. text is the result, of which
// resultDigest differs for different results; it may be cut. All signatures of a result that
// is only a note are by arguments: it says nothing that could be compared.
func SignOutcome(tool, arguments, resultDigest, text string) Outcomes {
	canonical := Canonical(arguments)
	strict := strictOf(tool, canonical, resultDigest)
	if isNote(text) {
		return Outcomes{strict, strict, strict}
	}
	return Outcomes{strict, digest("place", tool, withoutNumbers(canonical), resultDigest), digest("result", tool, resultDigest)}
}

// maxNote bounds a note, in bytes.
const maxNote = 256

// isNote reports whether a result is blank or only a note of its tool in brackets, such as
// [exit code 0].
func isNote(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return true
	}
	if len(text) > maxNote || strings.Contains(text, "\n") {
		return false
	}
	letter := len(text) > 1 && (text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z')
	return text[0] == '[' && letter && text[len(text)-1] == ']'
}

// withoutNumbers replaces each number of canonical arguments by a zero: the values that are
// numbers, and in texts the words that are, with or without a sign. Digits in names, such as
// those of files, stay.
func withoutNumbers(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isNumber(text[end]) {
			end++
		}
		switch {
		case end == i:
			b.WriteByte(text[i])
			i++
			continue
		case isDigit(text[i]) && precedesNumber(text[:i]) && (end == len(text) || strings.IndexByte(" \t\\\",}];|&)", text[end]) >= 0):
			b.WriteByte('0')
		default:
			b.WriteString(text[i:end])
		}
		i = end
	}
	return b.String()
}

// precedesNumber reports whether a number may begin after text.
func precedesNumber(text string) bool {
	text = strings.TrimSuffix(text, "-")
	return text == "" || strings.IndexByte(" \t:,[#=;(", text[len(text)-1]) >= 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNumber(c byte) bool { return isDigit(c) || c == '.' || c == 'e' }
