package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const typed = `turns:
  - {text: It is warm., calls: [{name: work_complete, arguments: {summary: done, output: {degrees: warm}}}]}
  - {calls: [{name: work_complete, arguments: {summary: done, output: {degrees: 21}}}]}
`

const typedAgent = "name: meter\noutput_schema: {type: object, required: [degrees], properties: {degrees: {type: number}}}\n"

// TestTypedOutput: the result of an agent with an output schema is JSON, in text output too,
// and the conversation is written to the requested file.
func TestTypedOutput(t *testing.T) {
	p := newPlace(t, typed)
	dir := filepath.Dir(p.script)
	agent := write(t, filepath.Join(dir, "agent.yaml"), typedAgent)
	transcript := filepath.Join(dir, "conversation.jsonl")
	got := call(t, nil, "", p.run("--run-id", "r", "--agent", agent, "--output", "json", "--transcript", transcript, "measure")...)
	var result struct {
		Accepted   bool
		Output     map[string]float64
		Model      string
		Transcript string
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", got.code, err, got.out, got.err)
	}
	if !result.Accepted || result.Output["degrees"] != 21 || !strings.HasPrefix(result.Model, "script:") || result.Transcript != "/v1/runs/r/conversation?namespace=default" {
		t.Errorf("result %+v", result)
	}
	written, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	rejected := false
	for line := range strings.Lines(string(written)) {
		var m struct{ Role, Kind, Content string }
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Role == "" {
			t.Fatalf("%v: %s", err, line)
		}
		rejected = rejected || m.Kind == "STOP_REJECTED" && strings.Contains(m.Content, "degrees")
	}
	if !rejected || strings.Count(string(written), "\n") < 6 {
		t.Errorf("the transcript is\n%s", written)
	}
	if text := call(t, nil, "", p.run("--run-id", "s", "--agent", agent, "measure")...); text.out != "{\"degrees\":21}\n" {
		t.Errorf("text output %q\n%s", text.out, text.err)
	}
}

func TestTranscriptNeedsAFile(t *testing.T) {
	p := newPlace(t, typed)
	for path, want := range map[string]string{filepath.Dir(p.script): "is a directory", filepath.Join(p.workspace, "none", "a.jsonl"): "not found"} {
		got := call(t, nil, "", p.run("--transcript", path, "measure")...)
		if got.code != 1 || !strings.Contains(got.err, "--transcript: ") || !strings.Contains(got.err, want) || strings.Count(strings.TrimSpace(got.err), "\n") > 0 {
			t.Errorf("exit code %d: %s", got.code, got.err)
		}
	}
}

func TestOutputSchemaOfAnAgentFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "schema.json"), `{"type": "object"}`)
	for text, want := range map[string]string{
		"output_schema: schema.json": "", "output_schema: {type: object}": "", `output_schema: '{"type":"array"}'`: "",
		"output_schema: {type: thing}": ":1:16: output_schema: ", "output_schema: [a]": "expected a JSON Schema", "output_schema: none.json": "cannot be read",
	} {
		got := call(t, nil, "", "agent", "check", write(t, filepath.Join(dir, "agent.yaml"), text+"\n"))
		if (want == "") != (got.code == 0) || !strings.Contains(got.out+got.err, want) {
			t.Errorf("%s: exit code %d: %s%s", text, got.code, got.out, got.err)
		}
	}
}
