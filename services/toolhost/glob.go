package toolhost

import (
	"fmt"
	"path"
	"strings"
)

// maxAlternatives is the maximum number of patterns that the braces of one can expand to.
const maxAlternatives = 64

// Glob is a pattern for slash-separated paths relative to a workspace: * and ? within a
// name, [a-z], ** for any number of folders, {a,b} for alternatives. A pattern without a
// slash matches in every folder.
type Glob struct{ alternatives [][]string }

// ParseGlob parses a pattern. The error text is written for the model.
func ParseGlob(pattern string) (*Glob, error) {
	expanded, err := expandBraces(strings.TrimPrefix(pattern, "./"))
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", Clip(pattern, 200), err)
	}
	g := &Glob{}
	for _, p := range expanded {
		if !strings.Contains(p, "/") {
			p = "**/" + p
		}
		if strings.HasSuffix(p, "/") {
			p += "**"
		}
		segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
		for _, s := range segments {
			if _, err := path.Match(s, ""); err != nil {
				return nil, fmt.Errorf("pattern %q: %w in %q", Clip(pattern, 200), err, Clip(s, 100))
			}
		}
		g.alternatives = append(g.alternatives, segments)
	}
	return g, nil
}

// Match reports whether a path, relative and with slashes, matches.
func (g *Glob) Match(name string) bool {
	names := strings.Split(name, "/")
	for _, segments := range g.alternatives {
		if matchSegments(segments, names) {
			return true
		}
	}
	return false
}

// matchSegments reports whether the segments of a pattern match the names of a path. Its
// time is at most proportional to the product of both lengths: reach[j] is true if the
// segments so far match the first j names.
func matchSegments(segments, names []string) bool {
	reach := make([]bool, len(names)+1)
	reach[0] = true
	for _, s := range segments {
		if s == "**" {
			for j := range names {
				reach[j+1] = reach[j+1] || reach[j]
			}
			continue
		}
		for j := len(names) - 1; j >= 0; j-- {
			matches := false
			if reach[j] {
				matches, _ = path.Match(s, names[j])
			}
			reach[j+1] = matches
		}
		reach[0] = false
	}
	return reach[len(names)]
}

// expandBraces expands a{b,c} to ab and ac.
func expandBraces(pattern string) ([]string, error) {
	done, open := []string{}, []string{pattern}
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		from, parts, to := firstBrace(p)
		if parts == nil {
			done = append(done, p)
		}
		for _, part := range parts {
			open = append(open, p[:from]+part+p[to:])
		}
		if len(done)+len(open) > maxAlternatives {
			return nil, fmt.Errorf("more than %d alternatives in braces", maxAlternatives)
		}
	}
	return done, nil
}

// firstBrace finds the first {…} with a comma at its own depth.
func firstBrace(p string) (from int, parts []string, to int) {
	for from = 0; from < len(p); from++ {
		if p[from] != '{' {
			continue
		}
		depth, start := 0, from+1
		parts = nil
		for i := from; i < len(p); i++ {
			switch {
			case p[i] == '{':
				depth++
			case p[i] == ',' && depth == 1:
				parts = append(parts, p[start:i])
				start = i + 1
			case p[i] == '}':
				depth--
			}
			if depth == 0 {
				if parts != nil {
					return from, append(parts, p[start:i]), i + 1
				}
				break
			}
		}
	}
	return 0, nil, 0
}
