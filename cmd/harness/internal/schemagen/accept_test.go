package schemagen_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/schemas"
)

// published are the schemas as they are published, compiled.
func published(t *testing.T) map[agentfile.Kind]*jsonschema.Schema {
	t.Helper()
	made := map[agentfile.Kind]*jsonschema.Schema{}
	for _, kind := range agentfile.Kinds() {
		text, err := schemas.Of(string(kind))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("mem:///schema.json", doc); err != nil {
			t.Fatal(err)
		}
		if made[kind], err = c.Compile("mem:///schema.json"); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	return made
}

// value is a YAML file as an editor sees it.
func value(t *testing.T, text []byte) any {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSchemasAcceptTheExamples(t *testing.T) {
	all := published(t)
	files, err := filepath.Glob(root + "examples/agents/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range append(files, root+"examples/agent.yaml", root+"examples/script.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := agentfile.Check(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := all[kind].Validate(value(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaAndLoaderAgree takes each file to both of them.
func TestSchemaAndLoaderAgree(t *testing.T) {
	all := published(t)
	for kind, texts := range map[agentfile.Kind]map[string]bool{
		agentfile.Agent: {
			"name: a": true,
			"work_items: {enabled: true, templates: [{title: a, priority: low}]}":                    true,
			"hooks: [{topic: on_error, grpc: 'a:1', on_failure: open, timeout: 1m30s}]":              true,
			"tools: [{name: '*', policy: deny, when: 'tool == \"a\"', reason: b}]":                   true,
			"context_providers: [{name: a, text: b}]":                                                true,
			"contract: {requirements: [a]}":                                                          true,
			"stall: {threshold: 2}":                                                                  true,
			"context: {soft_threshold: 1, blocking_threshold: 1.0}":                                  true,
			"context: {target: 0.3, recent_messages: 0, recent_share: 0.6, summary_wait: 1h}":        true,
			"context: {strategies: [drop, clear], summarizer: {model: 'grpc:a:1'}}":                  true,
			"context: {durability: [{tool: a, durability: ephemeral, preserved_fields: [b]}]}":       true,
			"client_tools: [{name: a, description: b, parameters_schema: {type: object}, usage: c}]": true,
			"client_tools: [{name: a, description: b, parameters_schema: '{\"type\": \"object\"}'}]": true,
			"mode: look\nmodes: [{name: look, read_only: true, tools: [a]}]":                         true,
			"budgets: {wall_clock: 1.5h, cost_usd: 0.5, tokens: 3}":                                  true,
			"sandbox: {level: kernel, network: all, read: [/srv]}":                                   true,
			"sandbox: {network: [example.com, '*.example.org:8443']}":                                true,
			"sandbox: {network: {mode: hosts, hosts: [example.com]}}":                                true,
			"agents: [explore, {name: a, description: b, instructions: c, agents: [task]}]":          true,
			"agents: [{name: a, description: b, instructions: c, contract: {requirements: [d]}}]":    true,
			"agents: [{name: a, description: b, instructions: c, file: d.md}]":                       false,
			"agents: [{description: b, instructions: c}]":                                            false,
			"sandbox: {network: example.com}":                                                        false,
			"sandbox: {network: []}":                                                                 false,
			"sandbox: {network: [1]}":                                                                false,
			"nam: a":                                                                                 false,
			"name: [a]":                                                                              false,
			"budgets: {turns: 1.5}":                                                                  false,
			"budgets: {wall_clock: 5}":                                                               false,
			"stop: {max_turns: 0}":                                                                   false,
			"stop: {policy: gentle}":                                                                 false,
			"stall: {threshold: 1}":                                                                  false,
			"context: {soft_threshold: 0}":                                                           false,
			"context: {soft_threshold: 1.5}":                                                         false,
			"context: {target: 1}":                                                                   false,
			"context: {target: 0}":                                                                   false,
			"context: {recent_share: 0.7}":                                                           false,
			"context: {recent_messages: 1001}":                                                       false,
			"context: {clear_tokens: 0}":                                                             false,
			"context: {max_input_tokens: 0}":                                                         false,
			"context: {strategies: [shorten]}":                                                       false,
			"context: {strategies: [drop, drop]}":                                                    false,
			"context: {durability: [{tool: a}]}":                                                     false,
			"context: {durability: [{tool: 'a b', durability: ephemeral}]}":                          false,
			"context: {durability: [{tool: a, durability: ephemeral, externalize_tokens: 0}]}":       false,
			"autonomous: 'true'":                                                                     false,
			"tools: [{name: a}]":                                                                     false,
			"tools: [{name: a b, policy: ask}]":                                                      false,
			"client_tools: [{name: a}]":                                                              false,
			"client_tools: [{name: a, description: b, origin: client}]":                              false,
			"work_items: {items: []}":                                                                false,
			"work_items: {enabled: true, templates: [{id: a}]}":                                      false,
			"context_providers: [{name: a}]":                                                         false,
			"contract: {stored: {}}":                                                                 false,
			"contract: []":                                                                           false,
			"jit: {id: a}":                                                                           false,
		},
		agentfile.Contract: {
			"requirements: [a]":           true,
			"required_outputs: [{id: a}]": true,
			"required_outputs: [{id: a, predicate: {type: ALWAYS_TRUE}}]":                                                      true,
			"required_outputs: [{id: a, predicate: {type: CONTAINS_TEXT, pattern: a}}]":                                        true,
			"required_outputs: [{id: a, predicate: {type: COMMAND_SUCCEEDS, command: a, timeout: 5m}}]":                        true,
			"required_outputs: [{id: a, predicate: {type: TOOL_RESULT_SUCCESS, tool: a, arguments: {b: c}}}]":                  true,
			"required_outputs: [{id: a, predicate: {type: TOOL_RESULT_SUCCESS, tool: a, arguments: [{name: b, pattern: c}]}}]": true,
			"required_outputs: [{id: a, predicate: {type: JSON_SCHEMA_VALID, in: 'file:a', schema: {type: array}}}]":           true,
			"required_outputs: [{id: a, predicate: {type: CUSTOM, cel: turn > 1}}]":                                            true,
			"required_outputs: [{id: a, predicate: {type: CUSTOM, grpc: 'a:1', timeout: 1s}}]":                                 true,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: finding}}]":                                    true,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: finding, min: 200, cited: true}}]":             true,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT}}]":                                                   false,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: A b}}]":                                        false,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: finding, min: 0}}]":                            false,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: finding, min: 201}}]":                          false,
			"required_outputs: [{id: a, predicate: {type: ARTIFACT_COUNT, kind: finding, cited: some}}]":                       false,
			"required_outputs: [{id: a, predicate: {type: FILE_EXISTS, path: a, min: 1}}]":                                     false,
			"required_outputs: [{id: a b}]":                                                      false,
			"required_outputs: [{description: a}]":                                               false,
			"required_outputs: [{id: a, predicate: {type: EXISTS}}]":                             false,
			"required_outputs: [{id: a, predicate: {type: FILE_EXISTS}}]":                        false,
			"required_outputs: [{id: a, predicate: {type: FILE_EXISTS, path: a, command: b}}]":   false,
			"required_outputs: [{id: a, predicate: {type: CONTAINS_TEXT, pattern: a, path: b}}]": false,
			"required_outputs: [{id: a, predicate: {type: JSON_SCHEMA_VALID, in: 'file:a'}}]":    false,
			"required_outputs: [{id: a, predicate: {type: CUSTOM}}]":                             false,
			"required_outputs: [{id: a, predicate: {type: CUSTOM, cel: turn > 1, grpc: 'a:1'}}]": false,
			"required_outputs: [{id: a, predicate: {type: ALWAYS_TRUE, path: a}}]":               false,
			"required_outputs: [{id: a, predicate: {path: a}}]":                                  false,
			"{requirements: [a], acceptability: {min_confidence: 1.1}}":                          false,
			"{requirements: [a], questions: [{id: b}]}":                                          false,
		},
		agentfile.Jit: {
			"[{id: a, when: turn > 1, text: b, once: false}]": true,
			"[{id: a, text: b}]":                              false,
			"[{id: a, when: turn > 1}]":                       false,
			"[{id: a b, when: turn > 1, text: b}]":            false,
			"id: a":                                           false,
		},
		agentfile.Hooks: {
			"[{topic: before_tool_call, cel: turn > 1, action: deny, reason: a, tools: [b]}]": true,
			"[{topic: on_complete, callback: true}]":                                          true,
			"[{topic: on_complete}]":                                                          false,
			"[{command: a}]":                                                                  false,
			"[{topic: never, command: a}]":                                                    false,
			"[{topic: before_step, cel: turn > 1, command: a, action: skip}]":                 false,
			"[{topic: before_step, cel: turn > 1}]":                                           false,
			"[{topic: before_step, command: a, action: skip}]":                                false,
		},
		agentfile.Graph: {
			"tasks: [{id: a, agent: explore, prompt: b}, {id: b, title: c, agent: mine, prompt: d, after: [a]}]": true,
			`{"tasks": [{"id": "a", "agent": "explore", "prompt": "b"}]}`:                                        true,
			"tasks: []":                                      false,
			"task: [{id: a, agent: b, prompt: c}]":           false,
			"[{id: a, agent: b, prompt: c}]":                 false,
			"tasks: [{agent: b, prompt: c}]":                 false,
			"tasks: [{id: a, prompt: c}]":                    false,
			"tasks: [{id: a, agent: b}]":                     false,
			"tasks: [{id: a b, agent: c, prompt: d}]":        false,
			"tasks: [{id: a, agent: b, prompt: c, when: d}]": false,
		},
		agentfile.Modes: {
			"[{name: a, description: b, read_only: true}]": true,
			"[{name: A}]":          false,
			"[{description: a}]":   false,
			"[{name: a, tool: b}]": false,
		},
	} {
		for text, want := range texts {
			_, _, loaded := agentfile.CheckText("a.yaml", []byte(text), kind, nil)
			valid := all[kind].Validate(value(t, []byte(text)))
			if (loaded == nil) != want || (valid == nil) != want {
				t.Errorf("%s %q: want %v; the loader says %v, the schema %v", kind, text, want, loaded, valid)
			}
		}
	}
}
