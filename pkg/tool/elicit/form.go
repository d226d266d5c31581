package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// Types of fields.
const (
	Text    = "string"
	Number  = "number"
	Integer = "integer"
	Boolean = "boolean"
	// List is a choice of several options.
	List = "array"
)

// Field is a field of a form. Its texts are the words of the server.
type Field struct {
	// Name is the key of its value.
	Name string
	// Type is one of the types above.
	Type string
	// Title and Description are for people; may be empty.
	Title, Description string
	// Required is true if the form needs it.
	Required bool
	// Options are the values to choose from; nil if any value fits.
	Options []Option
	// Default is its value if there is no answer, as JSON; empty without one.
	Default string
}

// Option is a value to choose.
type Option struct{ Value, Title string }

// form is the schema of a form, as far as the protocol has it.
type form struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// property is the schema of a field.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	choice
	Items *choice `json:"items"`
}

// choice has the options of a field.
type choice struct {
	Enum  []string   `json:"enum"`
	Names []string   `json:"enumNames"`
	OneOf []constant `json:"oneOf"`
	AnyOf []constant `json:"anyOf"`
}

type constant struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Fields returns the fields of a form: those that it needs first, then by name. The error is why
// the schema is not that of a form.
func Fields(text string) ([]Field, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("its form has %d bytes, more than the limit of %d", len(text), maxSchema)
	}
	if _, err := schema.Compile(text, true); err != nil {
		return nil, fmt.Errorf("its form: %w", err)
	}
	f := form{}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, errors.New("its form does not name fields as an object")
	}
	if len(f.Properties) > MaxFields {
		return nil, fmt.Errorf("its form has %d fields, more than the limit of %d", len(f.Properties), MaxFields)
	}
	for _, name := range f.Required {
		if _, ok := f.Properties[name]; !ok {
			return nil, fmt.Errorf("its form needs the field %q, which it does not describe", content.Clip(content.Clean(name), 80))
		}
	}
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		field, err := fieldOf(name, f.Properties[name])
		if err != nil {
			return nil, err
		}
		field.Required = slices.Contains(f.Required, name)
		fields = append(fields, field)
	}
	slices.SortStableFunc(fields, func(a, b Field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return fields, nil
}

func fieldOf(name string, raw json.RawMessage) (Field, error) {
	p := property{}
	shown := content.Clip(content.Clean(name), 80)
	if err := json.Unmarshal(raw, &p); err != nil {
		return Field{}, fmt.Errorf("its field %q is not a text, a number, a truth value or a choice", shown)
	}
	field := Field{Name: name, Type: p.Type, Title: p.Title, Description: p.Description, Default: string(p.Default)}
	switch p.Type {
	case Text:
		field.Options = p.options()
	case List:
		if p.Items != nil {
			field.Options = p.Items.options()
		}
		if field.Options == nil {
			return Field{}, fmt.Errorf("its field %q is a list without options", shown)
		}
	case Number, Integer, Boolean:
	default:
		return Field{}, fmt.Errorf("its field %q has the type %q, expected string, number, integer, boolean or a choice", shown, content.Clip(content.Clean(p.Type), 40))
	}
	return field, nil
}

func (c choice) options() (options []Option) {
	for i, value := range c.Enum {
		o := Option{Value: value}
		if i < len(c.Names) {
			o.Title = c.Names[i]
		}
		options = append(options, o)
	}
	for _, n := range append(slices.Clone(c.OneOf), c.AnyOf...) {
		options = append(options, Option{Value: n.Const, Title: n.Title})
	}
	return options
}
