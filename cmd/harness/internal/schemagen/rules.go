package schemagen

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// forms are the schemas of fields that may be written in another form than their type.
var forms = map[protoreflect.FullName]func(object) object{
	"harness.v1.Predicate.schema":           schemaOrText,
	"harness.v1.ToolSpec.parameters_schema": schemaOrText,
	"harness.v1.Predicate.arguments": func(list object) object {
		return object{"oneOf": []any{list, object{"type": "object", "additionalProperties": object{"type": "string"}}}}
	},
	"harness.v1.AgentSpec.agents": subAgents,
	"harness.v1.SubAgent.agents":  subAgents,
	"harness.v1.SubAgent.contract": func(fields object) object {
		return object{"oneOf": []any{filePath("Path of a contract file, from this file's directory."), fields}}
	},
	"harness.v1.Predicate.kind": func(text object) object {
		text["pattern"] = `^[a-z][a-z0-9_]{0,31}$`
		return text
	},
	"harness.v1.Predicate.min": func(count object) object {
		count["minimum"], count["maximum"] = 1, contract.MaxCount
		return count
	},
	"harness.v1.SandboxConfig.network": network,
	"harness.v1.McpServer.network":     network,
	"harness.v1.McpServer.command": func(text object) object {
		description := text["description"]
		delete(text, "description")
		return object{"description": description, "oneOf": []any{text, object{
			"type": "array", "minItems": 1, "items": object{"type": "string"}, "description": "The program and its arguments; there are no args then.",
		}}}
	},
	// A rule's name may also match those of several tools.
	"harness.v1.ToolRule.name": func(text object) object {
		text["pattern"] = `^[A-Za-z0-9_*-]{1,64}$`
		return text
	},
	// Only approvals have it.
	"harness.v1.ToolRule.command": func(object) object { return object{"not": object{}} },
	"harness.v1.ToolDurability.tool": func(text object) object {
		text["pattern"] = `^[A-Za-z0-9_-]{1,64}$`
		return text
	},
	"harness.v1.ContextConfig.strategies": func(list object) object {
		list["items"], list["uniqueItems"] = object{"type": "string", "enum": []any{"clear", "externalize", "summarize", "drop"}}, true
		return list
	},
	"harness.v1.ContextConfig.recent_messages": func(count object) object {
		count["maximum"] = gateway.MaxRecentMessages
		return count
	},
	"harness.v1.ContextConfig.recent_share": func(object) object {
		return object{"type": "number", "exclusiveMinimum": 0, "maximum": gateway.MaxRecentShare}
	},
	"harness.v1.ToolDurability.preserved_fields": func(list object) object {
		list["maxItems"] = gateway.MaxPreserved
		return list
	},
	"harness.v1.ContextConfig.clear_tokens":        positive,
	"harness.v1.ContextConfig.externalize_tokens":  positive,
	"harness.v1.ToolDurability.externalize_tokens": positive,
	"harness.v1.ContextConfig.max_input_tokens":    positive,
	"harness.v1.SandboxConfig.level": func(level object) object {
		level["enum"] = []any{"auto", "off", "kernel", "full"}
		return level
	},
	// Only a person sets it.
	"harness.v1.SandboxConfig.unconfined": func(object) object { return object{"not": object{}} },
	// Only the gateway sets it.
	"harness.v1.SandboxConfig.least": func(object) object { return object{"not": object{}} },
}

// subAgents is the schema of a list whose items may be the names of built-in sub-agents.
func subAgents(list object) object {
	list["items"] = object{"oneOf": []any{object{"type": "string", "enum": builtins()}, list["items"]}}
	return list
}

func builtins() []any {
	var names []any
	for _, name := range tree.Builtins() {
		names = append(names, name)
	}
	return names
}

// fileFields are fields that only files have, by message.
var fileFields = map[string]object{
	"SubAgent": {"file": filePath("Path of a text file with the instructions, from this file's directory. Not together with instructions.")},
}

// positive is the schema of a number from 1.
func positive(count object) object {
	count["minimum"] = 1
	return count
}

// schemaOrText is the schema of a JSON Schema, as fields or as JSON text.
func schemaOrText(object) object { return object{"type": []any{"object", "boolean", "string"}} }

// rules are the constraints of messages beyond their fields.
var rules = map[string]object{
	"RequiredOutput":   {"required": []any{"id"}},
	"UserQuestion":     {"required": []any{"id", "question"}},
	"ArgumentMatch":    {"required": []any{"name", "pattern"}},
	"ToolRule":         {"required": []any{"name", "policy"}},
	"ToolSpec":         {"required": []any{"name", "description"}},
	"JitRule":          {"required": []any{"id", "when", "text"}},
	"ModeSpec":         {"required": []any{"name"}},
	"WorkItemTemplate": {"required": []any{"title"}},
	"ToolDurability":   {"required": []any{"tool", "durability"}},
	"GraphTask":        {"required": []any{"id", "agent", "prompt"}},
	"SubAgent":         {"required": []any{"name"}, "not": object{"required": []any{"instructions", "file"}}},
	"ContextProvider":  {"required": []any{"name"}, "oneOf": oneOf("text", "grpc")},
	"Hook": {
		"required": []any{"topic"}, "oneOf": oneOf("cel", "grpc", "command", "callback"),
		"dependentRequired": object{
			"cel": []any{"action"}, "action": []any{"cel"}, "reason": []any{"cel"}, "context": []any{"cel"}, "unconfined": []any{"command"},
		},
	},
	"Predicate": {"required": []any{"type"}, "allOf": []any{
		kind("FILE_EXISTS", []any{"path"}),
		kind("CONTAINS_TEXT", []any{"pattern"}, "in"),
		kind("TOOL_RESULT_SUCCESS", []any{"tool"}, "arguments"),
		kind("COMMAND_SUCCEEDS", []any{"command"}, "timeout"),
		kind("JSON_SCHEMA_VALID", []any{"in", "schema"}),
		kind("CUSTOM", nil, "cel", "grpc", "timeout"),
		kind("ARTIFACT_COUNT", []any{"kind"}, "min", "cited"),
		kind("ALWAYS_TRUE", nil),
	}},
}

// oneOf requires exactly one of some fields.
func oneOf(fields ...string) []any {
	var choices []any
	for _, field := range fields {
		choices = append(choices, object{"required": []any{field}})
	}
	return choices
}

// kind returns the fields of a predicate type: those that it must and those that it may
// have.
func kind(name string, must []any, may ...string) object {
	allowed := object{"type": true}
	for _, field := range must {
		allowed[field.(string)] = true
	}
	for _, field := range may {
		allowed[field] = true
	}
	then := object{"properties": allowed, "additionalProperties": false}
	if len(must) > 0 {
		then["required"] = must
	}
	if name == "CUSTOM" {
		then["oneOf"] = oneOf("cel", "grpc")
	}
	return object{"if": object{"properties": object{"type": object{"const": name}}}, "then": then}
}

// network is the schema of a network: none, all, hosts, or its fields.
func network(fields object) object {
	hosts := object{"type": "array", "items": object{"type": "string"}, "minItems": 1, "maxItems": sandbox.MaxHosts, "description": "The hosts that commands reach."}
	return object{"oneOf": []any{
		object{"type": "string", "enum": []any{"none", "all"}},
		hosts,
		object{"type": "object", "properties": object{"allow": hosts}, "required": []any{"allow"}, "additionalProperties": false},
		fields,
	}}
}
