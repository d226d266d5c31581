package expr

import (
	"errors"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`turn == 2 && writes > 0`, `args.exists(a, args.exists(b, a == b))`, `tool_usage["x"] > 0`,
		`args.command.matches("^a+$")`, `{"a": [1, 2u, 3.0, b"x", null]}.size() > 0`, "a {{ turn }} {{ '}}' }}",
		`work_items.all(w, w.id.contains("x"))`, `timestamp("2026-01-01T00:00:00Z") > timestamp("x")`, `"\u00e9" in contract.unmet`,
	} {
		f.Add(seed)
	}
	given := vars{
		"turn": 3, "tool_usage": map[string]uint32{"x": 1}, "work_items": []any{vars{"id": "w1"}}, "artifacts": vars{"w1": "x"},
		"args": vars{"command": "aaa", "list": []any{1.5, "x", nil, vars{}}},
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, env := range []*Env{Jit, Hook, Tool, State} {
			given := given
			if env == Hook {
				given = nil // Its work_items are counts.
			}
			if program, err := env.Compile(source); err == nil {
				first, firstErr := program.Holds(given)
				again, againErr := program.Holds(given)
				if first != again || (firstErr == nil) != (againErr == nil) {
					t.Errorf("%v, %v; then %v, %v", first, firstErr, again, againErr)
				}
			} else {
				checkError(t, err)
			}
			if template, err := env.Template(source); err == nil {
				first, _ := template.Render(given)
				if again, _ := template.Render(given); first != again {
					t.Errorf("%q, then %q", first, again)
				}
			} else {
				checkError(t, err)
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var at *fault.FieldError
	if !errors.As(err, &at) || at.Message == "" || at.Line < 0 || at.Column < 0 || (at.Line == 0) != (at.Column == 0) {
		t.Errorf("the error is %#v", err)
	}
}
