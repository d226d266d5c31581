package dialect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

func TestConvert(t *testing.T) {
	long := strings.Repeat("x", 70)
	for name, c := range map[string]struct{ given, want string }{
		"nothing":             {`{}`, `{"properties":{},"type":"object"}`},
		"true":                {`true`, `{"properties":{},"type":"object"}`},
		"a plain one":         {`{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"],"additionalProperties":false}`, `{"additionalProperties":false,"properties":{"a":{"description":"d","type":"string"}},"required":["a"],"type":"object"}`},
		"a reference":         {`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"integer","minimum":1}}}`, `{"properties":{"a":{"minimum":1,"type":"integer"}},"type":"object"}`},
		"a recursive one":     {`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`, `{"properties":{"n":{"properties":{"next":{"type":"object"}},"type":"object"}},"type":"object"}`},
		"null":                {`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"type":"object"}`},
		"two types":           {`{"type":"object","properties":{"a":{"type":["string","integer"]}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"type":"object"}`},
		"no items":            {`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"items":{},"type":"array"}},"type":"object"}`},
		"a tuple":             {`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]}}}`, `{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"number"}]},"type":"array"}},"type":"object"}`},
		"numbers to pick":     {`{"type":"object","properties":{"a":{"type":"integer","enum":[1,2]}}}`, `{"properties":{"a":{"description":"One of [1,2]","type":"integer"}},"type":"object"}`},
		"a constant":          {`{"type":"object","properties":{"a":{"const":"x"}}}`, `{"properties":{"a":{"enum":["x"],"type":"string"}},"type":"object"}`},
		"alternatives on top": {`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]},{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}]}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{"type":"string"}},"required":["a"],"type":"object"}`},
		"all of them on top":  {`{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"string"}},"required":["b"]}],"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`},
		"keywords that check": {`{"$schema":"x","title":"T","type":"object","properties":{"a":{"type":"string","pattern":"(?<!x)y","format":"uri"}},"if":{},"then":{}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"hidden characters":   {`{"type":"object","properties":{"a":{"type":"string","description":"a\u200bb\u202ec\u0000"}}}`, `{"properties":{"a":{"description":"abc","type":"string"}},"type":"object"}`},
		"long names":          {`{"type":"object","properties":{"` + long + `":{"type":"string"}}}`, `{"properties":{"` + long[:57] + `_4a69b0":{"type":"string"}},"type":"object"}`},
		"required but absent": {`{"type":"object","properties":{},"required":["ghost"]}`, `{"properties":{},"type":"object"}`},
	} {
		got, err := dialect.Convert(c.given)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := c.want
		if name == "long names" {
			want = regexp.MustCompile(`_[0-9a-f]{6}"`).ReplaceAllString(want, "_")
			got.Schema = regexp.MustCompile(`_[0-9a-f]{6}"`).ReplaceAllString(got.Schema, "_")
		}
		if got.Schema != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got.Schema, want)
		}
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	wide := `{"type":"object","properties":{"p0":{}`
	for i := range 5000 {
		wide += fmt.Sprintf(`,"p%d":{}`, i+1)
	}
	for given, want := range map[string]string{
		`[]`:                           "not an object",
		`{"type":"string"}`:            "no object",
		`{"anyOf":[{"type":"array"}]}`: "no object",
		`{`:                            "not JSON",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`: "another document",
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/missing"}}}`:            "not there",
		`{"$ref":"#"}`:                      "no end",
		wide + `}}`:                         "more than 4000 parts",
		strings.Repeat(" ", 300<<10) + `{}`: "more than 262144",
	} {
		if _, err := dialect.Convert(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", given, err, want)
		}
	}
}

// TestArgumentsComeBack: what a model writes in the dialect reaches the server under its names.
func TestArgumentsComeBack(t *testing.T) {
	c, err := dialect.Convert(`{"type":"object","properties":{"user name":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"$id":{"type":"string"}}}},` +
		`"any":{"anyOf":[{"type":"object","properties":{"a b":{"type":"string"}}},{"type":"string"}]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`"([a-zA-Z_]+_[0-9a-f]{6})"`).FindAllStringSubmatch(c.Schema, -1)
	if len(names) != 3 {
		t.Fatalf("%s", c.Schema)
	}
	find := func(prefix string) string {
		for _, n := range names {
			if strings.HasPrefix(n[1], prefix) {
				return n[1]
			}
		}
		t.Fatalf("no name with %s in %s", prefix, c.Schema)
		return ""
	}
	given := fmt.Sprintf(`{%q:"ann","list":[{%q:"1"},{"other":2}],"any":{%q:"x"},"big":12345678901234567890}`, find("user_name"), find("_id"), find("a_b"))
	got, err := c.Original(given)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"any":{"a b":"x"},"big":12345678901234567890,"list":[{"$id":"1"},{"other":2}],"user name":"ann"}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestName(t *testing.T) {
	for _, c := range [][3]string{
		{"files", "read_file", `^mcp__files__read_file$`},
		{"files", "read.file", `^mcp__files__read_file_[0-9a-f]{8}$`},
		{"files", "read/file", `^mcp__files__read_file_[0-9a-f]{8}$`},
		{"a-server", strings.Repeat("t", 100), `^mcp__a-server__t+_[0-9a-f]{8}$`},
	} {
		got := dialect.Name(c[0], c[1])
		if !regexp.MustCompile(c[2]).MatchString(got) || len(got) > 64 || got != dialect.Name(c[0], c[1]) {
			t.Errorf("%s %s: %s", c[0], c[1], got)
		}
	}
	if dialect.Name("files", "read.file") == dialect.Name("files", "read/file") {
		t.Error("two tools have one name")
	}
}

// TestRealSchemas: every schema of testdata is one that the strictest provider takes.
func TestRealSchemas(t *testing.T) {
	data, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []struct {
		Server, Name string
		Schema       json.RawMessage
	}
	if err := json.Unmarshal(data, &tools); err != nil {
		t.Fatal(err)
	}
	if len(tools) < 100 {
		t.Fatalf("%d schemas", len(tools))
	}
	for _, tool := range tools {
		c, err := dialect.Convert(string(tool.Schema))
		if err != nil {
			t.Errorf("%s %s: %v", tool.Server, tool.Name, err)
			continue
		}
		if problem := strict(c.Schema); problem != "" {
			t.Errorf("%s %s: %s\n%s", tool.Server, tool.Name, problem, c.Schema)
		}
	}
}

// strict returns what a strict provider would refuse in a schema; empty for nothing.
func strict(text string) string {
	var top map[string]any
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return err.Error()
	}
	if top["type"] != "object" || top["properties"] == nil {
		return "the top is no object with properties"
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} {
		if top[keyword] != nil {
			return keyword + " at the top"
		}
	}
	if _, err := schema.Compile(text, true); err != nil {
		return err.Error()
	}
	return strictNode(top)
}

var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func strictNode(node map[string]any) string {
	for key, value := range node {
		switch key {
		case "type":
			if _, ok := value.(string); !ok {
				return "a list of types"
			}
			if value == "array" && node["items"] == nil {
				return "an array without items"
			}
		case "description", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "required":
		case "additionalProperties":
			if m, ok := value.(map[string]any); ok {
				if p := strictNode(m); p != "" {
					return p
				}
			}
		case "enum":
			for _, v := range value.([]any) {
				if s, ok := v.(string); !ok || s == "" {
					return "an enum that is not of texts"
				}
			}
		case "items":
			if p := strictNode(value.(map[string]any)); p != "" {
				return p
			}
		case "anyOf":
			for _, v := range value.([]any) {
				if p := strictNode(v.(map[string]any)); p != "" {
					return p
				}
			}
		case "properties":
			for name, v := range value.(map[string]any) {
				if !propertyName.MatchString(name) {
					return "the property " + name
				}
				if p := strictNode(v.(map[string]any)); p != "" {
					return p
				}
			}
		default:
			return "the keyword " + key
		}
	}
	return ""
}

func FuzzConvert(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a b":{"$ref":"#/properties/a b"}}}`, `{"a":1}`)
	f.Add(`{"allOf":[{"$ref":"#"}]}`, `{}`)
	f.Add(`{"properties":{"a":{"allOf":[{"$ref":"#/properties/a"}]}}}`, `[]`)
	f.Fuzz(func(t *testing.T, given, arguments string) {
		c, err := dialect.Convert(given)
		if err != nil {
			return
		}
		if problem := strict(c.Schema); problem != "" {
			t.Errorf("%s: %s", problem, c.Schema)
		}
		_, _ = c.Original(arguments)
	})
}
