package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// nested repeats a keyword of objects around a schema.
func nested(keyword string, levels int) string {
	return strings.Repeat(`{"`+keyword+`":`, levels) + "{}" + strings.Repeat("}", levels)
}

// wide is a schema with n properties.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%d":{}`, i)
	}
	return `{"type":"object","properties":{` + b.String()[1:] + `}}`
}

// TestBoundsOfASchema: a schema at each limit compiles, and one beyond it is refused before
// it is compiled, with the limit.
func TestBoundsOfASchema(t *testing.T) {
	for name, c := range map[string]struct{ text, problem string }{
		"deepest":               {nested("not", schema.MaxDepth-1), ""},
		"deeper":                {nested("not", schema.MaxDepth), "nest deeper than 64 levels, the limit of a JSON Schema"},
		"2,000 levels":          {nested("not", 2000), "64 levels"},
		"20,000 levels":         {nested("not", 20000), "bytes exceed the limit of 65536"},
		"brackets in a text":    {`{"title":"` + strings.Repeat("[{", 200) + `\"{"}`, ""},
		"most values":           {wide(schema.MaxValues - 3), ""},
		"more values":           {wide(schema.MaxValues - 2), "4001 values exceed the limit of 4000 of a JSON Schema"},
		"largest":               {`{"title":"` + strings.Repeat("x", schema.MaxBytes-12) + `"}`, ""},
		"larger":                {`{"title":"` + strings.Repeat("x", schema.MaxBytes-11) + `"}`, "65537 bytes exceed the limit of 65536 of a JSON Schema"},
		"a large number":        {`{"maximum":1e9999999}`, "the number 1e9999999 is out of range"},
		"another document":      {`{"$ref":"file:///etc/passwd"}`, "the schema must be self-contained"},
		"no JSON":               {`{"type":`, "not valid JSON: "},
		"no schema":             {`3`, "expected a JSON object"},
		"a type that is not":    {`{"type":"thing"}`, "invalid JSON Schema: "},
		"an expensive pattern":  {`{"pattern":"([ab]{100}){100}"}`, "is not valid regex"},
		"a cycle of references": {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, ""},
	} {
		begun := time.Now()
		_, err := schema.Compile(c.text, false)
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	for text, problem := range map[string]string{`true`: "expected a JSON object", `{"type":"array"}`: "type is array, expected object", `{"type":"object"}`: "", `{}`: ""} {
		if _, err := schema.Compile(text, true); problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}

// doubling refers to the next level twice, so that a check tries 2 to the power of levels
// ways.
func doubling(levels int, keyword, leaf, before string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{%s"$ref":"#/$defs/d0","$defs":{`, before)
	for i := range levels {
		fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":%s}}`, levels, leaf)
	return b.String()
}

// TestBoundsOfACheck: schemas within the limits that try exponentially many ways, and values
// that nest deeply.
func TestBoundsOfACheck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a million steps for each schema")
	}
	t.Parallel()
	recursive := `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`
	dynamic := `{"$id":"http://a/","$dynamicRef":"#d0","$defs":{`
	for i := range 60 {
		dynamic += fmt.Sprintf(`"d%d":{"$dynamicAnchor":"d%d","allOf":[{"$dynamicRef":"#d%d"},{"$dynamicRef":"#d%d"}]},`, i, i, i+1, i+1)
	}
	dynamic += `"d60":{"$dynamicAnchor":"d60"}}}`
	alternatives := `{"enum":[` + strings.Repeat(`"x",`, 3000) + `"y"]}`
	for name, c := range map[string]struct{ text, value string }{
		"all of":                  {doubling(60, "allOf", `{}`, ""), `{}`},
		"all of, failing":         {doubling(60, "allOf", `{"type":"string"}`, ""), `{}`},
		"any of, failing":         {doubling(60, "anyOf", `{"type":"string"}`, ""), `{}`},
		"one of":                  {doubling(60, "oneOf", `{"type":"string"}`, ""), `{}`},
		"not, any of":             {`{"not":` + doubling(60, "anyOf", `{"type":"string"}`, "")[:0] + `{"$ref":"#/$defs/d0"},` + doubling(60, "anyOf", `{"type":"string"}`, "")[len(`{"$ref":"#/$defs/d0",`):], `{}`},
		"another draft":           {doubling(60, "allOf", `{}`, `"$schema":"http://json-schema.org/draft-07/schema#",`), `{}`},
		"names":                   {dynamic, `{}`},
		"a recursive schema":      {recursive, strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200)},
		"many items, many values": {`{"items":` + alternatives + `}`, `[` + strings.Repeat(`"z",`, 3000) + `"z"]`},
		"many patterns":           {`{"items":{"allOf":[` + strings.Repeat(`{"pattern":"a.*b"},`, 1000) + `{}]}}`, `["` + strings.Repeat("a", 1<<20) + `"]`},
	} {
		s, err := schema.Compile(c.text, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		value, err := schema.Decode(c.value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		begun := time.Now()
		if err := s.Validate(value, 100); err == nil || !strings.Contains(err.Error(), "more steps to check than the limit") {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s took %s", name, took)
		} else {
			t.Logf("%s took %s", name, took)
		}
	}
	for text, problem := range map[string]string{
		strings.Repeat("[", schema.MaxNesting) + strings.Repeat("]", schema.MaxNesting):     "",
		strings.Repeat("[", schema.MaxNesting+1) + strings.Repeat("]", schema.MaxNesting+1): "nest deeper than 256 levels",
		strings.Repeat("[", 1<<20): "nest deeper", `{`: "not valid JSON: ", `[1e99999]`: "out of range",
	} {
		if _, err := schema.Decode(text); problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%.80s: %v, want %q", text, err, problem)
		}
	}
}

// TestValidate: the fault of a value, with its place, in one line. A check that was too long
// spoils no later one, also at the same time.
func TestValidate(t *testing.T) {
	s, err := schema.Compile(`{"properties":{"a":{"type":"array","items":{"type":"integer"}},"when":{"format":"date"}},"required":["a"],"$defs":{}}`, true)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for text, want := range map[string]string{
				`{"a":[1,2]}`:                      "",
				`{}`:                               "missing property 'a'",
				`{"a":["x",1,"y"]}`:                "a.0: got string, want integer; a.2: got string, want integer",
				`{"a":["1","2","3","4","5"]}`:      "and 2 more",
				`{"a":[],"when":"soon"}`:           "", // an annotation in this draft
				`{"a":["` + bigText(1<<20) + `"]}`: "a.0: got string, want integer",
			} {
				value, err := schema.Decode(text)
				if err != nil {
					t.Error(err)
					continue
				}
				if err := s.Validate(value, 100); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%.80s: %v, want %q", text, err, want)
				}
			}
		})
	}
	all.Wait()
	asserted, err := schema.Compile(`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := asserted.Validate("soon", 100); err == nil || !strings.Contains(err.Error(), "date") {
		t.Errorf("a format that this draft asserts: %v", err)
	}
}

func bigText(n int) string { return strings.Repeat("x", n) }
