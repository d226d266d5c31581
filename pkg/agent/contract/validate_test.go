package contract

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func parse(t testing.TB, text string) *harnessv1.TaskContract {
	t.Helper()
	c := &harnessv1.TaskContract{}
	if err := protojson.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// with returns a contract with one output of a predicate, as JSON.
func with(predicate string) string {
	return `{"required_outputs": [{"id": "o", "predicate": ` + predicate + `}]}`
}

// counting returns a contract with an output for each number of artifacts of one kind, as JSON.
func counting(numbers ...string) string {
	var outputs []string
	for i, n := range numbers {
		outputs = append(outputs, fmt.Sprintf(`{"id": "o%d", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a", "min": %s}}`, i, n))
	}
	return `{"required_outputs": [` + strings.Join(outputs, ",") + `]}`
}

func TestResolveFillsInDefaults(t *testing.T) {
	c := parse(t, `{"goal": "g", "requirements": ["first", "second"], "stored": {"inline": "x"},
		"required_outputs": [{"id": "a"}, {"id": "b", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "x"}},
			{"id": "c", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "x"}}]}`)
	before := proto.CloneOf(c)
	want := parse(t, `{"goal": "g", "acceptability": {"max_unknowns": 0, "min_confidence": 0.6, "allow_partial": false}, "required_outputs": [
		{"id": "a", "predicate": {"type": "PREDICATE_TYPE_ALWAYS_TRUE"}},
		{"id": "b", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "x", "in": "response"}},
		{"id": "c", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "x", "min": 1}},
		{"id": "R1", "description": "first", "predicate": {"type": "PREDICATE_TYPE_ALWAYS_TRUE"}},
		{"id": "R2", "description": "second", "predicate": {"type": "PREDICATE_TYPE_ALWAYS_TRUE"}}]}`)
	r := Resolve(c)
	if !proto.Equal(r, want) {
		t.Errorf("resolved: %v", r)
	}
	if !proto.Equal(c, before) {
		t.Error("the contract itself was changed")
	}
	if again := Resolve(r); !proto.Equal(again, r) || again == r {
		t.Errorf("resolved again: %v", again)
	}
	r.Stored = inline("x")
	if Resolve(r).GetStored() == nil {
		t.Error("a resolved contract lost where it is stored")
	}
	if Resolve(nil) != nil {
		t.Error("nil becomes a contract")
	}
	given := parse(t, `{"acceptability": {"max_unknowns": 2, "min_confidence": 0, "allow_partial": true}, "requirements": ["x"]}`)
	if a := Resolve(given).GetAcceptability(); !proto.Equal(a, given.GetAcceptability()) {
		t.Errorf("the acceptability becomes %v", a)
	}
}

func TestValidateAcceptsVerifiableContracts(t *testing.T) {
	for _, text := range []string{
		`{"requirements": ["The report is written"]}`,
		`{"questions": [{"id": "q", "question": "Which one?", "required": true}]}`,
		`{"required_outputs": [{"id": "R2"}], "requirements": ["x"]}`,
		with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a/../b/c..d/.e"}`),
		with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "file:report.md", "pattern": "\\[1\\]"}`),
		with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "file:a:b", "pattern": "(?s)^.{0,1000}$"}`),
		with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "artifact:w1", "pattern": "a|b"}`),
		with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "run_command", "arguments": [{"name": "command", "pattern": "test"}]}`),
		with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "make test", "timeout": "3600s"}`),
		with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "artifact:w1", "schema": "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"string\", \"pattern\": \"^a+$\"}}}"}`),
		with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 0 && work_items.exists(w, w.has_artifact)"}`),
		with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "[::1]:9000", "timeout": "0.5s"}`),
		with(`{"type": "PREDICATE_TYPE_ALWAYS_TRUE"}`),
		with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "finding"}`),
		with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a_2", "min": 200, "cited": true}`),
		counting(`200`, `200`), counting(`100`, `200`), // of the same kind: an artifact counts for both
		`{"acceptability": {"max_unknowns": 1, "min_confidence": 0.6}, "requirements": ["x"]}`,
		`{"acceptability": {"min_confidence": 1}, "required_outputs": [{"id": "o", "optional": true}, {"id": "f", "predicate": {"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a"}}]}`,
	} {
		c := parse(t, text)
		if err := Validate(c); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := Validate(Resolve(c)); err != nil {
			t.Errorf("%s, resolved: %v", text, err)
		}
		if _, err := Compile(c); err != nil {
			t.Errorf("%s, compiled: %v", text, err)
		}
	}
}

func TestValidateNamesTheFieldAndWhatToDo(t *testing.T) {
	const p = "required_outputs[0].predicate"
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") }
	questions := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`{"id": "q%d", "question": "?"}`, i))
		}
		return strings.Join(out, ",")
	}
	for _, c := range []struct{ contract, field, says string }{
		{`{"goal": "g"}`, "required_outputs", "is empty"},
		{`{"requirements": ["x", " "]}`, "requirements[1]", "empty"},
		{`{"requirements": [` + many(201) + `]}`, "requirements", "limit of 200"},
		{`{"questions": [` + questions(33) + `]}`, "questions", "limit of 32"},
		{`{"questions": [{"id": "", "question": "?"}]}`, "questions[0].id", "does not match"},
		{`{"questions": [{"id": "a", "question": "?"}, {"id": "a", "question": "?"}]}`, "questions[1].id", "questions[0]"},
		{`{"questions": [{"id": "a", "question": " "}]}`, "questions[0].question", "is required"},
		{`{"requirements": ["x"], "stored": {"inline": "x"}}`, "stored", "leave it out"},
		{`{"requirements": ["x"], "acceptability": {"max_unknowns": 201}}`, "acceptability.max_unknowns", "200"},
		{`{"requirements": ["x"], "acceptability": {"min_confidence": 0.7}}`, "acceptability.min_confidence", "R1 can never have"},
		{`{"requirements": ["x"], "acceptability": {"min_confidence": 1.1}}`, "acceptability.min_confidence", "[0, 1]"},
		{`{"requirements": ["x"], "acceptability": {"min_confidence": "NaN"}}`, "acceptability.min_confidence", "[0, 1]"},
		{`{"requirements": ["` + strings.Repeat("x", maxEncoded) + `"]}`, "required_outputs", "limit of 98304"},
		{`{"required_outputs": [{"id": "a b"}]}`, "required_outputs[0].id", "does not match"},
		{`{"required_outputs": [{"id": "a"}, {"id": "a"}]}`, "required_outputs[1].id", "required_outputs[0]"},
		{`{"required_outputs": [{"id": "x"}, {"id": "R1"}], "requirements": ["x"]}`, "required_outputs[1].id", "requirements[0]"},
		{with(`{}`), p + ".type", "expected FILE_EXISTS"},
		{with(`{"type": 99}`), p + ".type", "expected FILE_EXISTS"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS"}`), p + ".path", "is required for FILE_EXISTS"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": " "}`), p + ".path", "is required"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a", "pattern": "a"}`), p + ".pattern", "is not valid for FILE_EXISTS"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "/etc/passwd"}`), p + ".path", "relative"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a/../../b"}`), p + ".path", "outside the workspace"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": ".."}`), p + ".path", "outside the workspace"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "out/"}`), p + ".path", "directory"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "."}`), p + ".path", "directory"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a/.."}`), p + ".path", "directory"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a\u0000b"}`), p + ".path", "NUL byte"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "` + strings.Repeat("a", 1025) + `"}`), p + ".path", "limit of 1024"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "response"}`), p + ".pattern", "is required"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "(a"}`), p + ".pattern", "missing closing ): (a"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "[ab]{1000}[ab]{1000}[ab]{1000}"}`), p + ".pattern", "too large"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "` + strings.Repeat("a", 2049) + `"}`), p + ".pattern", "2048"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "a", "in": "answer"}`), p + ".in", "response, transcript, artifact:ID or file:PATH"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "a", "in": "file:"}`), p + ".in", "missing path"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "a", "in": "file:../x"}`), p + ".in", "outside the workspace"},
		{with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "a", "in": "artifact:a b"}`), p + ".in", "work item"},
		{with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS"}`), p + ".tool", "is required"},
		{with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "a b"}`), p + ".tool", "does not match"},
		{with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "a", "arguments": [{"pattern": "a"}]}`), p + ".arguments[0].name", "is required"},
		{with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "a", "arguments": [{"name": "a"}]}`), p + ".arguments[0].pattern", "is required"},
		{with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "a", "arguments": [{"name": "a", "pattern": "["}]}`), p + ".arguments[0].pattern", "RE2"},
		{with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": " "}`), p + ".command", "is required"},
		{with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "` + strings.Repeat("a", 8193) + `"}`), p + ".command", "script"},
		{with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "a", "timeout": "0s"}`), p + ".timeout", "between 1ms and 1h"},
		{with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "a", "timeout": "3601s"}`), p + ".timeout", "between"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "schema": "{}"}`), p + ".in", "is required"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "schema": "{}", "in": "response"}`), p + ".in", "artifact:ID or file:PATH"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a"}`), p + ".schema", "is required"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{"}`), p + ".schema", "not valid JSON: "},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "` + strings.Repeat(`{\"not\":`, 2000) + `{}` + strings.Repeat("}", 2000) + `"}`), p + ".schema", "deeper than 64 levels"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "[]"}`), p + ".schema", "object"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"type\": \"thing\"}"}`), p + ".schema", "invalid JSON Schema"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"pattern\": \"(\"}"}`), p + ".schema", "invalid JSON Schema"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"pattern\": \"[ab]{1000}[ab]{1000}[ab]{1000}\"}"}`), p + ".schema", "invalid JSON Schema"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"maximum\": 1e99999}"}`), p + ".schema", "out of range"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"$ref\": \"https://example.com/a.json\"}"}`), p + ".schema", "self-contained"},
		{with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"$ref\": \"file:///etc/passwd\"}"}`), p + ".schema", "self-contained"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM"}`), p + ".cel", "cel or grpc"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "true", "grpc": "a:1"}`), p + ".grpc", "one of them"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "true", "timeout": "1s"}`), p + ".timeout", "cel"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes"}`), p + ".cel", "expected bool"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "localhost"}`), p + ".grpc", "HOST:PORT"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "http://localhost:1"}`), p + ".grpc", "HOST:PORT"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": ":80"}`), p + ".grpc", "HOST:PORT"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "a:99999"}`), p + ".grpc", "HOST:PORT"},
		{with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "a:1", "timeout": "301s"}`), p + ".timeout", "5m"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT"}`), p + ".kind", "is required for ARTIFACT_COUNT"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": " "}`), p + ".kind", "does not match"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "Finding"}`), p + ".kind", "does not match"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a b"}`), p + ".kind", "does not match"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "` + strings.Repeat("a", 33) + `"}`), p + ".kind", "does not match"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a", "min": 0}`), p + ".min", "is 0, must be between 1 and 200"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a", "min": 201}`), p + ".min", "is 201, must be between 1 and 200"},
		{with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a", "min": 1, "path": "a"}`), p + ".path", "is not valid for ARTIFACT_COUNT"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a", "kind": "a"}`), p + ".kind", "is not valid for FILE_EXISTS"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a", "min": 0}`), p + ".min", "is not valid for FILE_EXISTS"},
		{with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a", "cited": true}`), p + ".cited", "is not valid for FILE_EXISTS"},
		{`{"required_outputs": [{"id": "a", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "a", "min": 200}},
			{"id": "b", "predicate": {"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "b"}}]}`, "required_outputs[1].predicate.min", "count 201 artifacts, and a run saves at most 200"},
		{with(`{"type": "PREDICATE_TYPE_ALWAYS_TRUE", "path": "a"}`), p + ".path", "is not valid for"},
		{with(`{"type": "PREDICATE_TYPE_ALWAYS_TRUE", "arguments": [{}]}`), p + ".arguments", "is not valid for"},
	} {
		err := Validate(parse(t, c.contract))
		var wrong *fault.FieldError
		if !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Message, c.says) {
			t.Errorf("%.100s:\n  %v\n  want %s: …%s…", c.contract, err, c.field, c.says)
			continue
		}
		if strings.Contains(wrong.Message, "\n") || len(wrong.Message) > 500 {
			t.Errorf("%.100s: the message is no short line: %q", c.contract, wrong.Message)
		}
	}
}

func TestValidateReportsThePlaceInAnExpression(t *testing.T) {
	err := Validate(parse(t, with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 0 &&\n  nope"}`)))
	var wrong *fault.FieldError
	if !errors.As(err, &wrong) || wrong.Line != 2 || wrong.Column != 3 || !strings.Contains(err.Error(), "predicate.cel: line 2, column 3: ") {
		t.Errorf("%v", err)
	}
}

func TestValidateRejectsAnInvalidTimeout(t *testing.T) {
	c := parse(t, with(`{"type": "PREDICATE_TYPE_COMMAND_SUCCEEDS", "command": "a"}`))
	c.RequiredOutputs[0].Predicate.Timeout = &durationpb.Duration{Seconds: 1, Nanos: -1}
	if err := Validate(c); err == nil {
		t.Error("it is accepted")
	}
	c.RequiredOutputs[0].Predicate.Timeout = durationpb.New(time.Second)
	if err := Validate(c); err != nil {
		t.Error(err)
	}
}

func FuzzValidate(f *testing.F) {
	for _, text := range []string{
		`{"requirements": ["x"]}`, `{"questions": [{"id": "q", "question": "?"}]}`,
		with(`{"type": "PREDICATE_TYPE_FILE_EXISTS", "path": "a"}`),
		with(`{"type": "PREDICATE_TYPE_CONTAINS_TEXT", "in": "file:a", "pattern": "(a{9}){9}"}`),
		with(`{"type": "PREDICATE_TYPE_TOOL_RESULT_SUCCESS", "tool": "a", "arguments": [{"name": "a.b", "pattern": "^x"}]}`),
		with(`{"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"$ref\": \"#\", \"pattern\": \"a\"}"}`),
		with(`{"type": "PREDICATE_TYPE_CUSTOM", "cel": "turn > 1"}`), with(`{"type": "PREDICATE_TYPE_CUSTOM", "grpc": "a:1"}`),
		with(`{"type": "PREDICATE_TYPE_ARTIFACT_COUNT", "kind": "finding", "cited": true}`), counting(`3`, `150`),
	} {
		encoded, err := proto.Marshal(parse(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	w := &memory{
		response: "aaa", messages: []*harnessv1.Message{calls([3]string{"1", "a", `{"a": {"b": "x"}}`}), answers("1", "a", false)},
		saved:     []*harnessv1.Artifact{{Id: "a1", Kind: "finding", Content: inline("x"), Citations: []*harnessv1.Citation{{Source: "s", Quote: "x"}}}},
		artifacts: map[string]string{"w1": `{"a": 1}`}, files: map[string]string{"a": `{"a": [1]}`},
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		c := &harnessv1.TaskContract{}
		if proto.Unmarshal(encoded, c) != nil {
			return
		}
		before := proto.CloneOf(c)
		err := Validate(c)
		if !proto.Equal(before, c) {
			t.Error("the contract was changed")
		}
		if err != nil {
			var wrong *fault.FieldError
			if !errors.As(err, &wrong) || wrong.Field == "" || wrong.Message == "" {
				t.Errorf("the error is %#v", err)
			}
			return
		}
		ready, err := Compile(c)
		if err != nil {
			t.Fatalf("it is valid and does not compile: %v", err)
		}
		if err := Validate(ready.Proto()); err != nil {
			t.Fatalf("it is valid, and resolved it is not: %v", err)
		}
		ledger := NewLedger(ready.Proto())
		for _, o := range ready.Proto().GetRequiredOutputs() {
			seen, err := ready.Check(t.Context(), o.GetId(), w)
			if err != nil {
				t.Fatal(err)
			}
			Record(ledger, []*harnessv1.RequirementCoverage{seen}, 3)
		}
		isConsistent(t, ready.Proto(), ledger)
	})
}
