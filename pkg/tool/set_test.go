package tool

import (
	"strings"
	"testing"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const readSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "offset": {"type": "integer", "minimum": 1},
    "tags": {"type": "array", "uniqueItems": true, "items": {"enum": ["a", 1]}},
    "step": {"type": "number", "multipleOf": 0.5}
  },
  "required": ["path"],
  "additionalProperties": false
}`

func spec(name, schema string) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: name, ParametersSchema: schema}
}

func mustSet(t testing.TB, specs ...*harnessv1.ToolSpec) *Set {
	t.Helper()
	s, err := NewSet(specs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSetRejectsInvalidSpecs(t *testing.T) {
	for name, c := range map[string]struct {
		specs []*harnessv1.ToolSpec
		want  string
	}{
		"empty name":         {[]*harnessv1.ToolSpec{spec("", `{}`)}, "does not match"},
		"name with a dot":    {[]*harnessv1.ToolSpec{spec("a.b", `{}`)}, "does not match"},
		"name too long":      {[]*harnessv1.ToolSpec{spec(strings.Repeat("a", 65), `{}`)}, "does not match"},
		"name with newline":  {[]*harnessv1.ToolSpec{spec("ab\n", `{}`)}, "does not match"},
		"duplicate name":     {[]*harnessv1.ToolSpec{spec("a", `{}`), spec("a", `{}`)}, "duplicate tool"},
		"no spec":            {[]*harnessv1.ToolSpec{nil}, "does not match"},
		"no schema":          {[]*harnessv1.ToolSpec{spec("a", ``)}, "not valid JSON"},
		"schema of a string": {[]*harnessv1.ToolSpec{spec("a", `{"type":"string"}`)}, "expected object"},
		"invalid schema": {
			[]*harnessv1.ToolSpec{spec("a", `{"type":"object","properties":7}`)}, "parameters_schema"},
		"boolean schema":      {[]*harnessv1.ToolSpec{spec("a", `true`)}, "expected a JSON object"},
		"reference to a file": {[]*harnessv1.ToolSpec{spec("a", `{"$ref":"file:///etc/passwd"}`)}, "self-contained"},
		"reference to a host": {[]*harnessv1.ToolSpec{spec("a", `{"$ref":"http://127.0.0.1/x"}`)}, "self-contained"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSet(c.specs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSetKeepsOrder(t *testing.T) {
	s := mustSet(t, spec("b", `{}`), spec("a", `{}`))
	if got := s.Specs(); len(got) != 2 || got[0].GetName() != "b" || got[1].GetName() != "a" {
		t.Fatalf("got %v", got)
	}
	if s.Lookup("a") != s.Specs()[1] || s.Lookup("c") != nil {
		t.Fatal("Lookup(a) or Lookup(c) is wrong")
	}
}

func TestValidate(t *testing.T) {
	s := mustSet(t, spec("read_file", readSchema), spec("free", `{"type":"object"}`))
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"valid":              {"read_file", `{"path":"a","offset":2}`, ""},
		"whole float":        {"read_file", `{"path":"a","offset":2.0}`, ""},
		"empty counts as {}": {"free", ``, ""},
		"blank counts as {}": {"free", " \n", ""},
		"missing":            {"read_file", ``, "missing property 'path'"},
		"wrong type":         {"read_file", `{"path":"a","offset":"2"}`, "offset: got string, want integer"},
		"too small":          {"read_file", `{"path":"a","offset":0}`, "offset: minimum"},
		"extra":              {"read_file", `{"path":"a","file":1}`, "'file' not allowed"},
		"not JSON":           {"read_file", `{"path":`, "not valid JSON"},
		"two values":         {"read_file", `{"path":"a"} {}`, "not valid JSON"},
		"an array":           {"read_file", `["a"]`, "not a JSON object"},
		"a string of JSON":   {"read_file", `"{}"`, "not a JSON object"},
		"null":               {"read_file", `null`, "not a JSON object"},
		"huge exponent":      {"read_file", `{"path":"a","offset":1e999999999}`, "out of range"},
		"tiny exponent":      {"read_file", `{"path":"a","step":1e-0009999}`, "out of range"},
		"endless number":     {"read_file", `{"path":"a","offset":` + strings.Repeat("1", 500) + `}`, "out of range"},
		"unknown tool":       {"readfile", `{}`, "Did you mean read_file"},
		"unknown, none near": {"launch", `{}`, "The tools are: read_file, free"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Validate(c.tool, c.arguments)
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestValidateErrorHasTheSchemaOnOneLine(t *testing.T) {
	s := mustSet(t, spec("read_file", readSchema))
	err := s.Validate("read_file", `{"offset":"`+strings.Repeat("x\n", 5000)+`"}`)
	if err == nil || !strings.Contains(err.Error(), "not valid JSON") {
		t.Fatalf("got %v", err)
	}
	err = s.Validate("read_file", `{"`+strings.Repeat("k", 9000)+`":1,"b\nc":2}`)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || len(err.Error()) > 3*maxFinding+maxSchema+200 {
		t.Fatalf("%d lines, %d bytes: %s", len(lines), len(err.Error()), err)
	}
	if !strings.Contains(lines[1], `"required":["path"]`) {
		t.Fatalf("no schema in %q", lines[1])
	}
}

func TestNear(t *testing.T) {
	s := mustSet(t, spec("read_file", `{}`), spec("write_file", `{}`), spec("edit_file", `{}`),
		spec("list_directory", `{}`), spec("run_command", `{}`))
	for name, want := range map[string]string{
		"readfile":   "read_file",
		"Read-File":  "read_file",
		"read":       "read_file",
		"list_dir":   "list_directory",
		"run_comand": "run_command",
		"edit_fil":   "edit_file",
		"zzz":        "",
		"":           "",
		"___":        "",
	} {
		got := s.Near(name)
		if want == "" && len(got) != 0 || want != "" && (len(got) == 0 || got[0] != want || len(got) > 3) {
			t.Errorf("Near(%q) = %v, want %q first", name, got, want)
		}
	}
}

func FuzzValidate(f *testing.F) {
	s := mustSet(f, spec("read_file", readSchema))
	for _, seed := range []string{``, `{}`, `{"path":"a"}`, `{"path":1e99999}`, `[[[[`, "\xff", `{"tags":["a",1,1e2]}`,
		`{"path":"a","step":1e308,"offset":-0}`, `{"path":"\ud800"}`, `{"a":{"a":{"a":[]}}}`} {
		f.Add("read_file", seed)
	}
	f.Add("read\xff", "x")
	f.Fuzz(func(t *testing.T, name, arguments string) {
		if err := s.Validate(name, arguments); err != nil {
			if text := err.Error(); text == "" || strings.Count(text, "\n") > 1 || !utf8.ValidString(text) {
				t.Fatalf("the model cannot read %q", text)
			}
		}
	})
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"read_file": true, "A-9": true, strings.Repeat("a", 64): true,
		"": false, "a b": false, "a.b": false, "é": false, "a\n": false, "*": false, strings.Repeat("a", 65): false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v", name, got)
		}
	}
}
