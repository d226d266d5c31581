package dialect

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// strict checks a schema with the rules by which the services refuse requests. Each rule is
// from the text of a real refusal.
func strict(t testing.TB, name, text string) {
	t.Helper()
	if len(text) > maxSchema {
		t.Errorf("%s: %d bytes", name, len(text))
	}
	if _, err := schema.Compile(text, true); err != nil {
		t.Errorf("%s: invalid JSON Schema: %v", name, err)
	}
	var root map[string]any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	// OpenAI: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level;
	// object schema missing properties. Anthropic: input_schema does not support oneOf, allOf, or anyOf at the top level.
	if root["type"] != "object" {
		t.Errorf("%s: top is %v", name, root["type"])
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if _, has := root[word]; has {
			t.Errorf("%s: %s at the top", name, word)
		}
	}
	if _, has := root["properties"].(map[string]any); !has {
		t.Errorf("%s: object schema missing properties", name)
	}
	count := 0
	for _, finding := range refusals("parameters", root, 1, &count) {
		t.Errorf("%s: %s", name, finding)
	}
	if count > maxProperties {
		t.Errorf("%s: %d properties", name, count)
	}
}

var (
	known         = []string{"type", "description", "properties", "required", "items", "enum", "anyOf", "minimum", "maximum", "minItems", "maxItems"}
	plainProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func refusals(at string, node map[string]any, depth int, count *int) (found []string) {
	report := func(format string, args ...any) { found = append(found, at+": "+fmt.Sprintf(format, args...)) }
	for word := range node {
		if !slices.Contains(known, word) {
			report("unknown name %q", word) // Gemini: Cannot find field
		}
	}
	if depth > 2*maxDepth {
		report("too deep")
	}
	if text, _ := node["description"].(string); text != Text(text, 4000) {
		report("invisible characters")
	}
	if variants, ok := node["anyOf"].([]any); ok {
		if len(node) != 1 { // Gemini: when using any_of, it must be the only field set
			report("fields alongside anyOf")
		}
		for i, v := range variants {
			found = append(found, refusals(fmt.Sprintf("%s.anyOf[%d]", at, i), v.(map[string]any), depth+1, count)...)
		}
		return found
	}
	kind, ok := node["type"].(string)
	if !ok || !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean"}, kind) {
		report("type is %v", node["type"]) // Gemini: didn't specify the schema type field; Proto field is not repeating
	}
	if values, has := node["enum"].([]any); has {
		if kind != "string" || len(values) == 0 || len(values) > maxEnum {
			report("enum: only allowed for STRING type")
		}
		for i, v := range values {
			if text, ok := v.(string); !ok || text == "" || text != Text(text, 4000) || slices.Contains(values[:i], v) {
				report("enum[%d] %v: cannot be empty, other than a text, or twice", i, v)
			}
		}
	}
	if items, has := node["items"].(map[string]any); has != (kind == "array") {
		report("items: missing field, or of a %s", kind) // OpenAI: array schema missing items
	} else if has {
		found = append(found, refusals(at+".items", items, depth+1, count)...)
	}
	fields, has := node["properties"].(map[string]any)
	if has != (kind == "object") {
		report("properties: only allowed for OBJECT type")
	}
	if has && len(fields) == 0 && depth > 1 {
		report("properties: should be non-empty for OBJECT type")
	}
	needs, _ := node["required"].([]any)
	for i, n := range needs {
		if _, ok := fields[n.(string)]; !ok || slices.Contains(needs[:i], n) {
			report("required[%d]: property is not defined, or twice", i)
		}
	}
	for name, field := range fields {
		*count++
		if !plainProperty.MatchString(name) { // Anthropic: Property keys should match pattern
			report("property %q", name)
		}
		found = append(found, refusals(at+"."+name, field.(map[string]any), depth+1, count)...)
	}
	return found
}
