package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Signature identifies a call: strict by tool, arguments and result, loose by tool and
// arguments. Equal arguments in two spellings have one signature (see Canonical).
// resultDigest is any text that differs for different results.
func Signature(tool, arguments, resultDigest string) (strict, loose uint64) {
	canonical := Canonical(arguments)
	return strictOf(tool, canonical, resultDigest), digest("loose", tool, canonical)
}

func strictOf(tool, canonical, resultDigest string) uint64 {
	return digest("strict", tool, canonical, resultDigest)
}

// Canonical returns one spelling of JSON arguments: with sorted keys, without white
// space, and with numbers by their value, so that 1, 1.0 and 10e-1 are equal. The last of
// duplicate keys counts. Blank arguments are {}. Text that is no JSON is unchanged.
func Canonical(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	if !utf8.ValidString(arguments) {
		return arguments
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return arguments
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return arguments
	}
	var to bytes.Buffer
	to.Grow(len(arguments))
	write(&to, value)
	return to.String()
}

func write(to *bytes.Buffer, value any) {
	switch v := value.(type) {
	case map[string]any:
		to.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				to.WriteByte(',')
			}
			writeString(to, key)
			to.WriteByte(':')
			write(to, v[key])
		}
		to.WriteByte('}')
	case []any:
		to.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				to.WriteByte(',')
			}
			write(to, item)
		}
		to.WriteByte(']')
	case json.Number:
		to.WriteString(number(v.String()))
	case string:
		writeString(to, v)
	case bool:
		to.WriteString(strconv.FormatBool(v))
	default:
		to.WriteString("null")
	}
}

func writeString(to *bytes.Buffer, s string) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)           // a string always encodes
	to.Truncate(to.Len() - 1) // the encoder ends with a line feed
}

// number returns one spelling of a JSON number: its significant digits and a power of
// ten. It does not compute the value, which may be of any size. A power of more than 18
// digits is unchanged.
func number(text string) string {
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	exponent := int64(0)
	if power != "" {
		e, err := strconv.ParseInt(power, 10, 64)
		if err != nil || e > 1e18 || e < -1e18 {
			return text
		}
		exponent = e
	}
	exponent -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(short))
	if exponent == 0 {
		return sign + short
	}
	return sign + short + "e" + strconv.FormatInt(exponent, 10)
}
