package agentfile_test

import (
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
	file, err := agentfile.Parse("agent.yaml", []byte(whole))
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

func TestErrorsNameFileLineAndColumn(t *testing.T) {
	tool := func(fields string) string { return "client_tools:\n- {name: a, description: b, " + fields + "}" }
	for text, want := range map[string]string{
		"":                                     "a.yaml:1: the file is empty",
		"- a":                                  "a.yaml:1:1: want fields",
		"name: x\ninstruction: y":              `a.yaml:2:1: unknown field "instruction"`,
		"budgets:\n  turns: 3\n  tool: 4":      `a.yaml:3:3: unknown field "tool" in budgets`,
		"budgets: {turns: many}":               `a.yaml:1:18: turns: "many": want a whole number`,
		"budgets: {turns: -1}":                 `a.yaml:1:18: turns: "-1": want a whole number`,
		"budgets: {wall_clock: 5}":             `a.yaml:1:23: wall_clock: "5": want a duration`,
		"budgets: {cost_usd: .nan}":            `a.yaml:1:21: cost_usd: ".nan": want a number`,
		"tools:\n- {name: a, policy: maybe}":   `a.yaml:2:21: policy: "maybe": want one of allow, ask, deny`,
		"tools:\n- {name: a}":                  `a.yaml:2:3: tools: a: policy is missing`,
		"tools:\n- {name: 'a b', policy: ask}": `a.yaml:2:3: tools: name "a b"`,
		"tools: x":                             "a.yaml:1:8: tools: want a list",
		"name: {a: b}":                         "a.yaml:1:7: name: want a single value",
		"name:":                                "a.yaml:1:1: name has no value",
		"name: a\nname: b":                     `a.yaml:2:1: field "name" stands here twice`,
		"name: [":                              "a.yaml:1: ",
		"context:\n  soft_threshold: 80":       "a.yaml:2:19: context: soft_threshold 80",
		"stop: {max_turns: 0}":                 "a.yaml:1:19: stop: max_turns 0",

		"autonomous: maybe":                                                         `a.yaml:1:13: autonomous: "maybe": want true or false`,
		"approval_timeout: 7d":                                                      `a.yaml:1:19: approval_timeout: "7d": want a duration`,
		"answer_timeout: 0s":                                                        `a.yaml:1:17: answer_timeout: "0s": want a duration`,
		"client_tools: {name: a}":                                                   "a.yaml:1:15: client_tools: want a list",
		"client_tools: [{name: a}]":                                                 "a.yaml:1:16: client_tools: a: description is missing",
		"client_tools: [{}]":                                                        "a.yaml:1:16: client_tools: name is missing",
		"client_tools:\n- {name: a b}":                                              `a.yaml:2:10: client_tools: name "a b"`,
		"client_tools:\n- {name: '*'}":                                              `a.yaml:2:10: client_tools: name "*"`,
		tool("origin: client"):                                                      `a.yaml:2:29: unknown field "origin" in client_tools`,
		tool("parameters: {}"):                                                      `a.yaml:2:29: unknown field "parameters" in client_tools`,
		tool("parameters_schema: []"):                                               "a.yaml:2:29: parameters_schema: want a JSON Schema",
		tool("parameters_schema: '{'"):                                              `a.yaml:2:48: client_tools: tool "a": parameters_schema: not JSON`,
		tool("parameters_schema: '[]'"):                                             `a.yaml:2:48: client_tools: tool "a": parameters_schema: not a JSON object`,
		tool("parameters_schema: {type: string}"):                                   `a.yaml:2:48: client_tools: tool "a": parameters_schema: describes string`,
		tool("parameters_schema: {type: object, required: 3}"):                      `a.yaml:2:48: client_tools: tool "a": parameters_schema: `,
		tool("parameters_schema: {const: .inf}"):                                    `a.yaml:2:56: parameters_schema: ".inf": not a value that JSON has`,
		tool("annotations: {read: true}"):                                           `a.yaml:2:43: unknown field "read" in annotations`,
		tool("parameters_schema: &s {properties: *s}"):                              "a.yaml:2:48: parameters_schema: too large, or it holds itself",
		tool("parameters_schema: {type: object, type: object}"):                     `a.yaml:2:63: `,
		tool("annotations: {}") + "\n- {name: a, description: again}":               `a.yaml:3:3: client_tools: "a" stands here twice`,
		"client_tools: [" + strings.Repeat("{name: a, description: b}, ", 65) + "]": "a.yaml:1:15: client_tools: 65 tools; at most 64",
	} {
		_, err := agentfile.Parse("a.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("a: &x {name: *x}"))
	f.Add([]byte("tools: &t [*t]"))
	f.Add([]byte("client_tools: [{name: a, description: b, parameters_schema: &s {properties: {x: [*s]}}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := agentfile.Parse("a.yaml", data)
		if (file == nil || err != nil) != (err != nil) || err != nil && !strings.HasPrefix(err.Error(), "a.yaml:") {
			t.Fatalf("%v, %v", file, err)
		}
	})
}
