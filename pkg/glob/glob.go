// Package glob matches slash-separated relative paths with patterns: * and ? within a
// name, [a-z], and ** as a whole name for any number of folders. The file rules of agents
// and the tools of the tool host share it, so that a rule restricts the same files that a
// tool finds.
//
// Names are matched as path.Match does. Matching takes at most time proportional to the
// product of the names of the pattern and those of the path.
package glob

import (
	"path"
	"strings"
)

// Pattern is a pattern, by the names between its slashes.
type Pattern []string

// NameError is the error of a pattern with a name that path.Match refuses.
type NameError struct{ Name string }

func (e *NameError) Error() string { return "invalid pattern " + e.Name }

func (e *NameError) Unwrap() error { return path.ErrBadPattern }

// Parse reads a pattern. The error is a *NameError. The text is used unchanged: it is not
// cleaned, and a leading slash is an empty name.
func Parse(text string) (Pattern, error) {
	p := Pattern(strings.Split(text, "/"))
	for _, name := range p {
		if _, err := path.Match(name, ""); err != nil {
			return nil, &NameError{Name: name}
		}
	}
	return p, nil
}

// Match reports whether a path, relative and with slashes, matches.
func (p Pattern) Match(file string) bool {
	names := strings.Split(file, "/")
	reach := make([]bool, len(names)+1) // reach[j]: the pattern so far matches the first j names
	reach[0] = true
	for _, pattern := range p {
		if pattern == "**" {
			for j := range names {
				reach[j+1] = reach[j+1] || reach[j]
			}
			continue
		}
		for j := len(names) - 1; j >= 0; j-- {
			matches := false
			if reach[j] {
				matches, _ = path.Match(pattern, names[j])
			}
			reach[j+1] = matches
		}
		reach[0] = false
	}
	return reach[len(names)]
}
