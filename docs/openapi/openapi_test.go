package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"github.com/harnessmesh/harnessmesh/docs/openapi"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// TestTheDescriptionIsMadeOfItsSourceAndTheProtos so that neither is changed alone.
func TestTheDescriptionIsMadeOfItsSourceAndTheProtos(t *testing.T) {
	source, err := os.ReadFile("source.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document schema
	if err := yaml.Unmarshal(source, &document); err != nil {
		t.Fatal(err)
	}
	made := &schemas{made: schema{}, comments: comments(t)}
	made.all()
	own := document["components"].(schema)["schemas"].(schema)
	for name := range made.made {
		if own[name] != nil {
			t.Errorf("%s is written by hand and made", name)
		}
	}
	maps.Copy(own, made.made)
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(document); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), openapi.Document) {
		t.Error("openapi.json is not what source.yaml and the protos make: go test ./docs/openapi -update")
	}
}

func (s *schemas) all() {
	for _, m := range []protoreflect.ProtoMessage{
		&harnessv1.StartRunResponse{}, &harnessv1.DeleteRunResponse{}, &harnessv1.SendInputResponse{}, &harnessv1.InterruptRunResponse{},
		&harnessv1.ResumeRunResponse{}, &harnessv1.CancelRunResponse{}, &harnessv1.GetStateResponse{}, &harnessv1.GetConversationResponse{}, &harnessv1.GetContextResponse{},
		&harnessv1.ListPendingResponse{}, &harnessv1.Run{}, &harnessv1.RunSpec{}, &harnessv1.WaitingInput{}, &harnessv1.Delta{}, &harnessv1.Attached{},
		&harnessv1.GetPromptsResponse{}, &harnessv1.SetPromptResponse{}, &harnessv1.GetProfileResponse{}, &harnessv1.ResetProfileResponse{},
		&harnessv1.StartSignInResponse{}, &harnessv1.FinishSignInResponse{}, &harnessv1.GetSignInResponse{}, &harnessv1.SignOutResponse{},
	} {
		d := m.ProtoReflect().Descriptor()
		s.answer(d, string(d.Name()))
	}
	s.delta()
	s.answer((&harnessv1.HarnessResult{}).ProtoReflect().Descriptor(), "Result")
	result := s.made["Result"].(schema)
	result["properties"].(schema)["run_id"] = schema{"type": "string", "description": "The run."}
	result["required"] = append(result["required"].([]any), "run_id")
	s.event()
	s.made["Content"] = schema{
		"description": "A text, or a reference to one that was too large to travel: GET /v1/runs/{run_id}/blobs/{digest} has it.",
		"anyOf": []any{schema{"type": "string"}, schema{
			"type": "object", "required": []any{"blob"}, "properties": schema{"blob": ref("BlobRef")},
		}},
	}
	s.start()
	for _, m := range []protoreflect.ProtoMessage{&harnessv1.SignInSubject{}, &harnessv1.SignInReturn{}} {
		s.request(m.ProtoReflect().Descriptor())
	}
}

// delta makes the schema of a piece of text or of reasoning, which have the same fields.
func (s *schemas) delta() {
	made := s.made["Delta"].(schema)
	made["description"] = "A piece of the model's text, or of its reasoning, while it is being written. It is not stored; the event model.response has the whole text."
	properties := made["properties"].(schema)
	delete(properties, "reasoning")
	delete(properties, "reasoning_offset")
	delete(properties, "tool_output") // its lines have another schema
	delete(properties, "alert")       // so have these
	made["required"] = slices.DeleteFunc(made["required"].([]any), func(name any) bool { return properties[name.(string)] == nil })
	described(properties["offset"].(schema), "Bytes of this try's text, or of its reasoning, that came before.")
	described(properties["text"].(schema), "The text or the reasoning.")
}

// start makes the schema of a request to start a run: a spec with ids, whose agent
// has the sections of an agent file.
func (s *schemas) start() {
	spec := (&harnessv1.RunSpec{}).ProtoReflect().Descriptor()
	body := s.made[s.request(spec)].(schema)
	delete(s.made, "RunSpecInput")
	properties := body["properties"].(schema)
	properties["goal"] = schema{"type": "string", "minLength": 1, "description": s.comments["harness.v1.RunSpec.goal"]}
	properties["namespace"] = schema{"type": []any{"string", "null"}, "description": "The namespace, unless the query names it."}
	properties["run_id"] = schema{"type": []any{"string", "null"}, "description": s.comments["harness.v1.StartRunRequest.run_id"]}
	properties["request_id"] = ref("RequestID")
	properties["agent"] = described(orNull(ref("AgentInput")), s.comments["harness.v1.RunSpec.agent"])
	body["required"] = []any{"goal"}
	s.made["StartRun"] = body

	agent := s.made["AgentSpecInput"].(schema)
	delete(s.made, "AgentSpecInput")
	agent["description"] = "The persona, with all that an agent file may say."
	in := agent["properties"].(schema)
	config := s.made["LoopConfigInput"].(schema)["properties"].(schema)
	for _, name := range []string{"budgets", "stop", "continuation", "stall", "doom_loop", "guidance", "context", "sandbox"} {
		in[name] = config[name]
	}
	tools := s.made["ToolConfigInput"].(schema)["properties"].(schema)
	for _, name := range []string{"approval_timeout", "approval_timeout_ms", "answer_timeout", "answer_timeout_ms"} {
		in[name] = tools[name]
	}
	in["client_tools"], in["contract"] = properties["client_tools"], properties["contract"]
	in["work_items"] = orNull(schema{"type": "object", "additionalProperties": false, "properties": schema{
		"enabled": schema{"type": []any{"boolean", "null"}}, "templates": in["work_item_templates"],
	}})
	s.made["AgentInput"] = agent
}

// comments returns the comments of messages and fields in the protos, by full name; buf
// formats them: one statement a line, comments on separate lines.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../proto/harness/v1/*.proto")
	if err != nil || len(files) == 0 {
		t.Fatal("no protos", err)
	}
	message, field := regexp.MustCompile(`^message (\w+)`), regexp.MustCompile(`^(?:optional |repeated )?[\w.]+ (\w+) = \d+`)
	found := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var block []string
		in := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if comment, ok := strings.CutPrefix(line, "//"); ok {
				block = append(block, strings.TrimSpace(comment))
				continue
			}
			if m := message.FindStringSubmatch(line); m != nil {
				in = "harness.v1." + m[1]
				found[in] = strings.Join(block, " ")
			} else if m := field.FindStringSubmatch(line); m != nil {
				found[in+"."+m[1]] = strings.Join(block, " ")
			}
			block = nil
		}
	}
	return found
}

// TestNoDescriptionIsCutAtAComma, as YAML does in braces to a text without quotes.
func TestNoDescriptionIsCutAtAComma(t *testing.T) {
	var document any
	if err := json.Unmarshal(openapi.Document, &document); err != nil {
		t.Fatal(err)
	}
	var walk func(value any, path string)
	walk = func(value any, path string) {
		switch value := value.(type) {
		case map[string]any:
			for name, v := range value {
				if v == nil {
					t.Errorf("%s: %q has no value", path, name)
				}
				walk(v, path+"/"+name)
			}
		case []any:
			for _, v := range value {
				walk(v, path)
			}
		}
	}
	walk(document, "")
}
