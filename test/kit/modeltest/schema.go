package modeltest

import (
	"encoding/json"
	"fmt"
)

// chatFormat checks response_format of a chat completion.
func (r *Request) chatFormat(o object) error {
	raw, ok := o["response_format"]
	if !ok {
		return nil
	}
	var format object
	var kind string
	if json.Unmarshal(raw, &format) != nil || format.text("type", &kind) != nil || kind != "json_schema" || len(format) != 2 {
		return fmt.Errorf("invalid 'response_format': expected the type json_schema and its json_schema")
	}
	var inner object
	if json.Unmarshal(format["json_schema"], &inner) != nil {
		return fmt.Errorf("invalid 'response_format.json_schema': expected an object")
	}
	return r.namedSchema("response_format.json_schema.", inner)
}

// responsesFormat checks text.format of a response.
func (r *Request) responsesFormat(o object) error {
	raw, ok := o["text"]
	if !ok {
		return nil
	}
	var text, format object
	var kind string
	if json.Unmarshal(raw, &text) != nil {
		return invalid("text", "Invalid type for 'text': expected an object.")
	}
	if err := text.known("text.", "format", "verbosity"); err != nil || text["format"] == nil {
		return err
	}
	if json.Unmarshal(text["format"], &format) != nil || format.text("type", &kind) != nil || kind != "json_schema" {
		return invalid("text.format", "Invalid 'text.format': expected the type json_schema.")
	}
	delete(format, "type")
	if err := r.namedSchema("text.format.", format); err != nil {
		return invalid("text.format", "%v", err)
	}
	return nil
}

// namedSchema checks a schema with its name, which is not strict.
func (r *Request) namedSchema(at string, o object) error {
	for name := range o {
		if name != "name" && name != "schema" && name != "strict" {
			return fmt.Errorf("unknown parameter: '%s%s'", at, name)
		}
	}
	var name string
	var strict bool
	if o.text("name", &name) != nil || !functionName.MatchString(name) {
		return fmt.Errorf("invalid '%sname': expected a string that matches %s", at, functionName)
	}
	if raw, ok := o["strict"]; ok && (json.Unmarshal(raw, &strict) != nil || strict) {
		return fmt.Errorf("invalid '%sstrict': this project sends false", at)
	}
	var schema object
	if json.Unmarshal(o["schema"], &schema) != nil || schema["type"] == nil {
		return fmt.Errorf("invalid '%sschema': expected a schema with a type", at)
	}
	r.Schema = o["schema"]
	return nil
}

// refusedBounds are keywords of a schema that the Messages service refuses.
var refusedBounds = []string{"minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems"}

// messagesFormat checks output_config.format of the Messages protocol.
func (r *Request) messagesFormat(config object) error {
	raw, ok := config["format"]
	if !ok {
		return nil
	}
	var format object
	var kind string
	if json.Unmarshal(raw, &format) != nil || format.text("type", &kind) != nil || kind != "json_schema" {
		return fmt.Errorf("output_config.format.type: Input should be 'json_schema'")
	}
	if err := format.extra("output_config.format.", "type", "schema"); err != nil {
		return err
	}
	if err := checkPlainSchema(format["schema"]); err != nil {
		return err
	}
	r.Schema = format["schema"]
	return nil
}

// checkPlainSchema refuses a schema with a bound, and one whose objects may have further
// properties, as the Messages service does.
func checkPlainSchema(raw json.RawMessage) error {
	var schema struct {
		Type                 string
		AdditionalProperties *bool
		Properties           map[string]json.RawMessage
		Items                json.RawMessage
	}
	var all object
	if json.Unmarshal(raw, &schema) != nil || json.Unmarshal(raw, &all) != nil {
		return fmt.Errorf("output_config.format.schema: Input should be a valid schema")
	}
	for _, name := range refusedBounds {
		if _, ok := all[name]; ok {
			return fmt.Errorf("output_config.format.schema: For '%s' type, property '%s' is not supported", schema.Type, name)
		}
	}
	if schema.Type == "object" && (schema.AdditionalProperties == nil || *schema.AdditionalProperties) {
		return fmt.Errorf("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
	}
	for _, property := range schema.Properties {
		if err := checkPlainSchema(property); err != nil {
			return err
		}
	}
	if schema.Items != nil {
		return checkPlainSchema(schema.Items)
	}
	return nil
}
