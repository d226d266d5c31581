// Package dialect turns the definition of a tool from outside into a form that every model
// service accepts.
//
// Services refuse a whole request because of one keyword in one schema, and each refuses
// another one. Convert returns a schema that uses only what all of them accept: one type
// for each value, properties with plain names, lists with items, enums of texts, anyOf
// below the top, and bounds of numbers and lists. All else becomes a note in a description.
// Original maps the arguments that a model wrote for that schema to those of the server.
//
// The package is pure, and its results depend on the definition alone: the same in every
// run and on every machine.
package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// Limits of a definition.
const (
	// maxInput bounds the text of a server's schema, in bytes.
	maxInput = 256 << 10
	// maxSchema bounds the converted schema, in bytes.
	maxSchema = 16 << 10
	// maxDepth bounds how deep the converted schema nests values; the top is level 1.
	maxDepth = 8
	// maxProperties bounds the properties of the converted schema, at all levels together.
	maxProperties = 256
	// maxEnum bounds the values of one enum.
	maxEnum = 100
	// maxVisits bounds the work on one schema: the parts that one pass converts.
	maxVisits = 4000
)

// pass is the detail of one conversion. A schema that is too large with one pass is
// converted again with the next.
type pass struct {
	description int // bytes of a description below the top
	depth       int
}

var passes = []pass{{1024, maxDepth}, {256, maxDepth}, {120, 5}, {60, 3}, {0, 2}}

// Conversion is a schema in the common dialect. It is safe for concurrent use.
type Conversion struct {
	// Schema is a JSON Schema of type object, at most maxSchema bytes. Its text is the same
	// for the same original. Its description has what it cannot express about the top, such
	// as the alternatives of a combinator.
	Schema string

	top   *mapping
	check *schema.Schema // nil if the original does not compile: the server alone checks
}

// Convert returns the schema of a tool's arguments in the common dialect. The empty text
// counts as {}. An error is the reason why the tool cannot be used; it reads as the end of a
// sentence about the schema.
func Convert(text string) (*Conversion, error) {
	if len(text) > maxInput {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), maxInput)
	}
	if text == "" {
		text = "{}"
	}
	doc, err := schema.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("it is refused: %w", err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	conversion := &Conversion{}
	if compiled, err := schema.Compile(text, false); err == nil {
		conversion.check = compiled
	}
	for _, p := range passes {
		err = conversion.convert(root, p)
		if err == nil || !errors.Is(err, errLarge) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return conversion, nil
}

// errLarge is the error of a schema that exceeds a limit with one pass.
var errLarge = fmt.Errorf("it is too large for a model: at most %d bytes, %d properties", maxSchema, maxProperties)

func (d *Conversion) convert(root map[string]any, p pass) error {
	c := &converter{root: root, pass: p, open: map[string]int{}}
	out, top, err := c.top()
	if err != nil {
		return err
	}
	text, err := encode(out)
	if err != nil {
		return err
	}
	if len(text) > maxSchema {
		return errLarge
	}
	d.Schema, d.top = text, top
	return nil
}

// Original returns the arguments of the server for those that a model wrote for Schema, and
// checks them with the server's schema. The empty text counts as {}. The error is for the
// model.
func (d *Conversion) Original(arguments string) (string, error) {
	if arguments == "" {
		arguments = "{}"
	}
	value, err := schema.Decode(arguments)
	if err != nil {
		return "", err
	}
	if _, ok := value.(map[string]any); !ok {
		return "", errors.New("the arguments are not a JSON object")
	}
	value = d.top.restore(value)
	if d.check != nil {
		if err := d.check.Validate(value, 240); err != nil {
			return "", fmt.Errorf("the server's schema refuses the arguments: %s", content.Clip(err.Error(), 400))
		}
	}
	return encode(value)
}

// encode returns a value as JSON with sorted keys and without escapes for HTML.
func encode(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
