package contract

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
	tools "github.com/harnessmesh/harnessmesh/pkg/tool"
)

// Limits of a predicate.
const (
	maxArguments      = 16
	maxCommand        = 8 << 10
	minTimeout        = time.Millisecond
	maxCommandTimeout = time.Hour
	maxRemoteTimeout  = 5 * time.Minute
)

const (
	fileExists   = harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS
	containsText = harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT
	toolSuccess  = harnessv1.PredicateType_PREDICATE_TYPE_TOOL_RESULT_SUCCESS
	command      = harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS
	schemaValid  = harnessv1.PredicateType_PREDICATE_TYPE_JSON_SCHEMA_VALID
	custom       = harnessv1.PredicateType_PREDICATE_TYPE_CUSTOM
	alwaysTrue   = harnessv1.PredicateType_PREDICATE_TYPE_ALWAYS_TRUE

	artifactCount = harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT
)

// output is an output with its compiled predicate. A nil output has no predicate.
type output struct {
	spec      *harnessv1.RequiredOutput
	in        place
	pattern   *regexp.Regexp
	arguments []argument
	schema    *schema.Schema
	program   *expr.Program
	timeout   time.Duration
}

// argument is a condition on an argument of a call.
type argument struct {
	name    string
	pattern *regexp.Regexp
}

func (o *output) predicate() *harnessv1.Predicate {
	if o == nil {
		return nil
	}
	return o.spec.GetPredicate()
}

// typeName returns the name of a type in contract files.
func typeName(t harnessv1.PredicateType) string {
	return strings.TrimPrefix(t.String(), "PREDICATE_TYPE_")
}

// uses has the fields of each type of predicate: those that are required and, after a ?,
// those that are optional.
var uses = map[harnessv1.PredicateType]string{
	fileExists:   "path",
	containsText: "pattern ?in",
	toolSuccess:  "tool ?arguments",
	command:      "command ?timeout",
	schemaValid:  "in schema",
	custom:       "?cel ?grpc ?timeout",
	alwaysTrue:   "",

	artifactCount: "kind ?min ?cited",
}

// compileOutput checks and compiles the predicate of an output. field is the path of the
// predicate.
func compileOutput(field string, spec *harnessv1.RequiredOutput) (*output, error) {
	o := &output{spec: spec}
	p := spec.GetPredicate()
	if p == nil {
		return o, nil
	}
	if err := checkFields(field, p); err != nil {
		return nil, err
	}
	var err error
	switch p.GetType() {
	case fileExists:
		err = checkPath(field+".path", p.GetPath())
	case containsText:
		if o.in, err = parsePlace(field+".in", p.GetIn()); err == nil {
			o.pattern, err = compilePattern(field+".pattern", p.GetPattern(), true)
		}
	case toolSuccess:
		err = o.compileTool(field, p)
	case command:
		if len(p.GetCommand()) > maxCommand {
			err = fault.Invalid(field+".command", "%d bytes exceed the limit of %d: put the command into a script", len(p.GetCommand()), maxCommand)
		} else {
			o.timeout, err = checkTimeout(field, p, DefaultCommandTimeout, maxCommandTimeout)
		}
	case schemaValid:
		if o.in, err = parsePlace(field+".in", p.GetIn()); err == nil && o.in.kind != inArtifact && o.in.kind != inFile {
			err = fault.Invalid(field+".in", "expected artifact:ID or file:PATH, not %s", p.GetIn())
		}
		if err == nil {
			o.schema, err = compileSchema(field+".schema", p.GetSchema())
		}
	case custom:
		err = o.compileCustom(field, p)
	case artifactCount:
		err = checkCount(field, p)
	default: // always_true has no fields
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// checkFields checks that a predicate has the fields of its type and no others.
func checkFields(field string, p *harnessv1.Predicate) error {
	used, known := uses[p.GetType()]
	if !known {
		return fault.Invalid(field+".type", "missing or unknown type: expected FILE_EXISTS, CONTAINS_TEXT, TOOL_RESULT_SUCCESS, "+
			"COMMAND_SUCCEEDS, JSON_SCHEMA_VALID, ARTIFACT_COUNT, CUSTOM or ALWAYS_TRUE")
	}
	names := strings.Fields(used)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"path", strings.TrimSpace(p.GetPath()) != ""}, {"in", p.GetIn() != ""}, {"pattern", p.GetPattern() != ""},
		{"tool", p.GetTool() != ""}, {"arguments", len(p.GetArguments()) > 0}, {"command", strings.TrimSpace(p.GetCommand()) != ""},
		{"schema", strings.TrimSpace(p.GetSchema()) != ""}, {"cel", p.GetCel() != ""}, {"grpc", p.GetGrpc() != ""}, {"timeout", p.GetTimeout() != nil},
		{"kind", p.GetKind() != ""}, {"min", p.Min != nil}, {"cited", p.GetCited()},
	} {
		must, may := false, false
		for _, name := range names {
			must = must || name == f.name
			may = may || name == "?"+f.name
		}
		switch {
		case must && !f.set:
			return fault.Invalid(field+"."+f.name, "is required for %s", typeName(p.GetType()))
		case !must && !may && f.set:
			return fault.Invalid(field+"."+f.name, "is not valid for %s: leave it out, or choose another type", typeName(p.GetType()))
		}
	}
	return nil
}

func (o *output) compileTool(field string, p *harnessv1.Predicate) error {
	if !tools.ValidName(p.GetTool()) {
		return fault.Invalid(field+".tool", "%q does not match [A-Za-z0-9_-]{1,64}", clip(p.GetTool(), 80))
	}
	if n := len(p.GetArguments()); n > maxArguments {
		return fault.Invalid(field+".arguments", "%d arguments exceed the limit of %d", n, maxArguments)
	}
	for i, a := range p.GetArguments() {
		at := fmt.Sprintf("%s.arguments[%d]", field, i)
		if a.GetName() == "" {
			return fault.Invalid(at+".name", "is required: the name of the argument")
		}
		if a.GetPattern() == "" {
			return fault.Invalid(at+".pattern", "is required: what the argument must match")
		}
		pattern, err := compilePattern(at+".pattern", a.GetPattern(), false)
		if err != nil {
			return err
		}
		o.arguments = append(o.arguments, argument{a.GetName(), pattern})
	}
	return nil
}

func (o *output) compileCustom(field string, p *harnessv1.Predicate) error {
	var err error
	switch {
	case p.GetCel() == "" && p.GetGrpc() == "":
		return fault.Invalid(field+".cel", "missing: CUSTOM requires cel or grpc")
	case p.GetCel() != "" && p.GetGrpc() != "":
		return fault.Invalid(field+".grpc", "conflicts with cel: CUSTOM has only one of them")
	case p.GetCel() != "" && p.GetTimeout() != nil:
		return fault.Invalid(field+".timeout", "is not valid with cel: leave it out")
	case p.GetCel() != "":
		if o.program, err = expr.State.Compile(p.GetCel()); err != nil {
			return fault.In(field+".cel", err)
		}
	default:
		if err = checkTarget(field+".grpc", p.GetGrpc()); err != nil {
			return err
		}
		o.timeout, err = checkTimeout(field, p, DefaultRemoteTimeout, maxRemoteTimeout)
	}
	return err
}

func checkTimeout(field string, p *harnessv1.Predicate, unset, most time.Duration) (time.Duration, error) {
	if p.GetTimeout() == nil {
		return unset, nil
	}
	if err := p.GetTimeout().CheckValid(); err != nil {
		return 0, fault.Invalid(field+".timeout", "is not a valid duration")
	}
	d := p.GetTimeout().AsDuration()
	if d < minTimeout || d > most {
		return 0, fault.Invalid(field+".timeout", "is %v, must be between %v and %v", d, minTimeout, most)
	}
	return d, nil
}
