package contract

import (
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// maxFinding bounds a finding about an invalid document, in bytes.
const maxFinding = 120

func compileSchema(field, text string) (*schema.Schema, error) {
	s, err := schema.Compile(text, false)
	if err != nil {
		return nil, fault.Invalid(field, "%s", err)
	}
	return s, nil
}

// validateDocument returns the first mistake in a document; empty if it is valid.
func validateDocument(s *schema.Schema, text string) string {
	doc, err := schema.Decode(text)
	if err != nil {
		if errors.Is(err, schema.ErrNotJSON) {
			return "is " + err.Error()
		}
		return err.Error()
	}
	if err := s.Validate(doc, maxFinding); err != nil {
		return "does not fit the schema: " + err.Error()
	}
	return ""
}
