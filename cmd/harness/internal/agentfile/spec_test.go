package agentfile_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// The agent file and the contract file that the documentation shows together.
const (
	shownContract = `
goal: Write the report
required_outputs:
  - {id: report, description: The report exists, predicate: {type: FILE_EXISTS, path: report.md}}
  - {id: cites, description: It cites a source, predicate: {type: CONTAINS_TEXT, in: "file:report.md", pattern: "\\[1\\]"}}
  - {id: tests, description: Tests pass, predicate: {type: COMMAND_SUCCEEDS, command: "make test"}}
`
	shownAgent = `
name: coder
instructions: |
  You fix bugs.
model: openai:gpt-5
work_items: {enabled: true}
mode: execute
tools: [{name: run_command, policy: ask}]
budgets: {turns: 40, tool_calls: 200, cost_usd: 2.5}
context: {max_input_tokens: 64000, soft_threshold: 0.8}
jit: [{id: test-first, when: "turn == 2 && writes > 0", text: "Run the tests before you go on."}]
hooks: [{topic: before_tool_call, cel: "tool == 'run_command' && args.command.contains('rm -rf')", action: deny, reason: "not here"}]
contract: contract.yaml
reasoning: {effort: high}
`
)

// holds compares a message with its text form.
func holds(t *testing.T, got proto.Message, want string) {
	t.Helper()
	wanted := got.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal([]byte(want), wanted); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, wanted) {
		t.Errorf("\n got %v\nwant %v", got, wanted)
	}
}

func TestAgentReadsTheContractNextToIt(t *testing.T) {
	file, err := agentfile.Parse("x/agent.yaml", []byte(shownAgent), tree(map[string]string{"x/contract.yaml": shownContract}))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, file.Agent, `name: "coder" instructions: "You fix bugs.\n" model: "openai:gpt-5" mode: "execute"
		reasoning { effort: EFFORT_HIGH }
		tools { name: "run_command" policy: TOOL_DECISION_ASK }
		jit { id: "test-first" when: "turn == 2 && writes > 0" text: "Run the tests before you go on." }
		hooks { topic: HOOK_TOPIC_BEFORE_TOOL_CALL cel: "tool == 'run_command' && args.command.contains('rm -rf')"
			action: HOOK_ACTION_DENY reason: "not here" }`)
	holds(t, file.Config, `budgets { turns: 40 tool_calls: 200 cost_usd: 2.5 } context { max_input_tokens: 64000 soft_threshold: 0.8 }
		work_items { enabled: true }`)
	holds(t, file.Contract, `goal: "Write the report"
		required_outputs { id: "report" description: "The report exists" predicate { type: PREDICATE_TYPE_FILE_EXISTS path: "report.md" } }
		required_outputs { id: "cites" description: "It cites a source"
			predicate { type: PREDICATE_TYPE_CONTAINS_TEXT in: "file:report.md" pattern: "\\[1\\]" } }
		required_outputs { id: "tests" description: "Tests pass" predicate { type: PREDICATE_TYPE_COMMAND_SUCCEEDS command: "make test" } }`)
}

func TestListsInFilesOfTheirOwn(t *testing.T) {
	file, err := agentfile.Parse("agent.yaml", []byte(`
jit: rules/jit.yaml
hooks: hooks.yaml
modes: /etc/modes.yaml
mode: review
contract: {goal: g, requirements: [It is short, It is true]}
`), tree(map[string]string{
		"rules/jit.yaml":  "- {id: a, when: writes > 1, text: '{{ writes }} writes', once: false}",
		"hooks.yaml":      "- {id: h, topic: agent_stop, command: ./check, timeout: 20s, on_failure: closed}\n- {topic: on_complete, callback: true}",
		"/etc/modes.yaml": "- {name: review, read_only: true}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, file.Agent, `mode: "review" modes { name: "review" read_only: true }
		jit { id: "a" when: "writes > 1" text: "{{ writes }} writes" once: false }
		hooks { id: "h" topic: HOOK_TOPIC_AGENT_STOP command: "./check" timeout { seconds: 20 } on_failure: HOOK_FAILURE_CLOSED }
		hooks { topic: HOOK_TOPIC_ON_COMPLETE callback: true }`)
	holds(t, file.Contract, `goal: "g" requirements: "It is short" requirements: "It is true"`)
}

func TestTheRestOfTheFields(t *testing.T) {
	file, err := agentfile.Parse("agent.yaml", []byte(`
work_items:
  enabled: true
  templates: [{id: audit, title: Check it, priority: high, role: control, notes: all of it}]
context_providers: [{name: House rules, text: Be kind.}, {name: Team, grpc: "127.0.0.1:7"}]
reasoning: {effort: none, show: false}
stall: {threshold: 5}
doom_loop: {enabled: false, max_corrections: 1}
guidance: {enabled: false, jit: false}
tools: [{name: "*", policy: deny, when: 'tool == "x"', pattern: ^a, reason: no}]
contract:
  required_outputs:
    - id: doc
      predicate:
        type: JSON_SCHEMA_VALID
        in: file:out.json
        schema: {type: object, required: [b, a], properties: {a: {const: 12345678901234567890}, b: {type: string}}}
    - {id: text, predicate: {type: JSON_SCHEMA_VALID, in: artifact:w1, schema: '{"type": "array"}'}}
    - {id: read, predicate: {type: TOOL_RESULT_SUCCESS, tool: read_file, arguments: {path: '\.csv$', deep.er: x}}}
    - {id: list, predicate: {type: TOOL_RESULT_SUCCESS, tool: read_file, arguments: [{name: path, pattern: a}]}}
    - {id: own, optional: true, predicate: {type: CUSTOM, grpc: "127.0.0.1:7", timeout: 2s}}
    - {id: runs, predicate: {type: COMMAND_SUCCEEDS, command: true}}
  questions: [{id: q, question: "For whom?", required: true}]
  acceptability: {max_unknowns: 1, min_confidence: 0, allow_partial: true}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, file.Agent, `tools { name: "*" policy: TOOL_DECISION_DENY when: "tool == \"x\"" pattern: "^a" reason: "no" }
		work_item_templates { id: "audit" title: "Check it" priority: WORK_ITEM_PRIORITY_HIGH role: ARTIFACT_ROLE_CONTROL notes: "all of it" }
		context_providers { name: "House rules" text: "Be kind." } context_providers { name: "Team" grpc: "127.0.0.1:7" } reasoning { effort: EFFORT_NONE show: false }`)
	holds(t, file.Config, `work_items { enabled: true } stall { threshold: 5 } doom_loop { enabled: false max_corrections: 1 }
		guidance { enabled: false jit: false }`)
	holds(t, file.Contract, `required_outputs { id: "doc" predicate { type: PREDICATE_TYPE_JSON_SCHEMA_VALID in: "file:out.json"
			schema: '{"type":"object","required":["b","a"],"properties":{"a":{"const":12345678901234567890},"b":{"type":"string"}}}' } }
		required_outputs { id: "text" predicate { type: PREDICATE_TYPE_JSON_SCHEMA_VALID in: "artifact:w1" schema: '{"type": "array"}' } }
		required_outputs { id: "read" predicate { type: PREDICATE_TYPE_TOOL_RESULT_SUCCESS tool: "read_file"
			arguments { name: "path" pattern: "\\.csv$" } arguments { name: "deep.er" pattern: "x" } } }
		required_outputs { id: "list" predicate { type: PREDICATE_TYPE_TOOL_RESULT_SUCCESS tool: "read_file" arguments { name: "path" pattern: "a" } } }
		required_outputs { id: "own" optional: true predicate { type: PREDICATE_TYPE_CUSTOM grpc: "127.0.0.1:7" timeout { seconds: 2 } } }
		required_outputs { id: "runs" predicate { type: PREDICATE_TYPE_COMMAND_SUCCEEDS command: "true" } }
		questions { id: "q" question: "For whom?" required: true }
		acceptability { max_unknowns: 1 min_confidence: 0 allow_partial: true }`)
}

// TestARefusalOfTheGatewayIsShownAtItsPlace takes errors as they come over gRPC and
// from packages of this process.
func TestARefusalOfTheGatewayIsShownAtItsPlace(t *testing.T) {
	file, err := agentfile.Parse("x/agent.yaml", []byte(shownAgent), tree(map[string]string{"x/contract.yaml": shownContract}))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{fault.Invalid("spec.agent.hooks[0].cel", "no"), "x/agent.yaml:12:40: hooks[0].cel: no"},
		{fault.Invalid("spec.agent.hooks[0].nothing", "no"), "x/agent.yaml:12:9: hooks[0].nothing: no"},
		{fault.Invalid("spec.config.budgets.turns", "no"), "x/agent.yaml:9:18: budgets.turns: no"},
		{fault.Invalid("spec.contract.required_outputs[1].predicate.pattern", "no"), "x/contract.yaml:5:113: contract.required_outputs[1].predicate.pattern: no"},
		{fault.Invalid("spec.goal", "no"), "spec.goal: no"},
		{fault.In("spec.agent", &fault.FieldError{Field: "hooks[0].cel", Message: "no", Line: 1, Column: 9}), "x/agent.yaml:12:49: hooks[0].cel: no"},
		{errors.New("no"), "no"},
	} {
		st, known := fault.Status(test.err)
		if known {
			if got := file.Locate(st.Err()); message(got) != test.want {
				t.Errorf("over gRPC: got %v, want %s", got, test.want)
			}
		}
		if got := file.Locate(test.err); got.Error() != test.want {
			t.Errorf("got %v, want %s", got, test.want)
		}
	}
	file.Forget("spec.contract")
	if err := fault.Invalid("spec.contract.goal", "no"); !errors.Is(file.Locate(err), err) {
		t.Error("what a flag has set is blamed on the file")
	}
}

func message(err error) string {
	if problems := (agentfile.Problems)(nil); errors.As(err, &problems) {
		return err.Error()
	}
	return status.Convert(err).Message()
}

func TestContractFileReplacesTheContractOfTheAgent(t *testing.T) {
	file, err := agentfile.Parse("agent.yaml", []byte("contract: {goal: theirs, requirements: [a]}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.ParseContract("other.yaml", []byte("{goal: ours, requirements: [b, c]}")); err != nil {
		t.Fatal(err)
	}
	holds(t, file.Contract, `goal: "ours" requirements: "b" requirements: "c"`)
	if got := file.Locate(fault.Invalid("spec.contract.requirements[1]", "no")).Error(); got != "other.yaml:1:32: contract.requirements[1]: no" {
		t.Error(got)
	}
	err = agentfile.New().ParseContract("other.yaml", []byte("required_outputs:\n- {id: a, predicate: {type: FILE_EXISTS, path: /a}}"))
	if err == nil || !strings.HasPrefix(err.Error(), "other.yaml:2:48: contract.required_outputs[0].predicate.path: ") {
		t.Error(err)
	}
}

func TestKindOfAFileFollowsFromItsFields(t *testing.T) {
	for text, want := range map[string]agentfile.Kind{
		shownContract:                           agentfile.Contract,
		"{goal: g, requirements: [a]}":          agentfile.Contract,
		"name: a":                               agentfile.Agent,
		"- {topic: on_error, command: a}":       agentfile.Hooks,
		"- {id: a, when: turn > 1, text: b}":    agentfile.Jit,
		"- {name: a}":                           agentfile.Modes,
		"turns: [{text: hello}]":                agentfile.Script,
		"tasks: [{id: a, agent: b, prompt: c}]": agentfile.Graph,
	} {
		kind, file, err := agentfile.CheckText("a.yaml", []byte(text), "", nil)
		if kind != want || err != nil || (file == nil) != (kind == agentfile.Script) {
			t.Errorf("%q: %s, %v", text, kind, err)
		}
	}
	for text, want := range map[string]string{
		"turns:\n  - {txt: a}":                  "a.yaml:2:3: unknown field",
		"- {topic: on_error, command: a, b: c}": "a.yaml:1:33: unknown field",
		"- {id: a, when: turn > z, text: b}":    "a.yaml:1:24: jit[0].when: ",
		"requirements: [a, [b]]":                "a.yaml:1:19: requirements: expected a single value",
		"- {name: a, tool: [b]}":                "a.yaml:1:13: unknown field \"tool\" in modes[0]; did you mean tools?",
	} {
		if _, _, err := agentfile.CheckText("a.yaml", []byte(text), "", nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
