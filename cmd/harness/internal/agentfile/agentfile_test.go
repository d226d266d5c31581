package agentfile_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const whole = `
name: coder
instructions: |
  You fix bugs.
model: openai:gpt-5
fallback_models: [openai:a, "openai:b"]
tools: [{name: run_command, policy: ask}, {name: "*", policy: DENY}]
budgets: {turns: 40, tool_calls: 200, wall_clock: 1h30m, tokens: 1000000, cost_usd: 2.5}
context: {max_input_tokens: 64000, soft_threshold: 0.8}
stop: {policy: strict, require_work_complete: false}
continuation: {enabled: false}
autonomous: true
approval_timeout: 48h
answer_timeout: 90m
client_tools:
  - name: lookup_order
    description: Finds an order by its number.
    parameters_schema:
      type: object
      properties: {id: {type: integer, minimum: 1}, note: {type: string, default: "10"}}
      required: [id]
    annotations: {reads: true, idempotent: true, durability: replayable, preserved_fields: [id]}
  - {name: ping, description: "Says hello.", parameters_schema: '{"type": "object", "additionalProperties": false}'}
  - {name: bare, description: Takes anything.}
`

func TestAWholeFile(t *testing.T) {
	file, err := agentfile.Parse("agent.yaml", []byte(whole), nil)
	if err != nil {
		t.Fatal(err)
	}
	agent, config := &harnessv1.AgentSpec{}, &harnessv1.LoopConfig{}
	parse := func(text string, into proto.Message) {
		if err := prototext.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	parse(`name: "coder" instructions: "You fix bugs.\n" model: "openai:gpt-5" fallback_models: "openai:a" fallback_models: "openai:b"
		tools { name: "run_command" policy: TOOL_DECISION_ASK } tools { name: "*" policy: TOOL_DECISION_DENY } autonomous: true`, agent)
	parse(`budgets { turns: 40 tool_calls: 200 wall_clock { seconds: 5400 } tokens: 1000000 cost_usd: 2.5 }
		context { max_input_tokens: 64000 soft_threshold: 0.8 }
		stop { policy: STOP_POLICY_STRICT require_work_complete: false } continuation { enabled: false }
		tools { approval_timeout { seconds: 172800 } answer_timeout { seconds: 5400 } }`, config)
	if !proto.Equal(file.Agent, agent) || !proto.Equal(file.Config, config) {
		t.Errorf("got %v %v", file.Agent, file.Config)
	}
	want := &harnessv1.ClientTools{}
	parse(`tools { name: "lookup_order" description: "Finds an order by its number."
			parameters_schema: '{"type":"object","properties":{"id":{"type":"integer","minimum":1},"note":{"type":"string","default":"10"}},"required":["id"]}'
			annotations { reads: true idempotent: true durability: DURABILITY_REPLAYABLE preserved_fields: "id" } }
		tools { name: "ping" description: "Says hello." parameters_schema: '{"type": "object", "additionalProperties": false}' }
		tools { name: "bare" description: "Takes anything." parameters_schema: '{"type":"object"}' }`, want)
	if got := (&harnessv1.ClientTools{Tools: file.ClientTools}); !proto.Equal(got, want) {
		t.Errorf("client tools:\n got %v\nwant %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("a: &x {name: *x}"))
	f.Add([]byte("tools: &t [*t]"))
	f.Add([]byte("client_tools: [{name: a, description: b, parameters_schema: &s {properties: {x: [*s]}}}]"))
	f.Add([]byte("hooks: [{topic: before_tool_call, cel: \"args.x.\\\"(\", action: deny}]"))
	f.Add([]byte("jit:\n- id: a\n  when: >-\n    turn &&\n\n     1\n  text: '{{ '' }}'"))
	f.Add([]byte("contract: {required_outputs: [{id: a, predicate: {type: JSON_SCHEMA_VALID, in: file:a, schema: {x: 1}}}]}"))
	f.Add([]byte("work_items: {enabled: true, templates: [{title: a}]}\nmode: m\nmodes: [{name: m}]"))
	f.Add([]byte("tasks: [{id: a, agent: explore, prompt: b, after: [a]}, {id: a, agent: b c, prompt: d}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r") +
			strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
		for _, kind := range append(agentfile.Kinds(), "") {
			_, file, err := agentfile.CheckText("a.yaml", data, kind, nil)
			if err == nil {
				continue
			}
			var problems agentfile.Problems
			if file != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("%v, %v", file, err)
			}
			for _, p := range problems {
				if p.File != "a.yaml" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" || strings.Contains(p.Message, "\n") {
					t.Fatalf("%q in %d lines", p, lines)
				}
			}
		}
	})
}
