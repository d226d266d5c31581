package calculate

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// parser evaluates a text while it reads it. Each method starts at a depth of nesting.
type parser struct {
	text string
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// rest returns what follows, for an error.
func (p *parser) rest() string { return content.Clip(p.text[p.at:min(len(p.text), p.at+20)], 20) }

// take consumes the first of the texts that follows.
func (p *parser) take(texts ...string) string {
	p.space()
	for _, text := range texts {
		if strings.HasPrefix(p.text[p.at:], text) {
			p.at += len(text)
			return text
		}
	}
	return ""
}

func (p *parser) sum(depth int) (*big.Rat, error) {
	return p.chain(func() (*big.Rat, error) { return p.product(depth) }, "+", "-")
}

func (p *parser) product(depth int) (*big.Rat, error) {
	return p.chain(func() (*big.Rat, error) { return p.sign(depth) }, "*", "/", "%")
}

// chain evaluates operands with operators of one precedence between them, from the left.
func (p *parser) chain(operand func() (*big.Rat, error), operators ...string) (*big.Rat, error) {
	value, err := operand()
	for err == nil {
		operator := p.take(operators...)
		if operator == "" {
			break
		}
		var next *big.Rat
		if next, err = operand(); err == nil {
			value, err = operate(operator, value, next)
		}
	}
	return value, err
}

func (p *parser) sign(depth int) (*big.Rat, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch p.take("+", "-") {
	case "+":
		return p.sign(depth + 1)
	case "-":
		value, err := p.sign(depth + 1)
		if err != nil {
			return nil, err
		}
		return value.Neg(value), nil
	}
	base, err := p.primary(depth)
	if err != nil || p.take("**", "^") == "" {
		return base, err
	}
	exponent, err := p.sign(depth + 1)
	if err != nil {
		return nil, err
	}
	return power(base, exponent)
}

func (p *parser) primary(depth int) (*big.Rat, error) {
	if p.take("(") != "" {
		value, err := p.sum(depth + 1)
		if err == nil && p.take(")") == "" {
			err = errors.New("expected )")
		}
		return value, err
	}
	start := p.at
	for p.at < len(p.text) && p.inWord(start) {
		p.at++
	}
	word := p.text[start:p.at]
	switch {
	case word == "" && p.at == len(p.text):
		return nil, errors.New("the expression ends where a number is expected")
	case word == "":
		return nil, fmt.Errorf("unexpected %q, expected a number", p.rest())
	case word[0] >= '0' && word[0] <= '9' || word[0] == '.':
		return number(word)
	case p.take("(") == "":
		return nil, fmt.Errorf("%q is neither a number nor a function", content.Clip(word, 20))
	}
	var args []*big.Rat
	for {
		value, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		args = append(args, value)
		switch p.take(",", ")") {
		case ")":
			return call(word, args)
		case "":
			return nil, errors.New("expected , or )")
		}
	}
}

// inWord reports whether the next byte continues a number or a name that begins at start.
func (p *parser) inWord(start int) bool {
	c := p.text[p.at]
	switch {
	case c >= '0' && c <= '9', c == '.', c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return true
	case c != '+' && c != '-' || p.at == start:
		return false
	}
	// The sign of an exponent, as in 1e-6.
	first, last := p.text[start], p.text[p.at-1]
	decimal := !strings.HasPrefix(strings.ToLower(p.text[start:p.at]), "0x")
	return decimal && (first >= '0' && first <= '9' || first == '.') && (last == 'e' || last == 'E')
}
