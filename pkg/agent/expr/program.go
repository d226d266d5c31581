package expr

import (
	"errors"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// Program is a compiled expression.
type Program struct {
	env        *Env
	program    cel.Program
	output     types.Kind
	outputName string
}

// Holds reports whether the expression is true for the variables in vars. Numbers may
// have any Go type; args is what encoding/json decodes an object to. A missing field or
// key makes the expression false. It is an error if a value has another type than the
// expression expects, or if the evaluation costs too much.
func (p *Program) Holds(vars map[string]any) (bool, error) {
	out, err := p.eval(vars)
	if err != nil {
		if isMissing(err) {
			return false, nil
		}
		return false, err
	}
	holds, ok := out.(types.Bool)
	return ok && bool(holds), nil
}

func (p *Program) eval(vars map[string]any) (ref.Val, error) {
	out, _, err := p.program.Eval(activation{p.env, vars})
	if err == nil {
		return out, nil
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return nil, errors.New("costs too much with these values")
	}
	return nil, errors.New(oneLine(err.Error()))
}

// isMissing reports whether err is the library's error for a missing key, which has no
// separate type.
func isMissing(err error) bool {
	return strings.HasPrefix(err.Error(), "no such key")
}

// activation resolves the variables for the evaluator.
type activation struct {
	env  *Env
	vars map[string]any
}

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	v := a.env.byName[strings.TrimPrefix(name, ".")]
	if v == nil {
		return nil, false
	}
	return v.value(a.vars[v.name]), true
}

// Parent implements interpreter.Activation.
func (activation) Parent() interpreter.Activation { return nil }
