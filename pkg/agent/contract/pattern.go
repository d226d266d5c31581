package contract

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

const (
	// Bytes of a pattern, and instructions that it may compile to: what a match
	// costs for each byte of text, at worst.
	maxPattern      = 2 << 10
	maxInstructions = 4000
)

// compilePattern compiles an RE2 of bounded size.
func compilePattern(field, pattern string, foldCase bool) (*regexp.Regexp, error) {
	re, err := boundedRegexp(pattern, foldCase)
	if err != nil {
		return nil, fault.Invalid(field, "%s", err)
	}
	return re, nil
}

func boundedRegexp(pattern string, foldCase bool) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errors.New("is too long for a regular expression: at most 2048 bytes are allowed")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, errors.New("is no regular expression (RE2): " + wrong.Code.String() + ": " + clip(wrong.Expr, 80))
	}
	if err != nil {
		return nil, err
	}
	if instructions(tree) > maxInstructions {
		return nil, errors.New("is too large a regular expression: repeat less in it")
	}
	if foldCase {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

// instructions is about how many a syntax tree compiles to, without compiling
// it: nested repeats multiply.
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
