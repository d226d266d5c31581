package expr

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Env is a kind of expression: the variables that it can read.
type Env struct {
	name      string
	variables []variable
	byName    map[string]*variable
	// cel returns the environment, created at first use: most processes never compile an
	// expression.
	cel func() *cel.Env
}

func newEnv(name string, groups ...[]variable) *Env {
	e := &Env{name: name, variables: slices.Concat(groups...)}
	e.byName = make(map[string]*variable, len(e.variables))
	for i := range e.variables {
		e.byName[e.variables[i].name] = &e.variables[i]
	}
	e.cel = sync.OnceValue(e.make)
	return e
}

// Variables returns the names of the variables, in order.
func (e *Env) Variables() []string {
	names := make([]string, len(e.variables))
	for i, v := range e.variables {
		names[i] = v.name
	}
	return names
}

func (e *Env) make() *cel.Env {
	registry := types.NewEmptyRegistry()
	options := []cel.EnvOption{
		cel.CustomTypeProvider(recordProvider{registry}),
		cel.CustomTypeAdapter(values),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxSource),
		cel.ParserRecursionLimit(maxDepth),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	}
	for _, v := range e.variables {
		options = append(options, cel.Variable(v.name, v.typ))
	}
	env, err := cel.NewEnv(options...)
	if err != nil { // the variables are invalid: every test fails here
		panic(fmt.Sprintf("expr: %s: %v", e.name, err))
	}
	return env
}

// Compile compiles an expression, which must be of type bool and within the limits of
// this package. The error is a *fault.FieldError.
func (e *Env) Compile(source string) (*Program, error) {
	p, err := e.compile(source)
	if err != nil {
		return nil, err
	}
	if p.output != types.BoolKind {
		message := fmt.Sprintf("has a value of type %s, expected bool", p.outputName)
		if p.output == types.DynKind {
			message = "has a value of any type, expected bool: compare it, as in … == true"
		}
		return nil, &fault.FieldError{Line: 1, Column: 1, Message: message}
	}
	return p, nil
}

// compile is Compile for any type of value.
func (e *Env) compile(source string) (*Program, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, &fault.FieldError{Message: "is empty"}
	case len(source) > maxSource:
		return nil, &fault.FieldError{Message: fmt.Sprintf("%d bytes exceed the limit of %d", len(source), maxSource)}
	case !utf8.ValidString(source):
		return nil, &fault.FieldError{Message: "is not valid UTF-8"}
	}
	env := e.cel()
	tree, issues := env.Compile(source)
	if err := e.first(issues); err != nil {
		return nil, err
	}
	estimate, err := env.EstimateCost(tree, newSizes(e, tree))
	if err != nil {
		return nil, &fault.FieldError{Message: "cannot be estimated: " + oneLine(err.Error())}
	}
	if estimate.Max > maxEstimate {
		return nil, &fault.FieldError{Message: "may cost too much: read less text, or nest fewer macros (all, exists, filter, map)"}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if !isCheap(env, tree) {
		options = append(options, cel.CostTracking(prices{}), cel.CostLimit(maxCost))
	}
	program, err := env.Program(tree, options...)
	if err != nil {
		return nil, &fault.FieldError{Message: oneLine(err.Error())}
	}
	output := tree.OutputType()
	return &Program{env: e, program: program, output: output.Kind(), outputName: output.String()}, nil
}

// first returns the first of the issues as an error, nil if there is none.
func (e *Env) first(issues *cel.Issues) error {
	if issues == nil || issues.Err() == nil {
		return nil
	}
	found := issues.Errors()
	if len(found) == 0 {
		return &fault.FieldError{Message: oneLine(issues.Err().Error())}
	}
	one := slices.MinFunc(found, func(a, b *common.Error) int {
		if by := a.Location.Line() - b.Location.Line(); by != 0 {
			return by
		}
		return a.Location.Column() - b.Location.Column()
	})
	// The list of tokens that the parser expected does not help a reader.
	message, _, _ := strings.Cut(one.Message, " expecting {")
	if message == "invalid matches argument" {
		message = "invalid regular expression (RE2), or one that is too large"
	}
	at := &fault.FieldError{Line: one.Location.Line(), Column: one.Location.Column() + 1, Message: oneLine(message)}
	if at.Line < 1 || at.Column < 1 {
		at.Line, at.Column = 0, 0
	}
	if strings.Contains(one.Message, "(double, int)") || strings.Contains(one.Message, "(int, double)") {
		at.Message += "; write a whole number as 5.0 to use it with a double"
	}
	if strings.HasPrefix(one.Message, "undeclared reference") {
		at.Message += "; the variables are " + strings.Join(e.Variables(), ", ")
	}
	return at
}

// oneLine cuts a message of the library, which may quote all of the source.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	const limit = 300
	if len(text) > limit {
		cut := limit
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
