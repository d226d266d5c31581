package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

const (
	// maxPattern bounds a pattern, in bytes.
	maxPattern = 2 << 10
	// maxInstructions bounds the compiled pattern: the worst cost of a match for each
	// byte of text.
	maxInstructions = 4000
)

// Regexp compiles a regular expression (RE2) of limited size.
func Regexp(pattern string, foldCase bool) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errors.New("regular expression exceeds the limit of 2048 bytes")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, errors.New("invalid regular expression (RE2): " + wrong.Code.String() + ": " + content.Clip(wrong.Expr, 80))
	}
	if err != nil {
		return nil, err
	}
	if instructions(tree) > maxInstructions {
		return nil, errors.New("regular expression is too large: use fewer repetitions")
	}
	if foldCase {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

// instructions estimates how many instructions a syntax tree compiles to, without
// compiling it: nested repetitions multiply.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min+1, 1)
	}
	return min(n, maxInstructions+1)
}
