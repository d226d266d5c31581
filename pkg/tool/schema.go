package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// Limits of an error's text, in bytes. The text repeats what the model wrote and
	// must not fill its context.
	maxFinding = 240
	maxSchema  = 2000
	// Maximum findings in one error.
	maxFindings = 3
	// Maximum digits of an exponent. The schema library computes with rationals, for
	// which 1e999999 is a number of a million digits.
	maxExponentDigits = 3
	// Maximum characters of a number, for the same reason.
	maxNumber = 400
)

// compiledSpec is a tool's spec with its compiled schema.
type compiledSpec struct {
	spec   *harnessv1.ToolSpec
	schema *jsonschema.Schema
	// The schema on one line, as models read it.
	oneLine string
}

// noLoader rejects every $ref that leads out of the schema, so that no schema can
// read a file or open a connection.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("unsupported $ref %s: the schema must be self-contained", url)
}

func compile(spec *harnessv1.ToolSpec) (*compiledSpec, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(spec.GetParametersSchema()))
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("expected a JSON object")
	}
	if err := CheckNumbers(doc); err != nil {
		return nil, err
	}
	if t, has := object["type"]; has && t != "object" {
		return nil, fmt.Errorf("type is %v, expected object", t)
	}
	const url = "tool:///parameters.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(spec.GetParametersSchema())); err != nil {
		return nil, err
	}
	return &compiledSpec{spec: spec, schema: schema, oneLine: content.Clip(line.String(), maxSchema)}, nil
}

func (c *compiledSpec) validate(arguments string) error {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	if err != nil {
		return c.invalid("they are not valid JSON: " + err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return c.invalid("they are not a JSON object")
	}
	if err := CheckNumbers(value); err != nil {
		return c.invalid(err.Error())
	}
	err = c.schema.Validate(value)
	if err == nil {
		return nil
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return c.invalid(err.Error())
	}
	all := findings(failed, message.NewPrinter(language.English), nil)
	if more := len(all) - maxFindings; more > 0 {
		all = append(all[:maxFindings:maxFindings], fmt.Sprintf("and %d more", more))
	}
	return c.invalid(strings.Join(all, "; "))
}

func (c *compiledSpec) invalid(reason string) error {
	return fmt.Errorf("The arguments of %s were refused: %s.\nExpected JSON Schema: %s", //nolint:staticcheck // a text for the model
		c.spec.GetName(), reason, c.oneLine)
}

// findings appends the leaves of a validation error to list, each with its place.
func findings(e *jsonschema.ValidationError, p *message.Printer, list []string) []string {
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(p)
		if len(e.InstanceLocation) > 0 {
			text = strings.Join(e.InstanceLocation, ".") + ": " + text
		}
		return append(list, content.Clip(text, maxFinding))
	}
	for _, cause := range e.Causes {
		list = findings(cause, p, list)
	}
	return list
}

// CheckNumbers returns an error if a decoded JSON value has a number with more than 400
// characters or an exponent of more than 3 digits, which would take long to compute with.
func CheckNumbers(value any) error {
	switch v := value.(type) {
	case json.Number:
		text := v.String()
		_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
		digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
		if len(text) > maxNumber || len(digits) > maxExponentDigits {
			return fmt.Errorf("the number %s is out of range", content.Clip(text, 40))
		}
	case []any:
		for _, item := range v {
			if err := CheckNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := CheckNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}
