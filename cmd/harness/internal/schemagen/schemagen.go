// Package schemagen generates the JSON Schemas (2020-12) of the files of a run from the
// descriptors and the comments of the protos: the type of a field determines its schema,
// the comment its description and bounds.
//
// A schema is for editors. It accepts every file that the loader accepts, except for
// numbers and booleans instead of texts, enum names in the other case, and YAML aliases.
// The loader checks more: whether an expression compiles, whether ids are unique.
package schemagen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	_ "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1" // registers the descriptors
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// address is the URL of the published schemas.
const address = "https://raw.githubusercontent.com/harnessmesh/harnessmesh/main/schemas/"

// Generate returns the schemas of all kinds of files by file name, generated from the
// protos in a directory.
func Generate(protos fs.FS) (map[string][]byte, error) {
	found, err := readComments(protos)
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{}
	for _, kind := range agentfile.Kinds() {
		g := &generator{comments: found, defs: object{}}
		var root object
		switch kind {
		case agentfile.Agent:
			root = g.agent()
		case agentfile.Contract:
			root = g.message(descriptor("TaskContract"))
		case agentfile.Jit:
			root = g.list("AgentSpec.jit")
		case agentfile.Hooks:
			root = g.list("AgentSpec.hooks")
		case agentfile.Modes:
			root = g.list("AgentSpec.modes")
		case agentfile.Graph:
			tasks := g.field(fieldOf("harness.v1.RunSpec.graph"))
			tasks["minItems"] = 1
			root = object{"type": "object", "additionalProperties": false, "required": []any{"tasks"}, "properties": object{"tasks": tasks}}
		case agentfile.Script:
			made["script.json"] = script.Schema
			continue
		}
		name := string(kind) + ".json"
		root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		root["$id"] = address + name
		root["title"] = "harnessmesh " + titles[kind]
		if len(g.defs) > 0 {
			root["$defs"] = g.defs
		}
		if made[name], err = encode(root); err != nil {
			return nil, err
		}
	}
	return made, nil
}

var titles = map[agentfile.Kind]string{
	agentfile.Agent: "agent file", agentfile.Contract: "contract file", agentfile.Jit: "just-in-time rules",
	agentfile.Hooks: "hooks", agentfile.Modes: "modes", agentfile.Graph: "graph file",
}

// object is a JSON object. Encoding sorts its fields, so that equal schemas have equal
// bytes.
type object map[string]any

func encode(root object) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return out.Bytes(), err
}

type generator struct {
	comments comments
	defs     object
}

func descriptor(message string) protoreflect.MessageDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("harness.v1." + protoreflect.FullName(message))
	if err != nil {
		panic(fmt.Sprintf("schemagen: there is no message %s", message))
	}
	return d.(protoreflect.MessageDescriptor)
}

func fieldOf(path protoreflect.FullName) protoreflect.FieldDescriptor {
	message := path.Parent()
	f := descriptor(strings.TrimPrefix(string(message), "harness.v1.")).Fields().ByName(path.Name())
	if f == nil {
		panic(fmt.Sprintf("schemagen: there is no field %s", path))
	}
	return f
}

// agent returns the schema of an agent file.
func (g *generator) agent() object {
	properties := object{}
	for _, field := range agentfile.Fields() {
		f := fieldOf(field.Proto)
		schema := g.field(f)
		switch field.Name {
		case "contract":
			schema = object{"description": g.comments[string(f.FullName())], "oneOf": []any{
				filePath("Path of a contract file, from this file's directory."), g.ref(f.Message()),
			}}
		case "mcp":
			list := g.field(f)
			delete(list, "description")
			list["items"] = object{"oneOf": []any{g.ref(f.Message()), filePath("Path of a file with the key mcpServers.")}}
			schema = object{"description": g.comments[string(f.FullName())], "oneOf": []any{
				list, object{"type": "object", "additionalProperties": g.ref(f.Message()), "description": "The servers by name."},
				filePath("Path of a file with the key mcpServers, from this file's directory."),
			}}
		case "tool_services":
			list := g.field(f)
			schema = object{"description": "Programs with tools in any language, which serve harness.v1.ToolService.", "oneOf": []any{
				object{"type": "array", "items": list["items"], "maxItems": list["maxItems"]},
				object{"type": "object", "description": "The services, or their addresses HOST:PORT, by name.",
					"additionalProperties": object{"oneOf": []any{g.ref(f.Message()), object{"type": "string", "minLength": 1}}}},
			}}
		case "jit", "hooks", "modes":
			list := g.field(f)
			delete(list, "description")
			schema = object{"description": g.comments[string(f.FullName())], "oneOf": []any{
				filePath("Path of a file that holds the list, from this file's directory."), list,
			}}
		case "work_items":
			schema = object{
				"type": "object", "additionalProperties": false, "description": g.comments[string(f.FullName())],
				"properties": object{
					"enabled":   g.field(fieldOf("harness.v1.WorkItemConfig.enabled")),
					"templates": g.field(fieldOf("harness.v1.AgentSpec.work_item_templates")),
				},
			}
		case "client_tools":
			schema["description"] = "Tools that the client of the run runs itself, at most 64."
			schema["maxItems"] = 64
		case "tools":
			schema["maxItems"] = 64
		case "fallback_models":
			schema["maxItems"] = 8
		}
		properties[field.Name] = schema
	}
	return object{
		"type": "object", "additionalProperties": false, "properties": properties,
		"description": "The agent: its identity, its permissions and its goals.",
	}
}

func filePath(description string) object {
	return object{"type": "string", "minLength": 1, "description": description}
}

func (g *generator) list(field protoreflect.FullName) object {
	return g.field(fieldOf("harness.v1." + field))
}

// field returns the schema of a field's value, with its comment as description.
func (g *generator) field(f protoreflect.FieldDescriptor) object {
	comment := g.comments[string(f.FullName())]
	if f.IsMap() {
		return object{"type": "object", "additionalProperties": object{"type": "string"}, "description": comment}
	}
	schema := g.value(f)
	if f.IsList() {
		schema = object{"type": "array", "items": schema}
		if m := atMost.FindStringSubmatch(comment); m != nil {
			schema["maxItems"] = number(m[1])
		}
	} else {
		bounds(schema, comment)
	}
	if form, ok := forms[f.FullName()]; ok {
		schema = form(schema)
	}
	schema["description"] = comment
	return schema
}

func (g *generator) value(f protoreflect.FieldDescriptor) object {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Duration" {
			return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
		}
		return g.ref(f.Message())
	case protoreflect.EnumKind:
		var names []any
		for i := range f.Enum().Values().Len() {
			if v := f.Enum().Values().Get(i); v.Number() != 0 {
				names = append(names, agentfile.EnumName(v))
			}
		}
		return object{"type": "string", "enum": names}
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	case protoreflect.DoubleKind:
		return object{"type": "number", "minimum": 0}
	case protoreflect.Uint32Kind:
		return object{"type": "integer", "minimum": 0, "maximum": 1<<32 - 1}
	case protoreflect.Uint64Kind:
		return object{"type": "integer", "minimum": 0}
	}
	panic(fmt.Sprintf("schemagen: %s has a kind that no file can hold", f.FullName()))
}

// ref returns a reference to the schema of a message, which is defined once.
func (g *generator) ref(m protoreflect.MessageDescriptor) object {
	name := string(m.Name())
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = object{}
		g.defs[name] = g.message(m)
	}
	return object{"$ref": "#/$defs/" + name}
}

func (g *generator) message(m protoreflect.MessageDescriptor) object {
	properties := object{}
	for i := range m.Fields().Len() {
		if f := m.Fields().Get(i); agentfile.Writable(f) {
			properties[string(f.Name())] = g.field(f)
		}
	}
	maps.Copy(properties, fileFields[string(m.Name())])
	schema := object{
		"type": "object", "additionalProperties": false, "properties": properties,
		"description": g.comments[string(m.FullName())],
	}
	for key, value := range rules[string(m.Name())] {
		schema[key] = value
	}
	return schema
}

// Bounds in comments.
var (
	atMost   = regexp.MustCompile(`at most (\d+)(?: of|[.,;]|$)`)
	from     = regexp.MustCompile(`, from (\d+)\.`)
	matches  = regexp.MustCompile(`Matches (\S+)\.(?: |$)`)
	interval = regexp.MustCompile(`in ([\[(])(\d+), (\d+)([\])])`)
)

func bounds(schema object, comment string) {
	switch schema["type"] {
	case "integer", "number":
		if m := from.FindStringSubmatch(comment); m != nil {
			schema["minimum"] = number(m[1])
		}
		if m := interval.FindStringSubmatch(comment); m != nil {
			delete(schema, "minimum")
			schema[map[string]string{"[": "minimum", "(": "exclusiveMinimum"}[m[1]]] = number(m[2])
			schema[map[string]string{"]": "maximum", ")": "exclusiveMaximum"}[m[4]]] = number(m[3])
		}
	case "string":
		if m := matches.FindStringSubmatch(comment); m != nil {
			schema["pattern"] = "^" + m[1] + "$"
		}
	}
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic("schemagen: " + err.Error())
	}
	return n
}
