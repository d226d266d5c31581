package toolhost

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/glob"
)

// maxAlternatives is the maximum number of patterns that the braces of one can expand to.
const maxAlternatives = 64

// Glob is a pattern of package glob for paths relative to a workspace, and also has
// {a,b} for alternatives. A pattern without a slash matches in every folder.
type Glob struct{ alternatives []glob.Pattern }

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
		alternative, err := glob.Parse(strings.TrimPrefix(p, "/"))
		if bad := (*glob.NameError)(nil); errors.As(err, &bad) {
			return nil, fmt.Errorf("pattern %q: %w in %q", Clip(pattern, 200), path.ErrBadPattern, Clip(bad.Name, 100))
		} else if err != nil {
			return nil, err
		}
		g.alternatives = append(g.alternatives, alternative)
	}
	return g, nil
}

// Match reports whether a path, relative and with slashes, matches.
func (g *Glob) Match(name string) bool {
	return slices.ContainsFunc(g.alternatives, func(p glob.Pattern) bool { return p.Match(name) })
}

// Within returns the folders that lead to every match, such as a/b for a/b/*.go; empty if they differ.
func (g *Glob) Within() string {
	if len(g.alternatives) != 1 {
		return ""
	}
	p := g.alternatives[0]
	n := 0
	for n < len(p)-1 && p[n] != "" && !strings.ContainsAny(p[n], `*?[\`) {
		n++
	}
	return strings.Join(p[:n], "/")
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
