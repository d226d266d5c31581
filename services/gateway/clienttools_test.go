package gateway

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestSchemasOfClientToolsAreBounded: a schema that would take minutes to compile is refused
// first, with its field and the limit.
func TestSchemasOfClientToolsAreBounded(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"not":`, levels) + "{}" + strings.Repeat("}", levels)
	}
	const field = "spec.client_tools"
	for name, c := range map[string]struct{ schema, field, problem string }{
		"63 levels":    {nested(63), "", ""},
		"2,000 levels": {nested(2000), field + "[1].parameters_schema", "deeper than 64 levels"},
		"many values":  {`{"enum":[` + strings.Repeat("0,", 4000) + `0]}`, field + "[1].parameters_schema", "exceed the limit of 4000"},
		"70 KB":        {`{"title":"` + strings.Repeat("x", 70_000) + `"}`, field + "[1].parameters_schema", "exceed the limit of 65536"},
		"200 KB":       {nested(20_000), field, "98304"},
	} {
		err := CheckClientTools(field, []*harnessv1.ToolSpec{
			{Name: "a", Description: "One.", ParametersSchema: "{}"}, {Name: "b", Description: "Another.", ParametersSchema: c.schema},
		})
		got := fault.FieldOf(err)
		if c.field == "" && err != nil || c.field != "" && (got == nil || got.Field != c.field || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.field, c.problem)
		}
	}
}
