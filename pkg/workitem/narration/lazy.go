package narration

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled at its first use. Most processes never
// check an artifact, and compiling all patterns at start-up costs 20 ms and 12 MB.
type pattern struct{ compiled func() *regexp.Regexp }

func lazily(source string) pattern {
	return pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })}
}

func (p pattern) matchString(s string) bool { return p.compiled().MatchString(s) }

func (p pattern) findString(s string) string { return p.compiled().FindString(s) }

func (p pattern) replaceAllString(s, with string) string {
	return p.compiled().ReplaceAllString(s, with)
}

func (p pattern) split(s string, n int) []string { return p.compiled().Split(s, n) }
