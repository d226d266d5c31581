// Package tool is what the turn worker and the tool host both know of tools:
// a set of them with compiled schemas, the check of a call's arguments, and the
// policy that decides whether a call runs.
//
// It is pure. A Set is immutable once made and may be used by many goroutines.
// Nothing that a model writes makes it fail other than by an error whose text
// the model is to read; nothing in a schema makes it fetch anything.
package tool

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var nameFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Set is an ordered collection of tools with unique names.
type Set struct {
	specs  []*harnessv1.ToolSpec
	byName map[string]*compiled
}

// NewSet checks the specs and compiles their schemas. It fails on a name that
// does not match [A-Za-z0-9_-]{1,64} or is taken, and on a schema that is not a
// self-contained JSON Schema (2020-12) of an object.
func NewSet(specs []*harnessv1.ToolSpec) (*Set, error) {
	s := &Set{
		specs:  append([]*harnessv1.ToolSpec(nil), specs...),
		byName: make(map[string]*compiled, len(specs)),
	}
	for i, spec := range s.specs {
		name := spec.GetName()
		if !nameFormat.MatchString(name) {
			return nil, fmt.Errorf("tool %d: name %q does not match [A-Za-z0-9_-]{1,64}", i, content.Clip(name, 80))
		}
		if _, taken := s.byName[name]; taken {
			return nil, fmt.Errorf("tool %q is declared twice", name)
		}
		c, err := compile(spec)
		if err != nil {
			return nil, fmt.Errorf("tool %q: parameters_schema: %w", name, err)
		}
		s.byName[name] = c
	}
	return s, nil
}

// Specs are the tools in the order in which they were given.
func (s *Set) Specs() []*harnessv1.ToolSpec { return s.specs }

// Lookup returns the tool of that name, nil when there is none.
func (s *Set) Lookup(name string) *harnessv1.ToolSpec {
	if c := s.byName[name]; c != nil {
		return c.spec
	}
	return nil
}

// Validate checks the arguments of a call, as the model wrote them, against the
// tool's schema; empty arguments count as {}. The error's text is for the
// model: what is wrong, and on a second line the schema that is expected.
func (s *Set) Validate(name, arguments string) error {
	c := s.byName[name]
	if c == nil {
		return errors.New(s.Unknown(name))
	}
	return c.validate(arguments)
}
