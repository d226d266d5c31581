package gitguard

import (
	"errors"
	"strings"
)

// Setting is an entry of a configuration file of git.
type Setting struct {
	// Key is SECTION.NAME or SECTION.SUBSECTION.NAME. Section and name are in lower case.
	Key string
	// Value is empty for a name without value, which is true.
	Value string
	// Bare is true for a name without value.
	Bare bool
}

// errUnsure is the error for text that git might read in another way.
var errUnsure = errors.New("the configuration cannot be read with certainty")

// ParseConfig returns the settings of a configuration file, in order. It reads them as
// config.c of git does. What git refuses, and what its versions read in different ways, is
// an error.
func ParseConfig(text []byte) ([]Setting, error) {
	p := parser{text: strings.ReplaceAll(strings.TrimPrefix(string(text), "\uFEFF"), "\r\n", "\n")}
	if strings.ContainsFunc(p.text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFEFF' }) {
		return nil, errUnsure
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.settings, nil
}

type parser struct {
	text     string
	at       int
	section  string // with its subsection and a point; empty before the first
	settings []Setting
}

// next returns the next character, a line feed at the end of the text.
func (p *parser) next() byte {
	p.at++
	if p.at > len(p.text) {
		return '\n'
	}
	return p.text[p.at-1]
}

func (p *parser) parse() error {
	for p.at < len(p.text) {
		c := p.next()
		var err error
		switch {
		case c == '\n' || c == ' ' || c == '\t':
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			err = p.parseSection()
		case isLetter(c) && p.section != "":
			err = p.parseSetting(c)
		default:
			err = errUnsure
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) skipLine() {
	for p.next() != '\n' {
		continue
	}
}

// parseSection parses the rest of [section], [section.sub] or [section "sub"].
func (p *parser) parseSection() error {
	var name strings.Builder
	for {
		switch c := p.next(); {
		case c == ']':
			if p.section = strings.ToLower(name.String()) + "."; name.Len() == 0 {
				return errUnsure
			}
			return nil
		case c == ' ' || c == '\t':
			return p.parseSubsection(strings.ToLower(name.String()))
		case isKey(c) || c == '.':
			name.WriteByte(c)
		default:
			return errUnsure
		}
	}
}

func (p *parser) parseSubsection(section string) error {
	c := p.next()
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	if c != '"' || section == "" {
		return errUnsure
	}
	var sub strings.Builder
	for {
		switch c := p.next(); c {
		case '\n':
			return errUnsure
		case '"':
			p.section = section + "." + sub.String() + "."
			if p.next() != ']' {
				return errUnsure
			}
			return nil
		case '\\':
			if c = p.next(); c == '\n' {
				return errUnsure
			}
			sub.WriteByte(c)
		default:
			sub.WriteByte(c)
		}
	}
}

func (p *parser) parseSetting(first byte) error {
	name := []byte{first}
	c := p.next()
	for ; isKey(c); c = p.next() {
		name = append(name, c)
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	s := Setting{Key: p.section + strings.ToLower(string(name)), Bare: c == '\n'}
	if !s.Bare {
		if c != '=' {
			return errUnsure
		}
		var err error
		if s.Value, err = p.parseValue(); err != nil {
			return err
		}
	}
	p.settings = append(p.settings, s)
	return nil
}

// escapes of a value.
var escapes = map[byte]byte{'t': '\t', 'b': '\b', 'n': '\n', '\\': '\\', '"': '"'}

func (p *parser) parseValue() (string, error) {
	var value strings.Builder
	quoted, end := false, 0 // of the value without the blanks after it
	for {
		c := p.next()
		switch {
		case c == '\n' && quoted:
			return "", errUnsure
		case c == '\n':
			return value.String()[:end], nil
		case (c == ' ' || c == '\t') && !quoted:
			if value.Len() > 0 {
				value.WriteByte(c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			return value.String()[:end], nil
		case c == '"':
			quoted = !quoted
		case c == '\\':
			if p.at >= len(p.text) {
				return "", errUnsure // nothing to escape
			}
			escaped := p.next()
			known, ok := escapes[escaped]
			switch {
			case ok:
				value.WriteByte(known)
			case escaped != '\n': // the value continues on the next line
				return "", errUnsure
			}
		default:
			value.WriteByte(c)
		}
		end = value.Len()
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isKey(c byte) bool    { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

// FormatConfig returns a file with settings.
func FormatConfig(settings []Setting) []byte {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	last := ""
	for _, s := range settings {
		section, sub, name := splitKey(s.Key)
		head := "[" + section
		if sub != "" || strings.Contains(s.Key, "..") {
			head += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
		}
		if head += "]\n"; head != last {
			b.WriteString(head)
			last = head
		}
		b.WriteString("\t" + name)
		if !s.Bare {
			b.WriteString(` = "` + quote.Replace(s.Value) + `"`)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// splitKey returns the parts of a key.
func splitKey(key string) (section, sub, name string) {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return key, "", ""
	}
	section, name = key[:first], key[last+1:]
	if last > first {
		sub = key[first+1 : last]
	}
	return section, sub, name
}
