// Package dialect turns definitions of tools that others wrote into a form that every
// provider takes.
//
// The JSON Schema of a server may be anything that its author's validator takes; providers
// refuse a whole request for one schema that they do not know. So local references are written
// out, combinators at the top become one object, names of properties that providers refuse are
// replaced, keywords that only validate are left out, and sizes are bounded. What a model then
// writes is mapped back (Conversion.Original) and checked against the schema of the server.
//
// The package is pure; the same definition has the same form in every run.
package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

const (
	// MaxSchema bounds a schema in the dialect, in bytes.
	MaxSchema = 32 << 10
	// maxInput bounds the schema of a server, in bytes, maxNodes what it has once references
	// are written out, and maxDepth its depth.
	maxInput = 256 << 10
	maxNodes = 4000
	maxDepth = 12
	// Bounds of a text in a schema, and of an enumeration.
	maxText = 1 << 10
	maxEnum = 500
	// maxName bounds the name of a tool and of a property, in bytes.
	maxName = 64
)

// Conversion is the schema of a tool's arguments in the dialect.
type Conversion struct {
	// Schema is JSON.
	Schema string

	names *names
}

// names are how the properties of a value are renamed.
type names struct {
	// original has the server's name and the value's names of a renamed or nested property.
	original map[string]property
	// items are the names in the elements of an array, or in further properties of an object.
	items *names
}

type property struct {
	name  string
	names *names
}

// Convert returns the schema of a tool in the dialect. The error says, in a few words, why it
// cannot be converted.
func Convert(schema string) (*Conversion, error) {
	if len(schema) > maxInput {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(schema), maxInput)
	}
	root, err := decode(schema)
	if err != nil {
		return nil, errors.New("its schema is not JSON")
	}
	if root == true || root == nil {
		root = map[string]any{}
	}
	top, ok := root.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is not an object")
	}
	c := &converter{root: top}
	node, mapped := c.object(top)
	if c.err != nil {
		return nil, c.err
	}
	for _, texts := range []int{maxText, 200, 0} {
		c.shorten(node, texts)
		data, err := encode(node)
		if err != nil {
			return nil, err
		}
		if len(data) <= MaxSchema {
			return &Conversion{Schema: string(data), names: mapped}, nil
		}
	}
	return nil, fmt.Errorf("its schema is larger than %d bytes", MaxSchema)
}

// Original returns arguments of a model with the server's names of properties.
func (c *Conversion) Original(arguments string) (string, error) {
	if c.names == nil {
		return arguments, nil
	}
	value, err := decode(arguments)
	if err != nil {
		return "", errors.New("the arguments are not JSON")
	}
	data, err := encode(c.names.restore(value))
	return string(data), err
}

func (n *names) restore(value any) any {
	if n == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		restored := make(map[string]any, len(v))
		for name, of := range v {
			if p, ok := n.original[name]; ok {
				restored[p.name] = p.names.restore(of)
			} else {
				restored[name] = n.items.restore(of)
			}
		}
		return restored
	case []any:
		for i := range v {
			v[i] = n.items.restore(v[i])
		}
	}
	return value
}

// Text returns a text of a server without characters that people cannot see, cut to a number
// of bytes.
func Text(text string, limit int) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == unicode.ReplacementChar, unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp),
			unicode.Is(unicode.Variation_Selector, r), r == '\u3164', r == '\uFFA0', r == '\u115F', r == '\u1160':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return content.Cut(strings.TrimSpace(visible), limit)
}

// Name returns the name by which models call a tool of a server: mcp__SERVER__TOOL. One that is
// longer than 64 bytes or has characters other than [A-Za-z0-9_-] is shortened, and ends with 8
// digits of the digest of the whole name.
func Name(server, tool string) string { return usable("mcp__"+server+"__"+tool, "_-", maxName, 8) }

// usable returns a name of letters, digits and some other characters, which ends with digits of
// the digest of the whole one if it had to be changed.
func usable(name, others string, limit, digits int) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(others, r) {
			return r
		}
		return '_'
	}, name)
	if clean == name && len(name) <= limit && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return clean[:min(len(clean), limit-digits-1)] + "_" + hex.EncodeToString(sum[:])[:digits]
}

func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the value")
	}
	return value, nil
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
