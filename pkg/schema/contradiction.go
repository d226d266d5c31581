package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Contradiction returns the place and the keywords by which no value at all fits the schema; empty if
// none is found. It finds those of types, ranges and required properties, not every one.
func (s *Schema) Contradiction() string {
	f := kindFinder{found: map[*jsonschema.Schema]kinds{}}
	if f.kinds(s.compiled) != 0 {
		return ""
	}
	return content.Clip(strings.TrimPrefix(f.why, location), 300)
}

// kinds is a set of kinds of values.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	text
	array
	object
	integer
	fraction // a number that is no integer

	anyKind = null | boolean | text | array | object | integer | fraction
)

var kindsOfType = map[string]kinds{
	"null": null, "boolean": boolean, "string": text, "array": array, "object": object, "integer": integer, "number": integer | fraction,
}

// kindFinder finds the kinds of values that can fit parts of a schema.
type kindFinder struct {
	// found has the parts that are visited; a part that refers to itself can be of any kind meanwhile.
	found map[*jsonschema.Schema]kinds
	// why is the last reason for which no value fits a part.
	why string
}

// kinds returns a superset of the kinds of values that fit s; 0 if no value does.
func (f *kindFinder) kinds(s *jsonschema.Schema) kinds {
	if k, visited := f.found[s]; visited {
		return k
	}
	f.found[s] = anyKind
	k := f.typed(s)
	for _, part := range append(slices.Clone(s.AllOf), s.Ref) {
		if part != nil && k != 0 {
			k = f.both(s, k, f.kinds(part), "its type and that of allOf or $ref exclude each other")
		}
	}
	for _, parts := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(parts) == 0 || k == 0 {
			continue
		}
		var either kinds
		for _, part := range parts {
			either |= f.kinds(part)
		}
		k = f.both(s, k, either, "its type and those of anyOf or oneOf exclude each other")
	}
	f.found[s] = k
	return k
}

// both returns what two sets share. The reason is that of part if part is empty.
func (f *kindFinder) both(s *jsonschema.Schema, k, part kinds, why string) kinds {
	if part != 0 && k&part == 0 {
		f.why = s.Location + ": " + why
	}
	return k & part
}

// typed returns the kinds that the keywords of s itself leave.
func (f *kindFinder) typed(s *jsonschema.Schema) kinds {
	k := typesOf(s)
	switch {
	case s.Bool != nil && !*s.Bool:
		return f.none(s, "false fits no value")
	case s.Not != nil:
		if k &^= allOf(s.Not); k == 0 {
			return f.none(s, "not excludes every value")
		}
	}
	if values := valuesOf(s); values != nil {
		var listed kinds
		for _, v := range values {
			listed |= kindOf(v)
		}
		if k &= listed; k == 0 {
			return f.none(s, "no value of enum or const has its type")
		}
	}
	for _, c := range []struct {
		of  kinds
		why string
	}{
		{text, exceeds("minLength", s.MinLength, "maxLength", s.MaxLength)},
		{array, exceeds("minItems", s.MinItems, "maxItems", s.MaxItems)},
		{integer | fraction, emptyRange(s)},
		{object, exceeds("minProperties", s.MinProperties, "maxProperties", s.MaxProperties)},
		{object, f.missing(s)},
	} {
		if c.why == "" || k&c.of == 0 {
			continue
		}
		if k &^= c.of; k == 0 {
			return f.none(s, c.why)
		}
	}
	return k
}

// typesOf returns the kinds of the keyword type.
func typesOf(s *jsonschema.Schema) (k kinds) {
	if s.Types == nil {
		return anyKind
	}
	for _, name := range s.Types.ToStrings() {
		k |= kindsOfType[name]
	}
	return k
}

// saysNothing are the members of a schema that exclude no value.
var saysNothing = []string{
	"DraftVersion", "Location", "ID", "Anchor", "RecursiveAnchor", "DynamicAnchor", "Types",
	"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
}

// allOf returns kinds of which every value fits s; none if s has a keyword apart from type.
func allOf(s *jsonschema.Schema) (all kinds) {
	if s.Bool != nil {
		if *s.Bool {
			return anyKind
		}
		return 0
	}
	members := reflect.ValueOf(s).Elem()
	for i := range members.NumField() {
		m := members.Type().Field(i)
		if m.Name == "Format" && (s.Format == nil || s.Format.Name == "") { // the one of budget.watch
			continue
		}
		if m.IsExported() && !slices.Contains(saysNothing, m.Name) && !members.Field(i).IsZero() {
			return 0
		}
	}
	return typesOf(s)
}

// none returns no kind, and stores the reason.
func (f *kindFinder) none(s *jsonschema.Schema, why string) kinds {
	f.why = s.Location + ": " + why
	return 0
}

// missing returns why an object cannot have a property that it must have.
func (f *kindFinder) missing(s *jsonschema.Schema) string {
	for _, name := range s.Required {
		property, listed := s.Properties[name]
		if listed && f.kinds(property) == 0 {
			return fmt.Sprintf("%q is required, and no value fits it: %s", name, strings.TrimPrefix(f.why, location))
		}
		if open, fixed := s.AdditionalProperties.(bool); fixed && !open && !listed && len(s.PatternProperties) == 0 {
			return fmt.Sprintf("%q is required, and additionalProperties excludes it", name)
		}
	}
	return ""
}

func valuesOf(s *jsonschema.Schema) []any {
	switch {
	case s.Const != nil:
		return []any{*s.Const}
	case s.Enum != nil:
		return append([]any{}, s.Enum.Values...)
	}
	return nil
}

func kindOf(value any) kinds {
	switch value.(type) {
	case nil:
		return null
	case bool:
		return boolean
	case string:
		return text
	case []any:
		return array
	case map[string]any:
		return object
	case json.Number:
		return integer | fraction // 1.0 is an integer
	}
	return anyKind
}

func exceeds(least string, from *int, most string, to *int) string {
	if from == nil || to == nil || *from <= *to {
		return ""
	}
	return fmt.Sprintf("%s %d exceeds %s %d", least, *from, most, *to)
}

// emptyRange returns why no number is within the bounds of s.
func emptyRange(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil && s.Minimum.Cmp(s.Maximum) > 0:
		return "minimum exceeds maximum"
	case s.Minimum != nil && s.ExclusiveMaximum != nil && s.Minimum.Cmp(s.ExclusiveMaximum) >= 0:
		return "minimum is not below exclusiveMaximum"
	case s.ExclusiveMinimum != nil && s.Maximum != nil && s.ExclusiveMinimum.Cmp(s.Maximum) >= 0:
		return "exclusiveMinimum is not below maximum"
	case s.ExclusiveMinimum != nil && s.ExclusiveMaximum != nil && s.ExclusiveMinimum.Cmp(s.ExclusiveMaximum) >= 0:
		return "exclusiveMinimum is not below exclusiveMaximum"
	}
	return ""
}
