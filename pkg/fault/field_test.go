package fault_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestFieldErrorBecomesStatusAndBack(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		text string
		want *fault.FieldError
	}{
		{"whole value", fault.Invalid("run_id", "%q is no name", "a b"), `run_id: "a b" is no name`,
			&fault.FieldError{Field: "run_id", Message: `"a b" is no name`}},
		{"place in value", &fault.FieldError{Field: "cel", Message: "no", Line: 2, Column: 3}, "cel: line 2, column 3: no",
			&fault.FieldError{Field: "cel", Message: "no", Line: 2, Column: 3}},
		{"wrapped", fmt.Errorf("start: %w", fault.Invalid("a", "no")), "a: no", &fault.FieldError{Field: "a", Message: "no"}},
		{"another code", fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE, "goal: 9 bytes", "field", "goal"), "goal: 9 bytes",
			&fault.FieldError{Field: "goal", Message: "9 bytes"}},
		{"no field", fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_RUN_NOT_FOUND, "no such run"), "no such run", nil},
		{"plain error", errors.New("no"), "internal error; the server's log has the cause", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, _ := fault.Status(c.err)
			if st.Message() != c.text {
				t.Errorf("status %q", st.Message())
			}
			for _, err := range []error{c.err, st.Err()} {
				if got := fault.FieldOf(err); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
					t.Errorf("%v: got %+v", err, got)
				}
			}
		})
	}
	if fault.FieldOf(nil) != nil {
		t.Error("nil names a field")
	}
}

func TestFieldErrorIsACodedError(t *testing.T) {
	var coded *fault.Error
	if !errors.As(&fault.FieldError{Field: "when", Message: "no", Line: 1, Column: 4}, &coded) {
		t.Fatal("not found as *Error")
	}
	if coded.Code != codes.InvalidArgument || coded.Reason != harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD ||
		!slices.Equal(coded.Metadata, []string{"field", "when", "line", "1", "column", "4"}) {
		t.Errorf("got %+v", coded)
	}
}

func TestInPrefixesThePath(t *testing.T) {
	placed := &fault.FieldError{Message: "no", Line: 1, Column: 2}
	for _, c := range []struct {
		path string
		err  error
		want string
	}{
		{"spec.agent", fault.Invalid("hooks[0].cel", "no"), "spec.agent.hooks[0].cel: no"},
		{"tools", fault.Invalid("[3]", "no"), "tools[3]: no"},
		{"cel", placed, "cel: line 1, column 2: no"},
		{"", fault.Invalid("a", "no"), "a: no"},
		{"a", errors.New("no"), "a: no"},
	} {
		if got := fault.In(c.path, c.err); got.Error() != c.want {
			t.Errorf("In(%q, %v) is %q", c.path, c.err, got)
		}
	}
	if placed.Field != "" {
		t.Error("In changes its argument")
	}
	if fault.In("a", nil) != nil {
		t.Error("In(nil) is an error")
	}
}
