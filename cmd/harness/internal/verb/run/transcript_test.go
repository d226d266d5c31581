package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

const typed = `turns:
  - {text: It is warm., calls: [{name: work_complete, arguments: {summary: done, output: {degrees: warm}}}]}
  - {calls: [{name: work_complete, arguments: {summary: done, output: {degrees: 21}}}]}
`

const typedAgent = "name: meter\noutput_schema: {type: object, required: [degrees], properties: {degrees: {type: number}}}\n"

// TestTypedOutput: the result of an agent with an output schema is JSON, in text output too,
// and the conversation is written to the requested file.
// TestTextOfASubAgentIsItsAnswer: one that answers in a line costs one turn, and its call does not fail.
func TestTextOfASubAgentIsItsAnswer(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, `turns:
  - {calls: [{name: explore, arguments: {prompt: Find the port.}}]}
  - {calls: [{name: work_complete, arguments: {summary: Done.}}]}
agents:
  explore: {turns: [{text: It is 8080.}]}
`)
	transcript := filepath.Join(t.TempDir(), "conversation.jsonl")
	args := append(p.Agent(t, "agents: [explore]\n"), "--transcript", transcript, "go")
	if got := harnesstest.Call(t, nil, "", p.Run(args...)...); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	written, err := os.ReadFile(transcript)
	if text := string(written); err != nil || !strings.Contains(text, "[explore: DONE; 1 turns, ") || !strings.Contains(text, "]\\n\\nIt is 8080.") {
		t.Errorf("%v, the transcript is\n%s", err, text)
	}
}

func TestTypedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, typed)
	dir := filepath.Dir(p.Script)
	agent := harnesstest.Write(t, filepath.Join(dir, "agent.yaml"), typedAgent)
	transcript := filepath.Join(dir, "conversation.jsonl")
	got := harnesstest.Call(t, nil, "", p.Run("--run-id", "r", "--agent", agent, "--output", "json", "--transcript", transcript, "measure")...)
	var result struct {
		Accepted   bool
		Output     map[string]float64
		Model      string
		Transcript string
	}
	if err := json.Unmarshal([]byte(got.Out), &result); err != nil || got.Code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", got.Code, err, got.Out, got.Err)
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
	if text := harnesstest.Call(t, nil, "", p.Run("--run-id", "s", "--agent", agent, "measure")...); text.Out != "{\"degrees\":21}\n" {
		t.Errorf("text output %q\n%s", text.Out, text.Err)
	}
}

func TestTranscriptNeedsAFile(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, typed)
	for path, want := range map[string]string{filepath.Dir(p.Script): "is a directory", filepath.Join(p.Workspace, "none", "a.jsonl"): "not found"} {
		got := harnesstest.Call(t, nil, "", p.Run("--transcript", path, "measure")...)
		if got.Code != 1 || !strings.Contains(got.Err, "--transcript: ") || !strings.Contains(got.Err, want) || strings.Count(strings.TrimSpace(got.Err), "\n") > 0 {
			t.Errorf("exit code %d: %s", got.Code, got.Err)
		}
	}
}

func TestOutputSchemaOfAnAgentFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harnesstest.Write(t, filepath.Join(dir, "schema.json"), `{"type": "object"}`)
	for text, want := range map[string]string{
		"output_schema: schema.json": "", "output_schema: {type: object}": "", `output_schema: '{"type":"array"}'`: "",
		"output_schema: {type: thing}": ":1:16: output_schema: ", "output_schema: [a]": "expected a JSON Schema", "output_schema: none.json": "cannot be read",
	} {
		got := harnesstest.Call(t, nil, "", "agent", "check", harnesstest.Write(t, filepath.Join(dir, "agent.yaml"), text+"\n"))
		if (want == "") != (got.Code == 0) || !strings.Contains(got.Out+got.Err, want) {
			t.Errorf("%s: exit code %d: %s%s", text, got.Code, got.Out, got.Err)
		}
	}
}
