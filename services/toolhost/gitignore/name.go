package gitignore

import "strings"

// kind is how a name is matched.
type kind int

const (
	// literal: the text itself.
	literal kind = iota
	// suffix: * and the text, prefix: the text and *.
	suffix
	prefix
	// glob: the text is a pattern.
	glob
	// anyFolders: **.
	anyFolders
)

// name is the pattern of one name of a path.
type name struct {
	kind kind
	text string
}

const special = `*?[\`

// parseName returns the pattern of a name; it is not ok if it can match nothing.
func parseName(text string) (name, bool) {
	switch {
	case text == "**":
		return name{kind: anyFolders}, true
	case !strings.ContainsAny(text, special):
		return name{literal, text}, true
	case text[0] == '*' && !strings.ContainsAny(text[1:], special):
		return name{suffix, text[1:]}, true
	case text[len(text)-1] == '*' && !strings.ContainsAny(text[:len(text)-1], special):
		return name{prefix, text[:len(text)-1]}, true
	}
	return name{glob, text}, valid(text)
}

func (n name) match(text string) bool {
	switch n.kind {
	case literal:
		return n.text == text
	case suffix:
		return strings.HasSuffix(text, n.text)
	case prefix:
		return strings.HasPrefix(text, n.text)
	case glob:
		return matchGlob(n.text, text)
	case anyFolders:
	}
	return true
}

// valid reports whether a pattern can match anything: no backslash ends it, and every bracket
// is closed.
func valid(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) {
				return false
			}
		case '[':
			_, size, ok := matchClass(pattern[i:], 0)
			if !ok {
				return false
			}
			i += size - 1
		}
	}
	return true
}

// matchGlob reports whether a valid pattern matches the whole text. A * that has taken too
// little takes one byte more; only the newest one has to.
func matchGlob(pattern, text string) bool {
	star, taken := -1, 0
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, taken = p, t
				p++
				continue
			}
			if matches, size := matchOne(pattern[p:], text[t]); matches {
				p, t = p+size, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		taken++
		p, t = star+1, taken
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne reports whether the beginning of a pattern, which is no *, matches a byte, and
// returns how long that beginning is.
func matchOne(pattern string, b byte) (matches bool, size int) {
	switch pattern[0] {
	case '?':
		return true, 1
	case '\\':
		return pattern[1] == b, 2
	case '[':
		matches, size, _ = matchClass(pattern, b)
		return matches, size
	}
	return pattern[0] == b, 1
}

// matchClass reports whether the brackets at the beginning of a pattern match a byte, and
// returns their size. It is not ok if they are not closed or name an unknown class.
func matchClass(pattern string, b byte) (matches bool, size int, ok bool) {
	i := 1
	negate := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negate {
		i++
	}
	var previous byte // the beginning of a range; 0: none
	for first := true; ; first = false {
		if i >= len(pattern) {
			return false, 0, false
		}
		c := pattern[i]
		switch {
		case c == ']' && !first:
			return matches != negate, i + 1, true
		case c == '-' && previous != 0 && i+1 < len(pattern) && pattern[i+1] != ']':
			i++
			if pattern[i] == '\\' {
				i++
			}
			if i >= len(pattern) {
				return false, 0, false
			}
			matches = matches || previous <= b && b <= pattern[i]
			previous = 0
		case c == '[' && strings.HasPrefix(pattern[i:], "[:"):
			end := strings.Index(pattern[i:], "]")
			if end < 0 {
				return false, 0, false
			}
			if pattern[i+end-1] != ':' || end < 3 { // a set that begins with [:
				matches, previous = matches || b == '[', '['
				break
			}
			class, known := classes[pattern[i+2:i+end-1]]
			if !known {
				return false, 0, false
			}
			matches, previous = matches || class(b), 0
			i += end
		default:
			if c == '\\' {
				if i++; i >= len(pattern) {
					return false, 0, false
				}
				c = pattern[i]
			}
			matches, previous = matches || b == c, c
		}
		i++
	}
}

func within(from, to byte) func(byte) bool {
	return func(b byte) bool { return from <= b && b <= to }
}

func oneOf(some ...func(byte) bool) func(byte) bool {
	return func(b byte) bool {
		for _, f := range some {
			if f(b) {
				return true
			}
		}
		return false
	}
}

var (
	upper, lower, digit = within('A', 'Z'), within('a', 'z'), within('0', '9')

	graph  = within('!', '~')
	alnum  = oneOf(upper, lower, digit)
	spaces = func(b byte) bool { return strings.IndexByte(" \t\n\v\f\r", b) >= 0 }
)

// classes are those of [:NAME:], for ASCII.
var classes = map[string]func(byte) bool{
	"alnum":  alnum,
	"alpha":  oneOf(upper, lower),
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  oneOf(within(0, 31), within(127, 127)),
	"digit":  digit,
	"graph":  graph,
	"lower":  lower,
	"print":  within(' ', '~'),
	"punct":  func(b byte) bool { return graph(b) && !alnum(b) },
	"space":  spaces,
	"upper":  upper,
	"xdigit": oneOf(digit, within('a', 'f'), within('A', 'F')),
}
