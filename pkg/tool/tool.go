// Package tool defines a tool as one value: its spec and the function that runs it.
//
// A Tool has the same form wherever it runs. A tool host's tool changes a workspace,
// a harness tool computes a change to the run, and a tool from outside is a value made
// at run time from what its server advertises; they differ only in the type of Run. A
// Registry is an ordered set of tools with unique names and compiled schemas. A Set is
// the same without the functions, for code that only shows tools and checks calls.
//
// The package is pure. Text that a model writes never makes it panic; it only leads to
// an error whose text the model reads. A schema cannot make it read a file or open a
// connection.
package tool

import (
	"encoding/json"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Tool is a tool: what models and the harness know about it, and how it runs. F is
// the function type of the place that runs it.
type Tool[F any] struct {
	// Spec has the name, description, schema, annotations and origin. It must not be
	// changed after the tool is registered.
	Spec *harnessv1.ToolSpec
	// Run carries out a call whose arguments have passed the schema. A nil Run means
	// that the tool runs elsewhere, such as at a client.
	Run F
}

// Registry is a Set of tools with the functions that run them. It is immutable.
type Registry[F any] struct {
	*Set
	byName map[string]Tool[F]
}

// NewRegistry returns a registry of the tools in the given order. It returns an error
// for the same reasons as NewSet.
func NewRegistry[F any](tools ...Tool[F]) (*Registry[F], error) {
	specs := make([]*harnessv1.ToolSpec, len(tools))
	byName := make(map[string]Tool[F], len(tools))
	for i, t := range tools {
		specs[i] = t.Spec
		byName[t.Spec.GetName()] = t
	}
	set, err := NewSet(specs)
	if err != nil {
		return nil, err
	}
	return &Registry[F]{Set: set, byName: byName}, nil
}

// Find returns the tool of that name and reports whether there is one.
func (r *Registry[F]) Find(name string) (Tool[F], bool) {
	t, ok := r.byName[name]
	return t, ok
}

// Arguments decodes the arguments of a call into A, a struct with a field for each
// argument. Empty text counts as {}. Numbers must be float64 fields: to JSON Schema,
// 2.0 is an integer.
func Arguments[A any](text string) (A, error) {
	var a A
	if text == "" {
		return a, nil
	}
	err := json.Unmarshal([]byte(text), &a)
	return a, err
}
