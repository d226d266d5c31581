package contract

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	tools "github.com/harnessmesh/harnessmesh/pkg/tool"
)

// maxFindings bounds the errors that are listed for an invalid document.
const maxFindings = 3

// noLoader rejects references to other documents: a $ref reads no file and opens no
// connection.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("refers to %s, but a schema must be self-contained", clip(url, 80))
}

func compileSchema(field, text string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fault.Invalid(field, "invalid JSON: %s", clip(err.Error(), 200))
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, fault.Invalid(field, "invalid JSON Schema: expected an object")
	}
	if err := tools.CheckNumbers(doc); err != nil {
		return nil, fault.Invalid(field, "%s", err)
	}
	const url = "contract:///schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		return boundedRegexp(pattern, false)
	})
	if err := c.AddResource(url, doc); err != nil {
		return nil, fault.Invalid(field, "invalid JSON Schema: %s", clip(err.Error(), 200))
	}
	schema, err := c.Compile(url)
	if err != nil {
		return nil, fault.Invalid(field, "invalid JSON Schema: %s", clip(strings.ReplaceAll(err.Error(), url, ""), 200))
	}
	return schema, nil
}

// validateDocument returns what is wrong with a document; empty if it is valid.
func validateDocument(schema *jsonschema.Schema, text string) string {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return "is not valid JSON: " + err.Error()
	}
	if err := tools.CheckNumbers(doc); err != nil {
		return err.Error()
	}
	err = schema.Validate(doc)
	if err == nil {
		return ""
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return err.Error()
	}
	found := findings(failed, message.NewPrinter(language.English), nil)
	if more := len(found) - maxFindings; more > 0 {
		found = append(found[:maxFindings:maxFindings], fmt.Sprintf("and %d more", more))
	}
	return "does not fit the schema: " + strings.Join(found, "; ")
}

// findings returns the leaves of a validation error, each with its location.
func findings(e *jsonschema.ValidationError, p *message.Printer, to []string) []string {
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(p)
		if len(e.InstanceLocation) > 0 {
			text = clip(strings.Join(e.InstanceLocation, "."), 60) + ": " + text
		}
		return append(to, clip(text, 120))
	}
	for _, cause := range e.Causes {
		to = findings(cause, p, to)
	}
	return to
}
