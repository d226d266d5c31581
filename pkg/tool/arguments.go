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
	// Bounds of what a model is told, in bytes: its own garbage comes back in
	// the error and must not fill its context.
	maxFinding = 240
	maxSchema  = 2000
	// Findings that are named in one error.
	maxFindings = 3
	// Digits of an exponent that is still a number: the schema library computes
	// with rationals, for which 1e999999 is a number of a million digits.
	maxExponentDigits = 3
	// Characters of a number, for the same reason.
	maxNumber = 400
)

// compiled is a tool with its schema ready for use.
type compiled struct {
	spec   *harnessv1.ToolSpec
	schema *jsonschema.Schema
	// The schema on one line, as it is shown to a model.
	shown string
}

// noLoader keeps schemas self-contained: a $ref elsewhere reads no file and
// opens no connection.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("refers to %s; a tool's schema has to be self-contained", url)
}

func compile(spec *harnessv1.ToolSpec) (*compiled, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(spec.GetParametersSchema()))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	if err := CheckNumbers(doc); err != nil {
		return nil, err
	}
	if t, has := object["type"]; has && t != "object" {
		return nil, fmt.Errorf("describes %v; arguments are always an object", t)
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
	return &compiled{spec: spec, schema: schema, shown: content.Clip(line.String(), maxSchema)}, nil
}

func (c *compiled) validate(arguments string) error {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	if err != nil {
		return c.refuse("they are not valid JSON: " + err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return c.refuse("they are not a JSON object")
	}
	if err := CheckNumbers(value); err != nil {
		return c.refuse(err.Error())
	}
	err = c.schema.Validate(value)
	if err == nil {
		return nil
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return c.refuse(err.Error())
	}
	found := findings(failed, message.NewPrinter(language.English), nil)
	if more := len(found) - maxFindings; more > 0 {
		found = append(found[:maxFindings:maxFindings], fmt.Sprintf("and %d more", more))
	}
	return c.refuse(strings.Join(found, "; "))
}

func (c *compiled) refuse(what string) error {
	return fmt.Errorf("The arguments of %s were refused: %s.\nExpected JSON Schema: %s", //nolint:staticcheck // a text for the model
		c.spec.GetName(), what, c.shown)
}

// findings are the leaves of a validation error, each with where it is.
func findings(e *jsonschema.ValidationError, p *message.Printer, to []string) []string {
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(p)
		if len(e.InstanceLocation) > 0 {
			text = strings.Join(e.InstanceLocation, ".") + ": " + text
		}
		return append(to, content.Clip(text, maxFinding))
	}
	for _, cause := range e.Causes {
		to = findings(cause, p, to)
	}
	return to
}

// CheckNumbers refuses numbers that no computer should compute with.
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
