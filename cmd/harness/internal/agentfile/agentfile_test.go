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
		tools { name: "run_command" policy: TOOL_DECISION_ASK } tools { name: "*" policy: TOOL_DECISION_DENY }`, agent)
	parse(`budgets { turns: 40 tool_calls: 200 wall_clock { seconds: 5400 } tokens: 1000000 cost_usd: 2.5 }
		context { max_input_tokens: 64000 soft_threshold: 0.8 }
		stop { policy: STOP_POLICY_STRICT require_work_complete: false } continuation { enabled: false }`, config)
	if !proto.Equal(file.Agent, agent) || !proto.Equal(file.Config, config) {
		t.Errorf("got %v %v", file.Agent, file.Config)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "a.yaml:1: the file is empty",
		"- a":                                  "a.yaml:1: want fields",
		"name: x\ninstruction: y":              `a.yaml:2: unknown field "instruction"`,
		"budgets:\n  turns: 3\n  tool: 4":      `a.yaml:3: unknown field "tool" in budgets`,
		"budgets: {turns: many}":               `a.yaml:1: turns: "many": want a whole number`,
		"budgets: {turns: -1}":                 `a.yaml:1: turns: "-1": want a whole number`,
		"budgets: {wall_clock: 5}":             `a.yaml:1: wall_clock: "5": want a duration`,
		"budgets: {cost_usd: .nan}":            `a.yaml:1: cost_usd: ".nan": want a number`,
		"tools:\n- {name: a, policy: maybe}":   `a.yaml:2: policy: "maybe": want one of allow, ask, deny`,
		"tools:\n- {name: a}":                  `a.yaml:2: tools: a: policy is missing`,
		"tools:\n- {name: 'a b', policy: ask}": `a.yaml:2: tools: name "a b"`,
		"tools: x":                             "a.yaml:1: tools: want a list",
		"name: {a: b}":                         "a.yaml:1: name: want a single value",
		"name:":                                "a.yaml:1: name has no value",
		"name: a\nname: b":                     `a.yaml:2: `,
		"name: [":                              "a.yaml:1: ",
		"context:\n  soft_threshold: 80":       "a.yaml:2: context: soft_threshold 80",
		"stop: {max_turns: 0}":                 "a.yaml:1: stop: max_turns 0",
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
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := agentfile.Parse("a.yaml", data)
		if (file == nil || err != nil) != (err != nil) || err != nil && !strings.HasPrefix(err.Error(), "a.yaml:") {
			t.Fatalf("%v, %v", file, err)
		}
	})
}
