package script_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// refused are scripts that are refused, and the errors.
var refused = []struct{ text, says string }{
	{"", "script:1: the script is empty"},
	{"# nothing\n", "script:1: "},
	{"--- \n", "the script must be a mapping"},
	{"[]", "script:1: the script must be a mapping"},
	{"turn: []", `script:1: unknown field "turn"; the script has agents, jobs, turns`},
	{"turns: {}", "script:1: turns must be a list"},
	{"turns:\n  - text: a\n  - txt: b\n", `script:3: unknown field "txt"; an entry of turns has calls, delay, error,`},
	{"turns:\n  - [a]\n", "script:2: an entry of turns must be a mapping"},
	{"turns:\n  - {text: 7}\n", "script:2: text must be a text"},
	{"turns:\n  - calls:\n    - {}\n", "script:3: a call needs a name"},
	{"turns:\n  - calls:\n    - {name: a, args: {}}\n", `script:3: unknown field "args"; a call has arguments, id, name, raw_arguments`},
	{"turns:\n  - calls:\n    - {name: a, arguments: {}, raw_arguments: x}\n", "script:3: a call has arguments or raw_arguments, not both"},
	{"turns:\n  - calls:\n    - {name: a, arguments: [1]}\n", "script:3: arguments must be a mapping or a text"},
	{"turns:\n  - {calls: {name: a}}\n", "script:2: calls must be a list"},
	{"turns:\n  - {usage: {input_tokens: -1}}\n", "script:2: input_tokens must be a whole number from 0"},
	{"turns:\n  - {usage: {input_tokens: many}}\n", "script:2: input_tokens must be a whole number from 0"},
	{"turns:\n  - {error: {status: 200}}\n", "script:2: status must be from 400 to 599"},
	{"turns:\n  - {error: {status: 429, retry_after: soon}}\n", "script:2: retry_after must be a number of seconds"},
	{"turns:\n  - {error: {status: 429, retry_after: -1}}\n", "script:2: retry_after must be a number of seconds"},
	{"turns:\n  - {error: {message: \"a\\nb\"}}\n", "script:2: message must be one line"},
	{"turns:\n  - {error: {context_exceeded: 1}}\n", "script:2: context_exceeded must be true or false"},
	{"turns:\n  - {error: {prompt_tokens: -1}}\n", "script:2: prompt_tokens must be a whole number from 0"},
	{"turns:\n  - {error: {window_tokens: 4294967296}}\n", "script:2: window_tokens must be at most 4294967295"},
	{"turns:\n  - {text: a, error: {status: 500}}\n", "script:2: an entry with error has no text"},
	{"turns:\n  - {when: {}}\n", "script:2: when needs last_contains"},
	{"turns:\n  - {when: {contains: a}}\n", `script:2: unknown field "contains"; when has last_contains`},
	{"turns:\n  - {finish_reason: done}\n", "script:2: finish_reason must be one of stop, tool_calls, length, content_filter"},
	{"turns:\n  - {delay: fast}\n", "script:2: delay must be a duration"},
	{"turns:\n  - {delay: 200}\n", "script:2: delay must be a text"},
	{"{}", "script:1: the field turns is missing"},
	{"turns: []\nagents: []", "script:2: agents must be a mapping of names"},
	{"turns: []\nagents: {'': {turns: []}}", "script:2: a name of agents must not be empty"},
	{"turns: []\nagents:\n  explore: {}\n", "script:3: agents.explore: the field turns is missing"},
	{"turns: []\nagents:\n  explore: {turns: [], jobs: {}}\n", `script:3: unknown field "jobs"; agents.explore has turns`},
	{"jobs: []", "script:1: jobs must be a mapping of purposes"},
	{"jobs: {'': [{text: a}]}", "script:1: a purpose of jobs must not be empty"},
	{"jobs: {plan: {text: a}}", "script:1: jobs.plan must be a list"},
	{"jobs: {plan: []}", "script:1: jobs.plan needs an entry"},
	{"jobs:\n  plan:\n    - {answer: a}\n", "script:3: answer must be a mapping"},
	{"jobs:\n  plan:\n    - {answer: {a: 1}, text: a}\n", "script:3: an entry of jobs has answer or text, not both"},
	{"jobs:\n  plan:\n    - {answer: {a: 1}, error: {}}\n", "script:3: an entry with error has no answer"},
	{"jobs:\n  plan:\n    - {when: {last_contains: a}, text: b}\n", `script:3: unknown field "when"; an entry of jobs has answer, calls,`},
}

// malformed are refused too, for reasons that a schema cannot see.
var malformed = []struct{ text, says string }{
	{"turns:\n  - {text: a\n", "script:"},
	{"turns:\n  - text: a\n    text: b\n", "script:3: duplicate field text"},
	{"turns: []\n---\nturns: []\n", "a script is one document"},
	{"turns:\n  - {calls: [{name: a, arguments: {x: .nan}}]}\n", `script:2: ".nan" is not a value that JSON has`},
	{"turns:\n  - {calls: [{name: a, arguments: {x: 1, x: 2}}]}\n", "script:2: duplicate key x"},
	{"jobs: {plan: [{text: a}], plan: [{text: b}]}", "script:1: duplicate field plan"},
	{"turns:\n  - {delay: 25h}\n", "script:2: delay must be a duration"},
	{"turns:\n  - calls:\n    - name: a\n      arguments: {a: &a {b: [*a]}}\n", "arguments: deeper than"},
}

func TestParseRejects(t *testing.T) {
	for _, c := range append(refused, malformed...) {
		_, err := script.Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line with %q", c.text, err, c.says)
		}
	}
}

func TestLoad(t *testing.T) {
	s, err := script.Load(filepath.Join("testdata", "example.yaml"))
	if err != nil || s.Len() != 6 {
		t.Fatalf("%v, %v: want 6 entries", s, err)
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := script.Load(missing); err == nil || !strings.HasPrefix(err.Error(), missing+": ") || strings.Count(err.Error(), missing) != 1 {
		t.Errorf("error %v, want one that names the file once", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("turns:\n  - {x: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := script.Load(bad); err == nil || !strings.HasPrefix(err.Error(), bad+":2: ") {
		t.Errorf("error %v, want one at %s:2", err, bad)
	}
}

func TestArguments(t *testing.T) {
	for text, want := range map[string]string{
		`{path: a.txt, n: 1, f: 1.50, big: 123456789012345678901234567890, hex: 0x10, yes: true, none: null, s: "1"}`: `{"path":"a.txt","n":1,"f":1.50,"big":123456789012345678901234567890,"hex":16,"yes":true,"none":null,"s":"1"}`,
		`{z: [1, {a: "<&>"}], date: 2026-01-02, empty: {}, list: []}`:                                                 `{"z":[1,{"a":"<&>"}],"date":"2026-01-02","empty":{},"list":[]}`,
		`'{"path": '`: `{"path": `,
		`""`:          ``,
		`{}`:          `{}`,
	} {
		p := provider(t, "turns: [{calls: [{name: a, arguments: "+text+"}]}]")
		_, resp := respond(t, p, modeltest.Conversation(false))
		if got := resp.ToolCalls[0].GetArguments().GetInline(); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestSchemaAgrees(t *testing.T) {
	schema := compile(t)
	check := func(text string) error {
		b, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	example, err := os.ReadFile(filepath.Join("testdata", "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(example), story, "turns: []", jobs} {
		if err := check(text); err != nil {
			t.Errorf("the schema refuses a script that is taken: %v", err)
		}
		if _, err := script.Parse([]byte(text)); err != nil {
			t.Errorf("a script that the schema takes is refused: %v", err)
		}
	}
	for _, c := range refused {
		if check(c.text) == nil {
			t.Errorf("the schema takes %q", c.text)
		}
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(script.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("script.json", v); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("script.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func FuzzParse(f *testing.F) {
	f.Add(story)
	f.Add(jobs)
	for _, c := range append(refused, malformed...) {
		f.Add(c.text)
	}
	f.Add("turns: [{calls: [{name: a, arguments: {a: &a [1], b: *a}}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse([]byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "script:") {
				t.Errorf("error %q without a place", err)
			}
			return
		}
		if strings.Contains(text, "delay") {
			return
		}
		resp, err := script.NewProvider(s).Complete(t.Context(), modeltest.Conversation(true), func(model.Delta) {})
		if (resp == nil) == (err == nil) {
			t.Errorf("%v and %v: want a response or an error", resp, err)
		}
	})
}
