package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

const (
	// Limits of an error's text, in bytes. The text repeats arguments of the model and
	// must not fill its context.
	maxFinding = 240
	maxSchema  = 2000
)

// compiledSpec is a tool's spec with its compiled schema.
type compiledSpec struct {
	spec   *harnessv1.ToolSpec
	schema *schema.Schema
	// The schema on one line, as models read it.
	oneLine string
}

// CheckSchema returns why a text cannot be the schema of a tool's arguments.
func CheckSchema(text string) error {
	_, err := schema.Compile(text, true)
	return err
}

func compile(spec *harnessv1.ToolSpec) (*compiledSpec, error) {
	compiled, err := schema.Compile(spec.GetParametersSchema(), true)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(spec.GetParametersSchema())); err != nil {
		return nil, err
	}
	return &compiledSpec{spec: spec, schema: compiled, oneLine: content.Clip(line.String(), maxSchema)}, nil
}

func (c *compiledSpec) validate(arguments string) error {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	value, err := schema.Decode(arguments)
	if err != nil {
		if errors.Is(err, schema.ErrNotJSON) {
			return c.invalid("they are " + err.Error())
		}
		return c.invalid(err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return c.invalid("they are not a JSON object")
	}
	if err := c.schema.Validate(value, maxFinding); err != nil {
		return c.invalid(err.Error())
	}
	return nil
}

func (c *compiledSpec) invalid(reason string) error {
	return fmt.Errorf("The arguments of %s were refused: %s.\nExpected JSON Schema: %s", //nolint:staticcheck // a text for the model
		c.spec.GetName(), reason, c.oneLine)
}
