// Package calculate evaluates arithmetic exactly, in bounded time and memory.
//
// Values are rational numbers. The operators are + - * / % and ^ (also **), with the usual
// precedence; ^ binds from the right. % is the remainder with the sign of the divisor. The
// functions are abs, ceil, floor, max, min, round(x, digits) and sqrt. Numbers are decimal,
// with an exponent such as 1e6 and underscores between digits, or 0x, 0o and 0b.
package calculate

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Limits of an expression.
const (
	// maxLength bounds the text, in bytes.
	maxLength = 4096
	// maxDepth bounds how deep brackets, signs and powers nest.
	maxDepth = 100
	// maxBits bounds the numerator and the denominator of each value, in bits.
	maxBits = 16384
	// maxExponent bounds the exponent of a number and of a power.
	maxExponent = 16384
)

var errLarge = fmt.Errorf("a value has more than %d bits", maxBits)

// Evaluate returns the value of an expression as text: an integer or a decimal that is exact,
// else a fraction with its first 20 decimals, as in "1/3 (about 0.33333333333333333333)". The
// error names the place in the text, counted in bytes from 1.
func Evaluate(expression string) (string, error) {
	if len(expression) > maxLength {
		return "", fmt.Errorf("the expression has %d bytes, more than the limit of %d", len(expression), maxLength)
	}
	p := &parser{text: expression}
	value, err := p.sum(0)
	if err == nil {
		if p.space(); p.at < len(p.text) {
			err = fmt.Errorf("unexpected %q", p.rest())
		}
	}
	if err != nil {
		return "", fmt.Errorf("at %d: %w", p.at+1, err)
	}
	return format(value), nil
}

// format returns a value as text.
func format(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	if digits, exact := value.FloatPrec(); exact && digits <= 100 {
		return value.FloatString(digits)
	}
	return fmt.Sprintf("%s (about %s)", value.RatString(), value.FloatString(20))
}

// bounded returns a value that is within maxBits.
func bounded(value *big.Rat) (*big.Rat, error) {
	if value.Num().BitLen() > maxBits || value.Denom().BitLen() > maxBits {
		return nil, errLarge
	}
	return value, nil
}

func operate(operator string, a, b *big.Rat) (*big.Rat, error) {
	switch operator {
	case "+":
		return bounded(new(big.Rat).Add(a, b))
	case "-":
		return bounded(new(big.Rat).Sub(a, b))
	case "*":
		return bounded(new(big.Rat).Mul(a, b))
	}
	if b.Sign() == 0 {
		return nil, errors.New("division by zero")
	}
	quotient := new(big.Rat).Quo(a, b)
	if operator == "/" {
		return bounded(quotient)
	}
	return bounded(new(big.Rat).Sub(a, new(big.Rat).Mul(b, new(big.Rat).SetInt(floor(quotient)))))
}

func power(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() {
		return nil, errors.New("a power needs an integer as its exponent: use sqrt for roots")
	}
	bits := int64(max(base.Num().BitLen(), base.Denom().BitLen()))
	n := new(big.Int).Abs(exponent.Num())
	switch {
	case exponent.Sign() < 0 && base.Sign() == 0:
		return nil, errors.New("division by zero")
	case bits <= 1: // 0, 1 and -1
		n.And(n, big.NewInt(1))
		if exponent.Sign() != 0 && n.Sign() == 0 {
			n.SetInt64(2)
		}
	case !n.IsInt64() || n.Int64() > maxExponent || (bits-1)*n.Int64() > maxBits:
		return nil, errLarge
	}
	numerator, denominator := new(big.Int).Exp(base.Num(), n, nil), new(big.Int).Exp(base.Denom(), n, nil)
	if exponent.Sign() < 0 {
		numerator, denominator = denominator, numerator
	}
	return bounded(new(big.Rat).SetFrac(numerator, denominator))
}

// floor returns the largest integer that is not above a value.
func floor(value *big.Rat) *big.Int {
	return new(big.Int).Div(value.Num(), value.Denom()) // Euclid's, and denominators are positive
}

func call(name string, args []*big.Rat) (*big.Rat, error) {
	limits := map[string][2]int{"abs": {1, 1}, "ceil": {1, 1}, "floor": {1, 1}, "max": {1, 1000}, "min": {1, 1000}, "round": {1, 2}, "sqrt": {1, 1}}
	count, ok := limits[name]
	if !ok {
		return nil, fmt.Errorf("unknown function %s: expected abs, ceil, floor, max, min, round or sqrt", name)
	}
	if len(args) < count[0] || len(args) > count[1] {
		return nil, fmt.Errorf("%s has %d arguments, expected %d to %d", name, len(args), count[0], count[1])
	}
	x := args[0]
	switch name {
	case "abs":
		return new(big.Rat).Abs(x), nil
	case "floor":
		return new(big.Rat).SetInt(floor(x)), nil
	case "ceil":
		return new(big.Rat).Neg(new(big.Rat).SetInt(floor(new(big.Rat).Neg(x)))), nil
	case "sqrt":
		return root(x)
	case "round":
		return round(args)
	}
	for _, a := range args[1:] {
		if cmp := a.Cmp(x); cmp > 0 == (name == "max") && cmp != 0 {
			x = a
		}
	}
	return x, nil
}

// round rounds half away from zero, to decimals.
func round(args []*big.Rat) (*big.Rat, error) {
	digits := new(big.Rat)
	if len(args) == 2 {
		digits = args[1]
	}
	if !digits.IsInt() || digits.Num().CmpAbs(big.NewInt(1000)) > 0 {
		return nil, errors.New("the digits of round must be an integer from -1000 to 1000")
	}
	unit, err := power(big.NewRat(10, 1), digits)
	if err != nil {
		return nil, err
	}
	scaled := new(big.Rat).Mul(new(big.Rat).Abs(args[0]), unit)
	whole := new(big.Rat).SetInt(floor(scaled.Add(scaled, big.NewRat(1, 2))))
	if args[0].Sign() < 0 {
		whole.Neg(whole)
	}
	return bounded(whole.Quo(whole, unit))
}

// root returns the square root: exact if it is rational, else its first 40 decimals.
func root(x *big.Rat) (*big.Rat, error) {
	if x.Sign() < 0 {
		return nil, errors.New("the square root of a negative number")
	}
	n, d := new(big.Int).Sqrt(x.Num()), new(big.Int).Sqrt(x.Denom())
	exact := new(big.Rat).SetFrac(n, d)
	if new(big.Rat).Mul(exact, exact).Cmp(x) == 0 {
		return exact, nil
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)
	scaled := new(big.Rat).Mul(x, new(big.Rat).SetInt(new(big.Int).Mul(scale, scale)))
	return bounded(new(big.Rat).SetFrac(new(big.Int).Sqrt(floor(scaled)), scale))
}

// number returns the value of a number's text.
func number(text string) (*big.Rat, error) {
	lower := strings.ToLower(text)
	if !strings.HasPrefix(lower, "0x") {
		if _, exponent, ok := strings.Cut(lower, "e"); ok {
			n, valid := new(big.Int).SetString(exponent, 10)
			if !valid || n.CmpAbs(big.NewInt(maxExponent/4)) > 0 {
				return nil, fmt.Errorf("the exponent of %s is not from -%d to %d", text, maxExponent/4, maxExponent/4)
			}
		}
	}
	if len(lower) > 2 && lower[0] == '0' && strings.IndexByte("xob", lower[1]) >= 0 {
		n, ok := new(big.Int).SetString(lower, 0)
		if !ok {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return bounded(new(big.Rat).SetInt(n))
	}
	value, ok := new(big.Rat).SetString(strings.ReplaceAll(lower, "_", ""))
	if !ok {
		return nil, fmt.Errorf("%q is no number", text)
	}
	return bounded(value)
}
