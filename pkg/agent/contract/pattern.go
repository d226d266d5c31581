package contract

import (
	"regexp"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// compilePattern compiles a regular expression (RE2) of limited size.
func compilePattern(field, pattern string, foldCase bool) (*regexp.Regexp, error) {
	re, err := schema.Regexp(pattern, foldCase)
	if err != nil {
		return nil, fault.Invalid(field, "%s", err)
	}
	return re, nil
}
