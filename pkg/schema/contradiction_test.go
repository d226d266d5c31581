package schema_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// TestContradictionOfASchema: a schema that no value fits is found, with the place; one that some value fits is not.
func TestContradictionOfASchema(t *testing.T) {
	for text, want := range map[string]string{
		`false`:         "false",
		`{"not":true}`:  "not excludes",
		`{"not":false}`: "",
		`{"not":{}}`:    "not excludes",
		`{"not":{"$comment":"c","title":"t","description":"d","default":1,"examples":[1],"deprecated":true}}`: "not excludes",
		`{"not":{"type":["null","boolean","string","array","object","number"]}}`:                              "not excludes",
		`{"not":{"type":["null","boolean","string","array","object","integer"]}}`:                             "", // a fraction fits
		`{"type":"string","not":{"type":["string","null"]}}`:                                                  "not excludes",
		`{"type":"integer","not":{"type":"number"}}`:                                                          "not excludes",
		`{"type":"object","required":["a"],"properties":{"a":{"not":{}}}}`:                                    "#/properties/a: not",
		`{"type":"string","not":{"minLength":1}}`:                                                             "",
		`{"type":"string","not":{"type":"string","pattern":"a"}}`:                                             "",
		`{"$schema":"http://json-schema.org/draft-07/schema#","not":{"format":"date"}}`:                       "",
		`{"not":{"not":{}}}`:   "",
		`{"not":{"enum":[1]}}`: "",
		`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"string"}}}`:                                        "",
		`{"type":"string","minLength":5,"maxLength":2}`:                                                       "minLength 5 exceeds maxLength 2",
		`{"minLength":5,"maxLength":2}`:                                                                       "", // a number fits
		`{"type":["string","null"],"minLength":5,"maxLength":2}`:                                              "",
		`{"type":"array","minItems":2,"maxItems":1}`:                                                          "minItems",
		`{"type":"object","minProperties":2,"maxProperties":1}`:                                               "minProperties",
		`{"type":"integer","minimum":2,"maximum":1}`:                                                          "minimum exceeds maximum",
		`{"type":"number","minimum":2,"maximum":2}`:                                                           "",
		`{"type":"number","minimum":2,"exclusiveMaximum":2}`:                                                  "exclusiveMaximum",
		`{"type":"number","exclusiveMinimum":2,"maximum":2}`:                                                  "exclusiveMinimum",
		`{"type":"number","exclusiveMinimum":2,"exclusiveMaximum":2}`:                                         "exclusiveMinimum",
		`{"type":"string","enum":[1,2]}`:                                                                      "enum",
		`{"type":"integer","enum":[1.0]}`:                                                                     "",
		`{"type":"string","const":null}`:                                                                      "const",
		`{"type":"null","const":null}`:                                                                        "",
		`{"allOf":[{"type":"string"},{"type":"object"}]}`:                                                     "allOf",
		`{"type":"string","allOf":[{"type":"object"}]}`:                                                       "allOf",
		`{"type":"number","allOf":[{"type":"integer"}]}`:                                                      "",
		`{"type":"object","anyOf":[{"type":"string"},{"type":"null"}]}`:                                       "anyOf",
		`{"type":"object","anyOf":[{"type":"string"},{}]}`:                                                    "",
		`{"oneOf":[false,{"type":"string","const":1}]}`:                                                       "const",
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string","const":1}}}`:                                      "/$defs/a",
		`{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"string","const":1}}}`:     "const",
		`{"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":1}}}`:                  "", // without a
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2,"maxLength":1}}}`: "#/properties/a: minLength",
		`{"required":["a"],"properties":{"a":false}}`:                                                         "", // a text fits
		`{"type":"object","required":["b"],"properties":{"a":{}},"additionalProperties":false}`:               `"b" is required`,
		`{"type":"object","required":["b"],"patternProperties":{"b":{}},"additionalProperties":false}`:        "",
		`{"type":"object","required":["b"],"additionalProperties":{"type":"string"}}`:                         "",
		`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`:                                  "", // only endless values fit: not found
	} {
		s, err := schema.Compile(text, false)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := s.Contradiction(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
