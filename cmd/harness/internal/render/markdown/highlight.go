package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// highlight returns code with colours, or unchanged if the language is not known.
// It recognises words, strings, numbers and comments; it does not parse.
func highlight(code, name string) string {
	name = strings.ToLower(name)
	switch name {
	case "diff", "patch", "udiff":
		return highlightDiff(code)
	case "html", "xml", "svg", "xhtml", "vue", "rss":
		return highlightMarkup(code)
	}
	l, ok := languages()[name]
	if !ok {
		return code
	}
	s := &scanner{language: l, code: code, rest: code}
	for s.rest != "" {
		s.next()
	}
	s.flush(noColour)
	return s.out.String()
}

// scanner colours code of one language.
type scanner struct {
	*language
	code string
	rest string // the end of code, not scanned yet
	out  strings.Builder

	written int    // bytes of code that are in out
	last    string // the word before, for definitions
}

// take scans n bytes, in a colour.
func (s *scanner) take(n int, c colour) {
	s.flush(noColour)
	s.skip(n)
	s.flush(c)
}

// skip scans n bytes that have no colour.
func (s *scanner) skip(n int) { s.rest = s.rest[n:] }

// flush writes the scanned code in a colour. The sequences end with each line.
func (s *scanner) flush(c colour) {
	end := len(s.code) - len(s.rest)
	for i, line := range strings.Split(s.code[s.written:end], "\n") {
		if i > 0 {
			s.out.WriteString("\n")
		}
		if line != "" {
			s.out.WriteString(style{colour: c}.paint(line))
		}
	}
	s.written = end
}

// next takes one token.
func (s *scanner) next() {
	if n := s.comment(); n > 0 {
		s.take(n, grey)
		return
	}
	if n := s.quoted(); n > 0 {
		if s.keys && s.isKey(s.rest[n:]) {
			s.take(n, blue)
		} else {
			s.take(n, green)
		}
		s.last = ""
		return
	}
	r, size := utf8.DecodeRuneInString(s.rest)
	switch {
	case isWord(r) && !unicode.IsDigit(r) || r == '$' && s.variables:
		s.word()
	case unicode.IsDigit(r):
		n := strings.IndexFunc(s.rest, func(r rune) bool { return !isWord(r) && r != '.' })
		if n < 0 {
			n = len(s.rest)
		}
		s.take(len(strings.TrimRight(s.rest[:n], ".")), cyan)
	default:
		s.skip(size)
	}
}

func (s *scanner) comment() int {
	for _, c := range s.comments {
		if !strings.HasPrefix(s.rest, c.open) || c.atWord && !s.atWord() {
			continue
		}
		end := strings.Index(s.rest[len(c.open):], c.close)
		switch {
		case end < 0:
			return len(s.rest)
		case c.close == "\n":
			return len(c.open) + end
		}
		return len(c.open) + end + len(c.close)
	}
	return 0
}

// atWord reports whether the rest begins a word: a # within one is no comment.
func (s *scanner) atWord() bool {
	at := len(s.code) - len(s.rest)
	return at == 0 || strings.IndexByte(" \t\n;", s.code[at-1]) >= 0
}

// quoted returns the length of the string that the rest begins with.
func (s *scanner) quoted() int {
	for _, q := range s.quotes {
		if !strings.HasPrefix(s.rest, q) {
			continue
		}
		for i := len(q); i < len(s.rest); i++ {
			switch {
			case s.rest[i] == '\\' && q != "`":
				i++
			case strings.HasPrefix(s.rest[i:], q):
				return i + len(q)
			case s.rest[i] == '\n' && len(q) == 1 && q != "`":
				if q == "'" { // an apostrophe, or a lifetime
					return 0
				}
				return i
			}
		}
		if q == "'" {
			return 0
		}
		return len(s.rest)
	}
	return 0
}

// word takes an identifier, a keyword or a key.
func (s *scanner) word() {
	_, first := utf8.DecodeRuneInString(s.rest) // a letter, or the $ of a variable
	n := len(s.rest)
	if end := strings.IndexFunc(s.rest[first:], func(r rune) bool { return !isWord(r) && (!s.dashes || r != '-') }); end >= 0 {
		n = first + end
	}
	word, after := s.rest[:n], s.rest[n:]
	if s.anyCase {
		word = strings.ToLower(word)
	}
	switch {
	case s.keys && s.isKey(after):
		s.take(n, blue)
	case s.variables && word[0] == '$', s.types[word], s.builtins[word]:
		s.take(n, cyan)
	case s.keywords[word]:
		s.take(n, magenta)
	case s.definers[s.last], s.calls && strings.HasPrefix(after, "("):
		s.take(n, blue)
	default:
		s.skip(n)
	}
	s.last = word
}

// isKey reports whether the text after a word or a string makes it a key.
func (s *scanner) isKey(after string) bool {
	after = strings.TrimLeft(after, " ")
	return s.separator != "" && strings.HasPrefix(after, s.separator) && !strings.HasPrefix(after, "==") &&
		(s.separator != ":" || len(after) == 1 || strings.ContainsRune(" \n\"[{0123456789tfn-", rune(after[1])))
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func highlightDiff(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		switch {
		case line == "":
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "Index:"):
			lines[i] = style{bold: true}.paint(line)
		case line[0] == '+', line[0] == '>':
			lines[i] = style{colour: green}.paint(line)
		case line[0] == '-', line[0] == '<':
			lines[i] = style{colour: red}.paint(line)
		}
	}
	return strings.Join(lines, "\n")
}

// highlightMarkup colours tags, attributes, their values and comments.
func highlightMarkup(code string) string {
	s := &scanner{language: &language{quotes: single}, code: code, rest: code}
	for s.rest != "" {
		switch n := strings.IndexByte(s.rest, '<'); {
		case n < 0:
			s.skip(len(s.rest))
		case n > 0:
			s.skip(n)
		case strings.HasPrefix(s.rest, "<!--"):
			end := strings.Index(s.rest, "-->")
			if end < 0 {
				end = len(s.rest) - len("-->")
			}
			s.take(end+len("-->"), grey)
		default:
			s.tag()
		}
	}
	s.flush(noColour)
	return s.out.String()
}

func (s *scanner) tag() {
	name := strings.IndexFunc(s.rest[1:], func(r rune) bool { return unicode.IsSpace(r) || r == '>' }) + 1
	if name == 0 {
		name = len(s.rest)
	}
	s.take(name, blue)
	for s.rest != "" {
		r, size := utf8.DecodeRuneInString(s.rest)
		n := s.quoted()
		switch {
		case r == '>':
			s.take(1, blue)
			return
		case n > 0:
			s.take(n, green)
		case isWord(r):
			end := strings.IndexFunc(s.rest, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("-:.", r) })
			if end < 0 {
				end = len(s.rest)
			}
			s.take(end, cyan)
		default:
			s.skip(size)
		}
	}
}
