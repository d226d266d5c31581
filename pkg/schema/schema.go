// Package schema compiles JSON Schemas that come from outside, and checks values with
// them, in bounded time.
//
// A schema is self-contained: no $ref reads a file or opens a connection. It is bounded in
// size, depth and number of values before it is compiled, because compiling takes more
// than linear time. Checking a value is bounded in steps, because references can make a
// small schema try exponentially many ways.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Limits of a schema.
const (
	// MaxBytes bounds the text of a schema.
	MaxBytes = 64 << 10
	// MaxDepth bounds how deep the objects and lists of a schema nest.
	MaxDepth = 64
	// MaxValues bounds the objects, lists and other values of a schema.
	MaxValues = 4000
)

// MaxNesting bounds how deep the objects and lists of a checked value nest.
const MaxNesting = 256

// ErrNotJSON is the error of a text that is not JSON. It reads as the end of a sentence.
var ErrNotJSON = errors.New("not valid JSON")

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema

	mu    sync.Mutex // of the budget
	steps budget
}

// Compile compiles a schema, JSON Schema 2020-12 unless it names another draft. If object
// is set, the schema is one of objects.
func Compile(text string, object bool) (*Schema, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d of a JSON Schema", len(text), MaxBytes)
	}
	doc, err := decode(text, MaxDepth, "a JSON Schema")
	if err != nil {
		return nil, err
	}
	if n := count(doc); n > MaxValues {
		return nil, fmt.Errorf("%d values exceed the limit of %d of a JSON Schema", n, MaxValues)
	}
	if err := checkForm(doc, object); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) { return Regexp(pattern, false) })
	if err := c.AddResource(location, doc); err != nil {
		return nil, invalid(err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, invalid(err)
	}
	s := &Schema{compiled: compiled}
	s.steps.watch(append(dynamic(c, location+"#", doc), compiled))
	return s, nil
}

// dynamic returns the parts that are reached by a name at the time of a check, and maybe
// by no reference.
func dynamic(c *jsonschema.Compiler, at string, value any) (found []*jsonschema.Schema) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			found = append(found, dynamic(c, at+"/"+strconv.Itoa(i), item)...)
		}
	case map[string]any:
		if _, named := v["$dynamicAnchor"]; named {
			if part, err := c.Compile(at); err == nil { // else it is no schema, but a value of one
				found = append(found, part)
			}
		}
		for name, item := range v {
			found = append(found, dynamic(c, at+"/"+url.PathEscape(pointer.Replace(name)), item)...)
		}
	}
	return found
}

// pointer escapes a name in a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// location is the address of a schema.
const location = "schema:///"

func invalid(err error) error {
	return fmt.Errorf("invalid JSON Schema: %s", content.Clip(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), location, "")), " "), 300))
}

func checkForm(doc any, object bool) error {
	switch form := doc.(type) {
	case map[string]any:
		if t, has := form["type"]; object && has && t != "object" {
			return fmt.Errorf("type is %v, expected object", t)
		}
		return nil
	case bool:
		if !object {
			return nil
		}
	}
	return errors.New("expected a JSON object")
}

// noLoader rejects every $ref that leads out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("unsupported $ref %s: the schema must be self-contained", content.Clip(url, 80))
}

// Decode decodes a JSON text for Validate. It refuses one that nests deeper than
// MaxNesting, and numbers that take long to compute with.
func Decode(text string) (any, error) { return decode(text, MaxNesting, "a JSON value") }

func decode(text string, limit int, what string) (any, error) {
	if Deeper(text, limit) {
		return nil, fmt.Errorf("its objects and lists nest deeper than %d levels, the limit of %s", limit, what)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotJSON, content.Clip(err.Error(), 200))
	}
	if err := checkNumbers(value); err != nil {
		return nil, err
	}
	return value, nil
}

// Deeper reports whether the objects and lists of a JSON text nest deeper than a limit. The text may be
// invalid.
func Deeper(text string, limit int) bool {
	if strings.Count(text, "{")+strings.Count(text, "[") <= limit {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// count returns the number of values in a decoded JSON value.
func count(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += count(item)
		}
	case map[string]any:
		for _, item := range v {
			n += count(item)
		}
	}
	return n
}

const (
	// maxExponentDigits bounds the digits of an exponent. The library computes with
	// rationals, for which 1e999999 is a number of a million digits.
	maxExponentDigits = 3
	// maxNumber bounds the characters of a number, for the same reason.
	maxNumber = 400
)

func checkNumbers(value any) error {
	switch v := value.(type) {
	case json.Number:
		text := v.String()
		_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
		digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
		if len(text) > maxNumber || len(digits) > maxExponentDigits {
			return fmt.Errorf("the number %s is out of range", content.Clip(text, 40))
		}
	case []any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}
