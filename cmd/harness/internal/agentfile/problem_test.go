package agentfile_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
)

// tree are the files that others name.
func tree(files map[string]string) agentfile.Reader {
	return func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
}

func clientTool(fields string) string {
	return "client_tools:\n- {name: a, description: b, " + fields + "}"
}

func output(predicate string) string {
	return "contract:\n  required_outputs:\n  - id: a\n    predicate: {" + predicate + "}"
}

// TestEachErrorNamesItsPlace holds the first problem of files that are wrong in one
// place.
func TestEachErrorNamesItsPlace(t *testing.T) {
	others := tree(map[string]string{
		"hooks.yaml": "# theirs\n- {topic: before_step, cel: turn > 1, action: skip}\n- {topic: before_step, cel: turn > one, action: skip}\n",
		"c.yaml":     "goal: g\nrequired_outputs:\n- {id: a}\n- {id: a}\n",
		"odd.yaml":   "a: [",
		"map.yaml":   "a: b",
		"empty.yaml": "",
		"blank.md":   " \n",
	})
	for text, want := range map[string]string{
		// The form.
		"":                             "a.yaml:1:1: the file is empty",
		"# nothing":                    "a.yaml:1:1: the file is empty",
		"- a":                          "a.yaml:1:1: expected a mapping",
		"name: [":                      "a.yaml:1:1: not YAML: ",
		"name: a\n  b: c":              "a.yaml:2:3: not YAML: ",
		"name: a\nmode: {x: ?, y}":     "a.yaml:2:1: not YAML: ",
		"mode: b\nname: *here":         "a.yaml:2:7: not YAML: unknown anchor 'here' referenced",
		"a:\n  - b\n  c: d":            "a.yaml:2:3: not YAML: ",
		"\ufeffname: [a]\r\nmode: [b]": "a.yaml:1:7: name: expected a single value",
		"name: a\r\njit:\r\n- id: a\r\n  text: b\r\n  when: >-\r\n    turn > 1 &&\r\n    zz\r\n": "a.yaml:7:5: jit[0].when: ",
		"name: a\n---\nname: b":     "a.yaml:2:1: unexpected second document",
		"name: \xff":                "a.yaml:1:1: not UTF-8",
		"name: x\ninstruction: y":   `a.yaml:2:1: unknown field "instruction"; did you mean instructions?`,
		"goal: x\nrequirements: []": `a.yaml:1:1: unknown field "goal"; expected one of name, instructions, model`,
		"required_outputs: []":      `a.yaml:1:1: unknown field "required_outputs": a contract belongs in a separate file`,
		"name: {a: b}":              "a.yaml:1:7: name: expected a single value",
		"name:":                     "a.yaml:1:1: name: missing value",
		"agents:\n- {name: a, description: b, file: none.md}":                     "a.yaml:2:35: file: the file cannot be read: none.md: file does not exist",
		"agents:\n- {name: a, description: b, file: blank.md}":                    "a.yaml:2:35: file: expected a text that is not empty",
		"agents:\n- {name: a, description: b, instructions: c, file: map.yaml}":   "a.yaml:2:46: file: the sub-agent has instructions too",
		"agents:\n- {name: a, description: b, file: map.yaml, contract: c.yaml}":  "c.yaml:4:8: agents[0].contract.required_outputs[1].id: duplicate id a",
		"agents:\n- {name: task, policy: [{name: a, policy: ask}, {name: b}]}":    "a.yaml:2:49: agents[0].policy[1].policy: missing: expected allow, ask or deny",
		"agents:\n- {name: task, policy: [{name: a, policy: ask, pattern: '('}]}": "a.yaml:2:57: agents[0].policy[0].pattern: invalid regular expression (RE2): missing closing ): (",
		"agents:\n- {name: task, agents: [{name: explore, agents: [task]}]}":      `a.yaml:2:50: agents[0].agents[0].agents[0].name: "task" would have itself as a sub-agent`,
		"name: !x y":                "a.yaml:1:7: name: unsupported tag !x",
		"name: a\nname: b":          `a.yaml:2:1: duplicate field "name"`,
		"{[a]: b}":                  "a.yaml:1:2: expected the name of a field",
		"name: a\n<<: {mode: b}":    `a.yaml:2:1: unknown field "<<"`,
		"fallback_models: [a:b, ~]": "a.yaml:1:24: fallback_models: expected a single value",

		// Values.
		"budgets:\n  turns: 3\n  tool: 4":                         `a.yaml:3:3: unknown field "tool" in budgets; expected one of turns, tool_calls`,
		"budgets: {turns: many}":                                  `a.yaml:1:18: turns: "many": expected a whole number`,
		"budgets: {turns: -1}":                                    `a.yaml:1:18: turns: "-1": expected a whole number`,
		"budgets: {turns: 1.5}":                                   `a.yaml:1:18: turns: "1.5": expected a whole number`,
		"budgets: {turns: '3'}":                                   `a.yaml:1:18: turns: "3": expected a whole number`,
		"budgets: {turns: 4294967296}":                            `a.yaml:1:18: turns: "4294967296": expected a whole number`,
		"budgets: {turns: 0}":                                     "a.yaml:1:18: budgets.turns: must be at least 1",
		"budgets: {tokens: 1e99}":                                 `a.yaml:1:19: tokens: "1e99": expected a whole number`,
		"budgets: {wall_clock: 5}":                                `a.yaml:1:23: wall_clock: "5": expected a duration`,
		"budgets: {cost_usd: .nan}":                               `a.yaml:1:21: cost_usd: ".nan": expected a number`,
		"budgets: {cost_usd: 0}":                                  "a.yaml:1:21: budgets.cost_usd: ",
		"autonomous: maybe":                                       `a.yaml:1:13: autonomous: "maybe": expected true or false`,
		"autonomous: yes":                                         `a.yaml:1:13: autonomous: "yes": expected true or false`,
		"approval_timeout: 7d":                                    `a.yaml:1:19: approval_timeout: "7d": expected a duration`,
		"answer_timeout: 0s":                                      `a.yaml:1:17: answer_timeout: "0s": expected a duration`,
		"answer_timeout: 100000h":                                 "a.yaml:1:17: answer_timeout: ",
		"model: gpt":                                              `a.yaml:1:8: model: "gpt": must be PROVIDER:NAME`,
		"fallback_models: [openai:a, b]":                          "a.yaml:1:29: fallback_models[1]: ",
		"context:\n  soft_threshold: 80":                          "a.yaml:2:19: context.soft_threshold: 80: must be in (0, 1]",
		"context: {blocking_threshold: 0}":                        "a.yaml:1:31: context.blocking_threshold: ",
		"context: {soft_threshold: 0.9, blocking_threshold: 0.5}": "a.yaml:1:27: context.soft_threshold: ",
		"context: {soft_threshold: 0.4}":                          "a.yaml:1:27: context.soft_threshold: 0.4: must be greater than target, which is 0.5",
		"context:\n  target: 0.9":                                 "a.yaml:2:11: context.target: 0.9: must be less than soft_threshold, which is 0.8",
		"context: {recent_share: 0.7}":                            "a.yaml:1:25: context.recent_share: 0.7: must be in (0, 0.6]",
		"context: {strategies: [drop, drop]}":                     "a.yaml:1:30: context.strategies[1]: duplicate strategy DROP",
		"context: {strategies: [shorten]}":                        "a.yaml:1:24: context.strategies[0]: SHORTEN: must be CLEAR, EXTERNALIZE, SUMMARIZE or DROP",
		"context: {strategies: [squeeze]}":                        `a.yaml:1:24: strategies: "squeeze": expected one of clear, externalize, summarize, drop`,
		"context: {durability: [{tool: a}]}":                      "a.yaml:1:24: context.durability[0].durability: ",
		"context: {summarizer: {model: gpt}}":                     `a.yaml:1:31: context.summarizer.model: "gpt": must be PROVIDER:NAME`,
		"context: {summarizer: {model: 'grpc:a'}}":                `a.yaml:1:31: context.summarizer.model: "grpc:a": must be PROVIDER:NAME or grpc:HOST:PORT`,
		"context: {summary_wait: 2h}":                             "a.yaml:1:25: context.summary_wait: 2h0m0s: must be from 1s to 1h0m0s",
		"stop: {max_turns: 0}":                                    "a.yaml:1:19: stop.max_turns: must be at least 1",
		"reasoning: {effort: huge}":                               `a.yaml:1:21: effort: "huge": expected one of none, minimal, low, medium, high, xhigh, max`,
		"reasoning: {efort: low}":                                 `a.yaml:1:13: unknown field "efort" in reasoning; did you mean effort?`,
		"reasoning:\n  show: maybe":                               `a.yaml:2:9: show: "maybe": expected true or false`,
		"reasoning: high":                                         `a.yaml:1:12: reasoning: expected a mapping`,
		"stop: {policy: gentle}":                                  `a.yaml:1:16: policy: "gentle": expected one of interactive, strict`,
		"stall: {threshold: 1}":                                   "a.yaml:1:20: stall.threshold: ",
		"doom_loop: {max: 1}":                                     `a.yaml:1:13: unknown field "max" in doom_loop`,
		"guidance: [jit]":                                         "a.yaml:1:11: guidance: expected a mapping",

		// Tool rules.
		"tools: x":                                            "a.yaml:1:8: tools: expected a list",
		"tools:\n- {name: a, policy: maybe}":                  `a.yaml:2:21: policy: "maybe": expected one of allow, ask, deny`,
		"tools:\n- {name: a}":                                 "a.yaml:2:3: tools[0].policy: missing",
		"tools:\n- {name: 'a b', policy: ask}":                `a.yaml:2:10: tools[0].name: "a b"`,
		"tools:\n- {name: a, policy: ask, pattern: '('}":      "a.yaml:2:35: tools[0].pattern: ",
		"tools:\n- {name: a, policy: ask, when: args.x == }":  "a.yaml:2:41: tools[0].when: ",
		"tools:\n- {name: a, policy: ask, when: 'tool == x'}": "a.yaml:2:41: tools[0].when: ",
		"tools:\n- {name: a, policy: ask, when: tool}":        "a.yaml:2:32: tools[0].when: ",

		// Client tools.
		"client_tools: {name: a}":                                                   "a.yaml:1:15: client_tools: expected a list",
		"client_tools: [{name: a}]":                                                 "a.yaml:1:16: client_tools[0].description: missing",
		"client_tools: [{}]":                                                        "a.yaml:1:16: client_tools[0].name: missing",
		"client_tools:\n- {name: a b}":                                              `a.yaml:2:10: client_tools[0].name: "a b"`,
		"client_tools:\n- {name: '*'}":                                              `a.yaml:2:10: client_tools[0].name: "*"`,
		clientTool("origin: client"):                                                `a.yaml:2:29: unknown field "origin" in client_tools[0]; expected one of name, description`,
		clientTool("parameters: {}"):                                                `a.yaml:2:29: unknown field "parameters" in client_tools[0]`,
		clientTool("parameters_schema: []"):                                         "a.yaml:2:48: parameters_schema: expected a JSON Schema",
		clientTool("parameters_schema: '{'"):                                        "a.yaml:2:48: client_tools[0].parameters_schema: not valid JSON",
		clientTool("parameters_schema: '[]'"):                                       "a.yaml:2:48: client_tools[0].parameters_schema: expected a JSON object",
		clientTool("parameters_schema: {type: string}"):                             "a.yaml:2:48: client_tools[0].parameters_schema: type is string, expected object",
		clientTool("parameters_schema: {type: object, required: 3}"):                "a.yaml:2:48: client_tools[0].parameters_schema: ",
		clientTool("parameters_schema: {const: .inf}"):                              `a.yaml:2:56: parameters_schema: ".inf": not a JSON value`,
		clientTool("annotations: {read: true}"):                                     `a.yaml:2:43: unknown field "read" in client_tools[0].annotations; did you mean reads?`,
		clientTool("parameters_schema: &s {properties: *s}"):                        "a.yaml:2:48: parameters_schema: too large, or contains itself",
		clientTool("parameters_schema: {type: object, type: object}"):               `a.yaml:2:63: duplicate field "type"`,
		clientTool("annotations: {}") + "\n- {name: a, description: c}":             `a.yaml:3:10: client_tools[1].name: duplicate name "a"`,
		"client_tools: [" + strings.Repeat("{name: a, description: b}, ", 65) + "]": "a.yaml:1:15: client_tools: 65 tools",

		// Work items.
		"work_items: true":                                  "a.yaml:1:13: work_items: expected a mapping",
		"work_items: {items: []}":                           `a.yaml:1:14: unknown field "items" in work_items; expected one of enabled, templates`,
		"work_items:\n  templates: [{title: a}]":            "a.yaml:2:14: work_items.templates: work items are not enabled",
		"work_items: {enabled: true, templates: [{id: a}]}": "a.yaml:1:41: work_items.templates[0].title: ",
		"work_items:\n  enabled: true\n  templates:\n  - {id: x, title: a}\n  - {id: x, title: b}": "a.yaml:5:10: work_items.templates[1].id: ",
		"work_items: {enabled: true, templates: [{title: a, priority: urgent}]}":                   `a.yaml:1:62: priority: "urgent": expected one of high, medium, low`,

		// Just-in-time rules.
		"jit: {when: a}":                                                           "a.yaml:1:6: jit: expected a list, or the path of a file",
		"jit: [{id: a, text: b}]":                                                  "a.yaml:1:7: jit[0].when: ",
		"jit: [{id: a b, when: 'true', text: b}]":                                  "a.yaml:1:12: jit[0].id: ",
		"jit: [{id: approaching_turn_limit, when: 'true', text: b}]":               "a.yaml:1:12: jit[0].id: ",
		"jit:\n- {id: a, when: 'true', text: b}\n- {id: a, when: 'true', text: b}": "a.yaml:3:8: jit[1].id: ",
		"jit: [{id: a, when: turn > x, text: b}]":                                  "a.yaml:1:28: jit[0].when: ",
		"jit: [{id: a, when: 'turn > 1 && \"\" == ''''', text: b}]\nmode: x":       "a.yaml:2:7: mode: unknown mode",
		"jit: [{id: a, when: \"mode == \\\"x\\\" && x\", text: b}]":                "a.yaml:1:22: jit[0].when: ",
		"jit: [{id: a, when: \"\\\"x\\\" == \\\"y\\\" && zz\", text: b}]":          "a.yaml:1:40: jit[0].when: ",
		"jit: [{id: a, when: '''x'' == ''y'' && zz', text: b}]":                    "a.yaml:1:40: jit[0].when: ",
		"jit:\n- id: a\n  text: b\n  when: |\n    turn > 1 &&\n      zz > 1\n":     "a.yaml:6:7: jit[0].when: ",
		"jit:\n- id: a\n  text: b\n  when: >-\n    turn > 1 &&\n    zz > 1\n":      "a.yaml:6:5: jit[0].when: ",
		"jit:\n- id: a\n  text: b\n  when: turn > 1 &&\n    zz > 1\n":              "a.yaml:5:5: jit[0].when: ",
		"jit: [{id: a, when: &w 'zz', text: b}]":                                   "a.yaml:1:25: jit[0].when: ",
		"jit: [{id: a, when: 'true', text: 'b {{ zz }}'}]":                         "a.yaml:1:41: jit[0].text: ",
		"jit: [{id: a, when: 'true', text: b, one: true}]":                         `a.yaml:1:38: unknown field "one" in jit[0]; did you mean once?`,

		// Hooks.
		"hooks: [{cel: 'true', action: skip}]":                                                         "a.yaml:1:9: hooks[0].topic: ",
		"hooks: [{topic: before_tool, cel: 'true'}]":                                                   `a.yaml:1:17: topic: "before_tool": expected one of before_plan`,
		"hooks:\n- {topic: before_step}":                                                               "a.yaml:2:3: hooks[0]: ",
		"hooks:\n- {topic: before_step, cel: 'true', action: deny}":                                    "a.yaml:2:45: hooks[0].action: ",
		"hooks:\n- {topic: before_step, cel: 'tru', action: skip}":                                     "a.yaml:2:30: hooks[0].cel: undeclared reference",
		"hooks:\n- {topic: before_step, grpc: nowhere}":                                                "a.yaml:2:30: hooks[0].grpc: ",
		"hooks:\n- {topic: before_step, command: x, timeout: 1h}":                                      "a.yaml:2:45: hooks[0].timeout: ",
		"hooks:\n- {topic: before_step, command: x, tools: [a]}":                                       "a.yaml:2:43: hooks[0].tools",
		"hooks:\n- {id: h, topic: before_step, command: x}\n- {id: h, topic: before_step, command: x}": "a.yaml:3:8: hooks[1].id: ",
		"hooks:\n- {topic: before_tool_call, action: deny, cel: 'args.all(a, args.all(b, args.all(c, args.all(d, args[a] == args[b] && args[c] == args[d]))))'}": "a.yaml:2:",

		// Modes and providers.
		"mode: dance":                                        `a.yaml:1:7: mode: unknown mode "dance": must be one of plan, execute`,
		"mode: look\nmodes: [{name: loook}]":                 "a.yaml:1:7: mode: unknown mode \"look\": must be one of plan, execute, loook",
		"modes: [{name: plan}]":                              "a.yaml:1:16: modes[0].name: ",
		"modes: [{name: A}]":                                 "a.yaml:1:16: modes[0].name: ",
		"modes:\n- {name: a}\n- {name: a}":                   "a.yaml:3:10: modes[1].name: ",
		"context_providers: [{name: a}]":                     "a.yaml:1:21: context_providers[0]",
		"context_providers: [{name: a, text: b, grpc: x:1}]": "a.yaml:1:21: context_providers[0]",

		// The contract.
		"contract: []":          "a.yaml:1:11: contract: expected the path of a contract file, or its fields",
		"contract: {}":          "a.yaml:1:11: contract",
		"contract: {stored: x}": `a.yaml:1:12: unknown field "stored" in contract`,
		"contract: {required_outputs: [{id: a b}]}":                                            "a.yaml:1:36: contract.required_outputs[0].id: ",
		"contract: {goal: g, required_outputs: [{id: a}], acceptability: {min_confidence: 2}}": "a.yaml:1:82: contract.acceptability.min_confidence: ",
		output("type: EXISTS, path: a"):                                                        `a.yaml:4:23: type: "EXISTS": expected one of FILE_EXISTS, CONTAINS_TEXT`,
		output("path: a"):                                                                      "a.yaml:4:16: contract.required_outputs[0].predicate",
		output("type: FILE_EXISTS, path: ''"):                                                  "a.yaml:4:42: contract.required_outputs[0].predicate.path: ",
		output("type: FILE_EXISTS, path: ../a"):                                                "a.yaml:4:42: contract.required_outputs[0].predicate.path: ",
		output("type: FILE_EXISTS, path: /etc/passwd"):                                         "a.yaml:4:42: contract.required_outputs[0].predicate.path: ",
		output("type: FILE_EXISTS, path: a, command: b"):                                       "a.yaml:4:54: contract.required_outputs[0].predicate.command: ",
		output("type: CONTAINS_TEXT, pattern: '('"):                                            "a.yaml:4:47: contract.required_outputs[0].predicate.pattern: ",
		output("type: CONTAINS_TEXT, in: goal, pattern: a"):                                    "a.yaml:4:42: contract.required_outputs[0].predicate.in: ",
		output("type: CONTAINS_TEXT, in: 'file:../a', pattern: a"):                             "a.yaml:4:42: contract.required_outputs[0].predicate.in: ",
		output("type: CUSTOM, cel: turn > x"):                                                  "a.yaml:4:43: contract.required_outputs[0].predicate.cel: ",
		output("type: CUSTOM"):                                                                 "a.yaml:4:16: contract.required_outputs[0].predicate",
		output("type: JSON_SCHEMA_VALID, in: 'file:a', schema: {type: 3}"):                     "a.yaml:4:64: contract.required_outputs[0].predicate.schema: ",
		output("type: TOOL_RESULT_SUCCESS, tool: a, arguments: {path: '('}"):                   "a.yaml:4:71: contract.required_outputs[0].predicate.arguments[0].pattern: ",
		output("type: TOOL_RESULT_SUCCESS, tool: a, arguments: [{name: x, pattern: '('}]"):     "a.yaml:4:84: contract.required_outputs[0].predicate.arguments[0].pattern: ",
		output("type: TOOL_RESULT_SUCCESS, tool: a, arguments: x"):                             "a.yaml:4:64: arguments: expected a list of {name, pattern}",

		// Files that are named.
		"hooks: hooks.yaml":          "hooks.yaml:3:36: hooks[1].cel: ",
		"contract: c.yaml":           "c.yaml:4:8: contract.required_outputs[1].id: ",
		"contract: ./c.yaml":         "c.yaml:4:8: contract.required_outputs[1].id: ",
		"contract: none.yaml":        "a.yaml:1:11: contract: the file cannot be read: none.yaml: file does not exist",
		"contract: ''":               `a.yaml:1:11: contract: "": expected the path of a file`,
		"contract: 5":                `a.yaml:1:11: contract: "5": expected the path of a file`,
		"contract: odd.yaml":         "odd.yaml:1:1: not YAML: ",
		"jit: map.yaml":              "map.yaml:1:1: jit: expected a list",
		"jit: empty.yaml":            "empty.yaml:1:1: the file is empty",
		"modes: map.yaml\nname: [a]": "a.yaml:2:7: name: expected a single value",
	} {
		_, err := agentfile.Parse("a.yaml", []byte(text), others)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestErrorsNameOnlyWhatCanBeSet: not every action of compaction is a strategy.
func TestErrorsNameOnlyWhatCanBeSet(t *testing.T) {
	_, err := agentfile.Parse("a.yaml", []byte("context: {strategies: [squeeze]}"), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "expected one of clear, externalize, summarize, drop") {
		t.Errorf("got %v", err)
	}
}

func TestAllProblemsOfAFileAreFound(t *testing.T) {
	text := `nam: x
tools: [{name: a, policy: ask, pattern: "("}]
jit: [{id: a, when: zz, text: b}, {id: a, whn: x}]
hooks: hooks.yaml
mode: dance
budgets: {turns: 0}
stop: {max_turns: 0, policy: odd}
stall: {threshold: 1}
contract: {goal: g, required_outputs: [{id: a, predicate: {type: FILE_EXISTS, path: ../a}}]}
`
	_, err := agentfile.Parse("dir/a.yaml", []byte(text), tree(map[string]string{"dir/hooks.yaml": "- {topic: before_step, cel: zz, action: skip}"}))
	var problems agentfile.Problems
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var places []string
	for _, p := range problems {
		places = append(places, strings.Join(strings.SplitN(p.Error(), ":", 4)[:3], ":"))
	}
	want := "dir/a.yaml:1:1 dir/a.yaml:2:41 dir/a.yaml:3:43 dir/a.yaml:5:7 dir/a.yaml:6:18 dir/a.yaml:7:30 dir/a.yaml:8:20 dir/a.yaml:9:85 dir/hooks.yaml:1:29"
	if got := strings.Join(places, " "); got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, problems)
	}
	if first := err.Error(); !strings.HasPrefix(first, "dir/a.yaml:1:1: ") || !strings.HasSuffix(first, "(and 8 more: harness agent check lists them)") {
		t.Error(first)
	}
}
