package toolhost

import (
	"fmt"
	"path"
	"strings"
)

// maxAlternatives bounds what the braces of one pattern may multiply to.
const maxAlternatives = 64

// Glob is a pattern for paths relative to a workspace, with slashes:
// * and ? within a name, [a-z], ** for any number of folders, {a,b} for
// alternatives. A pattern without a slash is looked for in every folder.
type Glob struct{ alternatives [][]string }

// ParseGlob reads a pattern. The error's text is for the model.
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

// Match says whether the path, relative and with slashes, fits.
func (g *Glob) Match(name string) bool {
	names := strings.Split(name, "/")
	for _, segments := range g.alternatives {
		if matchSegments(segments, names) {
			return true
		}
	}
	return false
}

// matchSegments takes time in the product of both lengths, whatever the
// pattern: reach[j] says that the segments so far fit the first j names.
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
			fits, _ := path.Match(s, names[j])
			reach[j+1] = reach[j] && fits
		}
		reach[0] = false
	}
	return reach[len(names)]
}

// expandBraces turns a{b,c} into ab and ac.
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

// firstBrace finds the first {…} that holds a comma at its own depth.
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
