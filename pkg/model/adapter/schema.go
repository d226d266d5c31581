package adapter

import (
	"encoding/json"
	"errors"
)

// SchemaName is the name of the schema of an answer, which some services require.
const SchemaName = "answer"

// Schema returns a JSON Schema as a request has it.
func Schema(text string) (json.RawMessage, error) {
	if !json.Valid([]byte(text)) {
		return nil, errors.New("the schema of the answer is not JSON")
	}
	return json.RawMessage(text), nil
}
