package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

const (
	// maxSteps bounds the steps of one Validate, about a second.
	maxSteps = 500_000
	// bytesPerStep and valuesPerStep are how many bytes of a text, and values of an
	// enumeration, count as a step.
	bytesPerStep  = 64
	valuesPerStep = 16
	// maxFindings bounds the findings in one error.
	maxFindings = 3
)

// errSteps is the panic with which a validation ends that takes too many steps.
var errSteps = errors.New("it takes more steps to check than the limit: use fewer alternatives and references in the schema, or a shorter value")

// Validate checks a value of Decode. The error is one line with up to three findings, each
// of at most limit bytes with its place.
func (s *Schema) Validate(value any, limit int) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps.left = maxSteps
	defer func() {
		if p := recover(); p != nil {
			if p != any(errSteps) {
				panic(p)
			}
			err = errSteps
		}
	}()
	err = s.compiled.Validate(value)
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return err
	}
	found := finder{limit: limit, printer: message.NewPrinter(language.English)}
	found.add(failed)
	if found.more > 0 {
		found.texts = append(found.texts, fmt.Sprintf("and %d more", found.more))
	}
	return errors.New(strings.Join(found.texts, "; "))
}

// finder collects the leaves of a validation error, each with its location.
type finder struct {
	limit   int
	printer *message.Printer
	texts   []string
	more    int
}

func (f *finder) add(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		f.add(cause)
	}
	switch {
	case len(e.Causes) > 0:
	case len(f.texts) == maxFindings:
		f.more++
	default:
		text := e.ErrorKind.LocalizedString(f.printer)
		if len(e.InstanceLocation) > 0 {
			text = content.Clip(strings.Join(e.InstanceLocation, "."), f.limit/2) + ": " + text
		}
		f.texts = append(f.texts, content.Clip(text, f.limit))
	}
}

// budget counts the steps of a validation.
type budget struct{ left int }

func (b *budget) spend(steps int) {
	if b.left -= steps; b.left < 0 {
		panic(errSteps)
	}
}

// watch makes every part of schemas spend steps when it is tried: a format is checked
// before the parts below it, but after an enumeration, which the part above pays for.
func (b *budget) watch(roots []*jsonschema.Schema) {
	for s := range parts(roots) {
		own, patterns, longest := s.Format, len(s.PatternProperties), 0
		for _, below := range children(s) {
			if below != nil && below.Enum != nil {
				longest = max(longest, len(below.Enum.Values))
			}
		}
		once := 1 + longest/valuesPerStep
		name := ""
		if own != nil {
			name = own.Name
		}
		s.Format = &jsonschema.Format{Name: name, Validate: func(v any) error {
			b.spend(once)
			switch v := v.(type) {
			case string:
				b.spend(len(v) / bytesPerStep)
			case []any:
				b.spend(len(v) * once)
			case map[string]any:
				b.spend(len(v) * (once + patterns))
			}
			if own == nil {
				return nil
			}
			return own.Validate(v)
		}}
	}
}

// parts returns every schema that schemas refer to, and these.
func parts(roots []*jsonschema.Schema) map[*jsonschema.Schema]bool {
	seen := map[*jsonschema.Schema]bool{}
	for next := roots; len(next) > 0; {
		s := next[len(next)-1]
		next = next[:len(next)-1]
		if s != nil && !seen[s] {
			seen[s] = true
			next = append(next, children(s)...)
		}
	}
	return seen
}

// children returns the schemas to which a schema refers itself.
func children(s *jsonschema.Schema) (found []*jsonschema.Schema) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !literal[f.Name] {
			found = collect(found, v.Field(i))
		}
	}
	return found
}

// literal are the fields of a schema with values of its author, in which there is no
// schema.
var literal = map[string]bool{"Const": true, "Default": true, "Examples": true, "Extensions": true}

// collect adds the schemas in a field to a list.
func collect(found []*jsonschema.Schema, v reflect.Value) []*jsonschema.Schema {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			found = collect(found, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			found = collect(found, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			found = collect(found, v.MapIndex(key))
		}
	case reflect.Pointer:
		switch p := v.Interface().(type) {
		case *jsonschema.Schema:
			found = append(found, p)
		case *jsonschema.DynamicRef:
			if p != nil {
				found = append(found, p.Ref)
			}
		}
	default:
	}
	return found
}
