package tool

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Set is an ordered collection of tool specs with unique names and compiled
// schemas. It is immutable and safe for concurrent use.
type Set struct {
	specs  []*harnessv1.ToolSpec
	byName map[string]*compiledSpec
}

// NewSet checks the specs and compiles their schemas. It returns an error if a name
// does not match [A-Za-z0-9_-]{1,64} or is a duplicate, or if a schema is not a
// self-contained JSON Schema (2020-12) of an object.
func NewSet(specs []*harnessv1.ToolSpec) (*Set, error) {
	s := &Set{
		specs:  append([]*harnessv1.ToolSpec(nil), specs...),
		byName: make(map[string]*compiledSpec, len(specs)),
	}
	for i, spec := range s.specs {
		name := spec.GetName()
		if !ValidName(name) {
			return nil, fmt.Errorf("tool %d: name %q does not match [A-Za-z0-9_-]{1,64}", i, content.Clip(name, 80))
		}
		if _, duplicate := s.byName[name]; duplicate {
			return nil, fmt.Errorf("duplicate tool %q", name)
		}
		c, err := compile(spec)
		if err != nil {
			return nil, fmt.Errorf("tool %q: parameters_schema: %w", name, err)
		}
		s.byName[name] = c
	}
	return s, nil
}

// Specs returns the tools in the order given to NewSet.
func (s *Set) Specs() []*harnessv1.ToolSpec { return s.specs }

// Lookup returns the tool of that name, or nil if there is none.
func (s *Set) Lookup(name string) *harnessv1.ToolSpec {
	if c := s.byName[name]; c != nil {
		return c.spec
	}
	return nil
}

// Validate checks the arguments of a call, as the model wrote them, against the
// tool's schema; empty or blank arguments count as {}. The error text is written for
// the model: the mistake, and on a second line the expected schema.
func (s *Set) Validate(name, arguments string) error {
	c := s.byName[name]
	if c == nil {
		return errors.New(s.unknown(name))
	}
	return c.validate(arguments)
}
