package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
)

// outputFormat asks for an answer that fits a schema.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// setFormat asks for an answer that fits a schema, if there is one.
func (r *messagesRequest) setFormat(schema string) error {
	if schema == "" {
		return nil
	}
	raw, err := adapter.Schema(schema)
	if err != nil {
		return err
	}
	var parsed any
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return err
	}
	if raw, err = json.Marshal(plainSchema(parsed)); err != nil {
		return err
	}
	if r.OutputConfig == nil {
		r.OutputConfig = &outputConfig{}
	}
	r.OutputConfig.Format = &outputFormat{Type: "json_schema", Schema: raw}
	return nil
}

// bounds are the keywords of a schema that the service refuses: bounds of numbers, lengths and
// lists.
var bounds = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
	"minProperties", "maxProperties",
}

// plainSchema returns a schema without the keywords that the service refuses, at every depth.
// Names of properties are no keywords.
func plainSchema(schema any) any {
	switch s := schema.(type) {
	case []any: // of anyOf, for example
		out := make([]any, len(s))
		for i, item := range s {
			out[i] = plainSchema(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(s))
		for key, value := range s {
			switch {
			case slices.Contains(bounds, key):
			case key == "properties" || key == "$defs" || key == "definitions":
				out[key] = plainSchemas(value)
			case key == "enum" || key == "const" || key == "default":
				out[key] = value
			default:
				out[key] = plainSchema(value)
			}
		}
		return out
	}
	return schema
}

// plainSchemas returns schemas by name, each as plainSchema returns it.
func plainSchemas(named any) any {
	schemas, ok := named.(map[string]any)
	if !ok {
		return named
	}
	out := make(map[string]any, len(schemas))
	for name, schema := range schemas {
		out[name] = plainSchema(schema)
	}
	return out
}
