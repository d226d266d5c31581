package pdf

import (
	"math"
	"strings"
)

// value is a name, an int, a reference, a dict or an array; nil for everything else.
type value any

type (
	name      string
	reference int
	dict      map[name]value
	array     []value
)

const (
	// maxDepth bounds the values within values.
	maxDepth = 32
	// maxText bounds the bytes of one value.
	maxText = 1 << 20
)

// parser reads values one after another.
type parser struct {
	data []byte
	at   int
	// broken is set at the end of the data and at bytes that are no value.
	broken bool
}

// value returns the next value.
func (p *parser) value(depth int) value {
	p.space()
	if p.at >= len(p.data) || depth > maxDepth {
		p.broken = true
		return nil
	}
	switch c := p.data[p.at]; {
	case c == '/':
		return p.name()
	case p.has("<<"):
		return p.dict(depth)
	case c == '[':
		return p.array(depth)
	case c == '(':
		p.text()
		return nil
	case c == '<':
		p.skipTo('>')
		return nil
	case isDigit(c):
		return p.number()
	case isDelimiter(c):
		p.broken = true
		return nil
	}
	p.word()
	return nil
}

// space skips white space and comments.
func (p *parser) space() {
	for ; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; {
		case c == '%':
			for p.at < len(p.data) && p.data[p.at] != '\n' && p.data[p.at] != '\r' {
				p.at++
			}
		case !isSpace(c):
			return
		}
	}
}

func (p *parser) has(text string) bool {
	return p.at+len(text) <= len(p.data) && string(p.data[p.at:p.at+len(text)]) == text
}

// word skips and returns a keyword or a number with a sign or a point.
func (p *parser) word() []byte {
	begin := p.at
	for p.at < len(p.data) && !isSpace(p.data[p.at]) && !isDelimiter(p.data[p.at]) {
		p.at++
	}
	return p.data[begin:p.at]
}

// name returns a name, in which #41 is A.
func (p *parser) name() value {
	p.at++
	text := string(p.word())
	if !strings.Contains(text, "#") {
		return name(text)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '#' && i+2 < len(text) && hex(text[i+1]) >= 0 && hex(text[i+2]) >= 0 {
			b.WriteByte(byte(hex(text[i+1])<<4 | hex(text[i+2]))) //nolint:gosec // two digits
			i += 2
			continue
		}
		b.WriteByte(text[i])
	}
	return name(b.String())
}

// number returns a number, or the reference that begins with it.
func (p *parser) number() value {
	word := p.word()
	for _, c := range word {
		if !isDigit(c) {
			return nil
		}
	}
	n, after := decimal(word), p.at
	p.space()
	if p.at < len(p.data) && isDigit(p.data[p.at]) {
		p.word()
		p.space()
		if p.has("R") && (p.at+1 == len(p.data) || isSpace(p.data[p.at+1]) || isDelimiter(p.data[p.at+1])) {
			p.at++
			return reference(n)
		}
	}
	p.at = after
	return n
}

func (p *parser) dict(depth int) value {
	p.at += 2
	d := dict{}
	for {
		p.space()
		if p.has(">>") {
			p.at += 2
			return d
		}
		key, ok := p.value(depth + 1).(name)
		if p.broken || !ok {
			p.broken = true
			return nil
		}
		v := p.value(depth + 1)
		if p.broken {
			return nil
		}
		d[key] = v
	}
}

func (p *parser) array(depth int) value {
	p.at++
	list := array{}
	for {
		p.space()
		if p.has("]") {
			p.at++
			return list
		}
		v := p.value(depth + 1)
		if p.broken {
			return nil
		}
		list = append(list, v)
	}
}

// text skips a string, in which parentheses are balanced or escaped.
func (p *parser) text() {
	for open := 0; p.at < len(p.data); p.at++ {
		switch p.data[p.at] {
		case '\\':
			p.at++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.at++
				return
			}
		}
	}
	p.broken = true
}

func (p *parser) skipTo(end byte) {
	for ; p.at < len(p.data); p.at++ {
		if p.data[p.at] == end {
			p.at++
			return
		}
	}
	p.broken = true
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isDelimiter(c byte) bool { return strings.IndexByte("()<>[]{}/%", c) >= 0 }

func hex(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }

// decimal returns the number of some digits; at most the largest 32-bit one.
func decimal(digits []byte) int {
	n := 0
	for _, c := range digits {
		if n = 10*n + int(c-'0'); n > math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return n
}
