package dialect

import (
	"fmt"
	"strings"
	"testing"
)

// What Convert returns for one schema, and how arguments return to it.
func TestSchemasBecomeTheCommonDialect(t *testing.T) {
	for name, c := range map[string]struct{ in, out, model, server string }{
		"nothing":         {in: `{}`, out: `{"properties":{},"type":"object"}`, model: `{"a":1}`, server: `{"a":1}`},
		"empty text":      {in: ``, out: `{"properties":{},"type":"object"}`, model: ``, server: `{}`},
		"unknown keyword": {in: `{"type":"object","additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string","minLength":1,"title":"A"}}}`, out: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"reference": {
			in:  `{"properties":{"a":{"$ref":"#/$defs/A","description":"the a"}},"$defs":{"A":{"type":"integer","description":"x","minimum":1}}}`,
			out: `{"properties":{"a":{"description":"the a","minimum":1,"type":"integer"}},"type":"object"}`, model: `{"a":2}`, server: `{"a":2}`,
		},
		"reference to a property": {
			in:  `{"properties":{"b":{"type":"array","items":{"$ref":"#/properties/a"}},"a":{"type":"boolean"}}}`,
			out: `{"properties":{"a":{"type":"boolean"},"b":{"items":{"type":"boolean"},"type":"array"}},"type":"object"}`,
		},
		"recursion": {
			in: `{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"v":{"type":"string"},"n":{"$ref":"#/$defs/N"}},"required":["v"]}}}`,
			out: `{"properties":{"n":{"properties":{"n":{"properties":{"n":{"description":"A JSON value of the same form as the one around it, as text.","type":"string"},"v":{"type":"string"}},` +
				`"required":["v"],"type":"object"},"v":{"type":"string"}},"required":["v"],"type":"object"}},"type":"object"}`,
			model: `{"n":{"v":"1","n":{"v":"2","n":"{\"v\":\"3\"}"}}}`, server: `{"n":{"n":{"n":{"v":"3"},"v":"2"},"v":"1"}}`,
		},
		"combinator at the top": {
			in:    `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"],"anyOf":[{"properties":{"x":{"type":"string"}},"required":["p","x"]},{"properties":{"y":{"type":"number"}},"required":["y","p"]}]}`,
			out:   `{"description":"Arguments that belong together, one group of these: p + x; y + p.","properties":{"p":{"type":"string"},"x":{"type":"string"},"y":{"type":"number"}},"required":["p"],"type":"object"}`,
			model: `{"p":"a","y":1}`, server: `{"p":"a","y":1}`,
		},
		"allOf at the top": {
			in:  `{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"string"}},"required":["b"]}],"$defs":{"A":{"properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			out: `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`,
		},
		"odd names": {
			in:  `{"properties":{"$filter":{"type":"string"},"_filter":{"type":"object","properties":{"a b":{"type":"number"}}}},"required":["$filter"]}`,
			out: `{"properties":{"_filter":{"properties":{"a_b":{"type":"number"}},"type":"object"},"_filter_0c097d40":{"type":"string"}},"required":["_filter_0c097d40"],"type":"object"}`,
			// A key that is not declared remains.
			model: `{"_filter_0c097d40":"x","_filter":{"a_b":1,"c":2}}`, server: `{"$filter":"x","_filter":{"a b":1,"c":2}}`,
		},
		"null": {
			in:    `{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},"c":{"type":"null"}},"required":["a","c"]}`,
			out:   `{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"type":"object"}`,
			model: `{"b":1}`, server: `{"a":null,"b":1,"c":null}`,
		},
		"enums": {
			in:    `{"properties":{"a":{"enum":[1,2,null]},"b":{"const":true},"c":{"type":"string","enum":["","x"]},"d":{"oneOf":[{"const":"p"},{"const":"q"}],"description":"d."}}}`,
			out:   `{"properties":{"a":{"enum":["1","2"],"type":"string"},"b":{"enum":["true"],"type":"string"},"c":{"enum":["(empty)","x"],"type":"string"},"d":{"description":"d.","enum":["p","q"],"type":"string"}},"type":"object"}`,
			model: `{"a":"2","b":"true","c":"(empty)","d":"q"}`, server: `{"a":2,"b":true,"c":"","d":"q"}`,
		},
		"free form": {
			in: `{"properties":{"o":{"type":"object","additionalProperties":{"type":"number"}},"l":{"type":"array"},"any":{},"s":{"anyOf":[{"type":"string"},{"type":"object"}]}}}`,
			out: `{"properties":{"any":{"description":"Any JSON value, as text.","type":"string"},"l":{"items":{"description":"Any JSON value, as text.","type":"string"},"type":"array"},` +
				`"o":{"description":"A JSON object with values of type number, as text.","type":"string"},"s":{"description":"JSON as text: string or object.","type":"string"}},"type":"object"}`,
			model: `{"o":"{\"k\":1}","l":["1","x","[2]"],"any":"false","s":"5"}`, server: `{"any":false,"l":[1,"x",[2]],"o":{"k":1},"s":"5"}`,
		},
		"alternatives": {
			in: `{"properties":{"a":{"description":"which","oneOf":[{"type":"object","properties":{"t":{"const":"x"},"$v":{"type":"number"}},"required":["t"]},{"type":"object","properties":{"t":{"const":"y"},"#v":{"type":"string"}},"required":["t"]}]}}}`,
			out: `{"properties":{"a":{"anyOf":[{"description":"which","properties":{"_v":{"type":"number"},"t":{"enum":["x"],"type":"string"}},"required":["t"],"type":"object"},` +
				`{"properties":{"_v":{"type":"string"},"t":{"enum":["y"],"type":"string"}},"required":["t"],"type":"object"}]}},"type":"object"}`,
			model: `{"a":{"t":"y","_v":"1"}}`, server: `{"a":{"#v":"1","t":"y"}}`,
		},
		"several types": {in: `{"properties":{"a":{"type":["string","integer"],"description":"d"}}}`, out: `{"properties":{"a":{"anyOf":[{"description":"d","type":"string"},{"type":"integer"}]}},"type":"object"}`, model: `{"a":3}`, server: `{"a":3}`},
		"invisible": {
			in:    `{"properties":{"a\u200b":{"type":"string","description":"do\u202e this\u00ad\ue0041\udb40\udc41"},"e":{"enum":["k\u200d","k"]}}}`,
			out:   `{"properties":{"a_":{"description":"do this1","type":"string"},"e":{"enum":["k"],"type":"string"}},"type":"object"}`,
			model: `{"a_":"1"}`, server: "{\"a\u200b\":\"1\"}",
		},
		"remarks":    {in: `{"properties":{"a":{"type":"number","default":1.5,"exclusiveMinimum":0,"maximum":9007199254740991},"u":{"type":"string","format":"uri","pattern":"^h"}}}`, out: `{"properties":{"a":{"description":"Default: 1.5. Above 0.","type":"number"},"u":{"description":"Format: uri. Pattern: ^h.","type":"string"}},"type":"object"}`},
		"if below":   {in: `{"properties":{"o":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}}}`, out: `{"properties":{"o":{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}},"type":"object"}`},
		"big number": {in: `{"properties":{"id":{"type":"integer"}}}`, out: `{"properties":{"id":{"type":"integer"}},"type":"object"}`, model: `{"id":12345678901234567890}`, server: `{"id":12345678901234567890}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Convert(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Schema != c.out {
				t.Errorf("got  %s\nwant %s", got.Schema, c.out)
			}
			strict(t, name, got.Schema)
			if c.server == "" {
				return
			}
			if back, err := got.Original(c.model); err != nil || back != c.server {
				t.Errorf("original %s, %v, want %s", back, err, c.server)
			}
		})
	}
}

func TestWhatCannotBeExpressedIsRefusedWithItsReason(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                "not a JSON object",
		`{"type":"string"}`: "arguments are no object",
		`{`:                 "not valid JSON",
		`{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`:                  "does not point to a place in it",
		`{"properties":{"a":{"$ref":"#/$defs/none"}}}`:                                "points to nothing",
		`{"oneOf":[{"type":"string"},{"type":"number"}]}`:                             "no object",
		`{"description":"` + strings.Repeat("x", maxInput) + `"}`:                     "limit",
		strings.Repeat(`{"properties":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300): "deeper",
		`{"properties":{` + many(maxProperties+1) + `}}`:                              "too large",
	} {
		if got, err := Convert(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, %v, want %q", in, got, err, want)
		}
	}
}

func many(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
	}
	return strings.Join(list, ",")
}

// A reference that doubles at each level would have 2^40 parts.
func TestSchemasThatGrowWhenInlinedAreBounded(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	got, err := Convert(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `,"d40":{"type":"string"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	strict(t, "doubling", got.Schema)
	long := strings.Repeat("very ", 4000)
	got, err = Convert(`{"properties":{"a":{"type":"string","description":"` + long + `"},"e":{"enum":[` + strings.TrimSuffix(strings.Repeat(`"`+long[:50]+`",`, 1), ",") + `]}}}`)
	if err != nil || len(got.Schema) > 2000 {
		t.Errorf("%d bytes, %v", len(got.Schema), err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	values := make([]string, maxEnum+1)
	for i := range values {
		values[i] = fmt.Sprintf(`"v%d"`, i)
	}
	fields := make([]string, 200)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"p%d":{"type":"string","description":"%s"}`, i, strings.Repeat("d", 500))
	}
	for name, in := range map[string]string{
		"enum":         `{"properties":{"e":{"enum":[` + strings.Join(values, ",") + `]}}}`,
		"descriptions": `{"properties":{` + strings.Join(fields, ",") + `}}`,
	} {
		c, err := Convert(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		strict(t, name, c.Schema)
	}
}

func TestArgumentsAreCheckedWithTheOriginal(t *testing.T) {
	c, err := Convert(`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"required":["a"],"additionalProperties":false}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{`{"a":"y"}`, `{}`, `{"a":"x","b":1}`, `[]`, `{`} {
		if got, err := c.Original(arguments); err == nil {
			t.Errorf("%s became %s", arguments, got)
		}
	}
}

func TestNamesOfToolsAreTheSameInEveryRun(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range [][3]string{
		{"github", "create_issue", "mcp__github__create_issue"},
		{"s", "a.b", "mcp__s__a_b_2a9f4e8a"},
		{"s", "a/b", ""}, {"s", long, ""}, {"s", long + "é", ""}, {"", "", "mcp____"},
	} {
		got := Name("mcp__"+c[0]+"__", c[1])
		if c[2] != "" && got != c[2] && c[1] != "a.b" || len(got) > 64 || plainName(got, false) != got || got != Name("mcp__"+c[0]+"__", c[1]) {
			t.Errorf("%v: %s", c, got)
		}
	}
	if Name("mcp__s__", "a.b") == Name("mcp__s__", "a/b") || Name("mcp__s__", long) == Name("mcp__s__", long+"b") {
		t.Error("two tools have one name")
	}
}

func TestTextsHideNothing(t *testing.T) {
	for in, want := range map[string]string{
		"a\u200bb\u202ec\U000e0041d\x1b[31me\x00\ufe0f": "abcd[31me", " two\r\nlines\u2028x ": "two\nlines\nx", "\xff": "\ufffd", "日本語 é": "日本語 é", "\u3164\u2800": "",
	} {
		if got := Text(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Text(strings.Repeat("é", 100), 10); got != "ééé…" {
		t.Errorf("%q", got)
	}
}

func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"anyOf":[{"$ref":"#/anyOf/0"}]}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"properties":{"":{"type":["null"]},"é":{"enum":[[],{}]}},"required":["x",1]}`, `{"type":"object","properties":{"a":{"items":[{},true,false]}}}`,
		`{"properties":{"a":{"anyOf":[{"anyOf":[{}]}],"type":"array","prefixItems":[{"type":"null"}]}}}`, `{"properties":1,"required":{},"type":7,"anyOf":[1]}`,
	} {
		f.Add(seed, `{"a":[1,{"b":"{}"}],"":null}`)
	}
	f.Fuzz(func(t *testing.T, in, arguments string) {
		c, err := Convert(in)
		if err != nil {
			return
		}
		strict(t, in, c.Schema)
		if again, err := Convert(in); err != nil || again.Schema != c.Schema {
			t.Errorf("%s: not the same twice", in)
		}
		_, _ = c.Original(arguments)
	})
}
