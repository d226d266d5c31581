package openapi_test

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

type schema = map[string]any

// schemas builds the schemas of messages: responses under the message's name,
// requests under that name with the suffix Input.
type schemas struct {
	made     schema
	comments map[string]string
}

func ref(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

func orNull(s schema) schema { return schema{"anyOf": []any{s, schema{"type": "null"}}} }

func described(s schema, text string) schema {
	if text != "" {
		s["description"] = text
	}
	return s
}

// answer builds the schema of a message as package eventjson writes it, and of the
// messages in it, without opaque fields, which are in no response. If only is not empty,
// it names the fields to include; fields of a oneof are not required.
func (s *schemas) answer(m protoreflect.MessageDescriptor, name string, only ...protoreflect.Name) {
	if s.made[name] != nil {
		return
	}
	object := described(schema{"type": "object"}, s.comments[string(m.FullName())])
	s.made[name] = object
	properties, required := schema{}, []any{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if len(only) > 0 && !slices.Contains(only, f.Name()) || is(f, "harness.v1.Opaque") {
			continue
		}
		key := string(f.Name())
		if is(f, "google.protobuf.Duration") {
			key += "_ms"
		}
		properties[key] = described(s.answered(f), s.comments[string(f.FullName())])
		if one := f.ContainingOneof(); (one == nil || one.IsSynthetic()) && !ofTrees(f) {
			required = append(required, key)
		}
	}
	object["properties"], object["required"] = properties, required
}

// ofTrees reports whether a field is left out where it is empty, as in runs without
// sub-agents.
func ofTrees(f protoreflect.FieldDescriptor) bool {
	switch f.FullName() {
	case "harness.v1.PendingCall.run_id", "harness.v1.Delta.run_id", "harness.v1.Event.run_id", "harness.v1.Event.parent_run_id",
		"harness.v1.Event.call_id", "harness.v1.Event.agent", "harness.v1.Event.depth", "harness.v1.Event.offset":
		return true
	}
	return false
}

func (s *schemas) answered(f protoreflect.FieldDescriptor) schema {
	var one schema
	switch {
	case f.IsMap():
		return schema{"type": "object", "additionalProperties": s.answered(f.MapValue())}
	case is(f, "harness.v1.Content") && (f.Name() == "arguments" || f.Name() == "output"):
		return schema{}
	case is(f, "harness.v1.Content"):
		s.answer((&harnessv1.BlobRef{}).ProtoReflect().Descriptor(), "BlobRef")
		one = ref("Content")
	case is(f, "google.protobuf.Timestamp"):
		one = schema{"type": "string", "format": "date-time"}
	case is(f, "google.protobuf.Duration"):
		one = schema{"type": "integer", "minimum": 0}
	case is(f, "google.protobuf.Struct"):
		one = schema{"type": "object"}
	case f.Message() != nil:
		s.answer(f.Message(), string(f.Message().Name()))
		one = ref(string(f.Message().Name()))
	case f.Enum() != nil:
		one = schema{"type": "string", "enum": names(f.Enum(), true)}
	default:
		one = scalar(f)
	}
	switch {
	case f.IsList():
		return schema{"type": "array", "items": one}
	case f.HasPresence() && !is(f, "harness.v1.Content"):
		return orNull(one)
	}
	return one
}

func (s *schemas) request(m protoreflect.MessageDescriptor) string {
	name := string(m.Name()) + "Input"
	if s.made[name] != nil {
		return name
	}
	object := described(schema{"type": "object", "additionalProperties": false}, s.comments[string(m.FullName())])
	s.made[name] = object
	properties := schema{}
	for i := range m.Fields().Len() {
		s.requested(properties, m.Fields().Get(i))
	}
	object["properties"] = properties
	return name
}

func (s *schemas) requested(properties schema, f protoreflect.FieldDescriptor) {
	key, text := string(f.Name()), s.comments[string(f.FullName())]
	var one schema
	switch {
	case f.FullName() == "harness.v1.TaskContract.stored":
		properties[key] = schema{"enum": []any{"", nil}, "description": "Empty: it is shown in answers."}
		return
	case f.FullName() == "harness.v1.Predicate.schema", f.FullName() == "harness.v1.ToolSpec.parameters_schema",
		f.FullName() == "harness.v1.RunSpec.output_schema":
		properties[key] = schema{"type": []any{"object", "boolean", "string", "null"}, "description": text}
		return
	case f.FullName() == "harness.v1.Predicate.arguments":
		properties[key] = described(schema{"anyOf": []any{
			schema{"type": "array", "items": ref(s.request(f.Message()))},
			schema{"type": "object", "additionalProperties": schema{"type": "string"}},
			schema{"type": "null"},
		}}, text)
		return
	case f.FullName() == "harness.v1.SandboxConfig.network":
		properties[key] = described(schema{"anyOf": []any{
			ref(s.request(f.Message())), schema{"enum": []any{"none", "all"}}, schema{"type": "array", "items": schema{"type": "string"}}, schema{"type": "null"},
		}}, text)
		return
	case f.FullName() == "harness.v1.SandboxConfig.level":
		one = schema{"enum": append(names(f.Enum(), false), "auto")}
	case f.IsMap(): // of texts
		one = schema{"type": "object", "additionalProperties": schema{"type": "string"}}
	case is(f, "harness.v1.Content"):
		one = schema{"type": "string"}
	case is(f, "google.protobuf.Duration"):
		properties[key+"_ms"] = schema{"type": []any{"integer", "null"}, "minimum": 0, "description": "The same in milliseconds."}
		one = schema{"type": "string", "examples": []any{"90s", "1h30m"}}
	case f.Message() != nil:
		one = ref(s.request(f.Message()))
	case f.Enum() != nil:
		one = schema{"enum": names(f.Enum(), false)}
	default:
		one = scalar(f)
	}
	if f.IsList() {
		one = schema{"type": "array", "items": one}
	}
	properties[key] = described(orNull(one), text)
}

func is(f protoreflect.FieldDescriptor, name protoreflect.FullName) bool {
	return f.Message() != nil && f.Message().FullName() == name
}

// names are those of an enum's values without their prefix; of a request in small
// letters too.
func names(e protoreflect.EnumDescriptor, answer bool) (list []any) {
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	for i := range e.Values().Len() {
		list = append(list, strings.TrimPrefix(string(e.Values().Get(i).Name()), prefix))
	}
	if answer {
		return list
	}
	for _, name := range slices.Clone(list) {
		list = append(list, strings.ToLower(name.(string)))
	}
	return list
}

func scalar(f protoreflect.FieldDescriptor) schema {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return schema{"type": "boolean"}
	case protoreflect.StringKind:
		return schema{"type": "string"}
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return schema{"type": "number"}
	case protoreflect.BytesKind:
		return schema{"type": "string", "contentEncoding": "base64"}
	}
	return schema{"type": "integer", "minimum": 0}
}

// event makes the schema of an event: one of all that there are, told by type.
func (s *schemas) event() {
	m := (&harnessv1.Event{}).ProtoReflect().Descriptor()
	var each []any
	for i := range m.Oneofs().ByName("event").Fields().Len() {
		f := m.Oneofs().ByName("event").Fields().Get(i)
		e := (&harnessv1.Event{}).ProtoReflect()
		e.Set(f, e.NewField(f))
		name := eventjson.Type(e.Interface().(*harnessv1.Event))
		s.answer(f.Message(), string(f.Message().Name()))
		kind := schema{"const": name}
		if other := proto.GetExtension(f.Options(), harnessv1.E_SeedName).(string); other != "" {
			kind = schema{"enum": []any{name, other}}
		}
		if name == "quality.scored" {
			kind = schema{"enum": []any{name, "harness_rqs", "harness_rec_qs", "harness_doc_qs"}}
		}
		state := swarmStates[name]
		if state != "" {
			kind = schema{"enum": []any{name, "tool_sandbox"}}
		}
		envelope := s.envelope(name, kind, ref(string(f.Message().Name())))
		if state != "" {
			properties := s.made[eventTitle(name)].(schema)["properties"].(schema)
			properties["tool_name"] = schema{"const": "synthesis_swarm", "description": "Only with the type tool_sandbox: the sub-agent is one of a swarm."}
			properties["state"] = schema{"const": state, "description": "Only with the type tool_sandbox."}
		}
		each = append(each, envelope)
	}
	s.made["Event"] = schema{
		"description": s.comments["harness.v1.Event"],
		"anyOf":       append(each, s.envelope("unknown", schema{"const": "unknown"}, schema{"type": "object"})),
	}
}

// swarmStates are the events that are progress of a swarm in a stream of seed names.
var swarmStates = map[string]string{"agent.started": "started", "agent.ended": "ended"}

func eventTitle(name string) string { return "Event_" + strings.ReplaceAll(name, ".", "_") }

// envelope makes the schema of one event and refers to it.
func (s *schemas) envelope(name string, kind, data schema) schema {
	title := eventTitle(name)
	m := (&harnessv1.Event{}).ProtoReflect().Descriptor()
	s.answer(m, title, "id", "version", "time", "turn_number", "max_turns", "trace_id", "run_id", "parent_run_id", "call_id", "agent", "depth", "offset")
	object := s.made[title].(schema)
	object["description"] = "The event " + name + "."
	object["properties"].(schema)["type"], object["properties"].(schema)["data"] = kind, data
	object["required"] = append(object["required"].([]any), "type", "data")
	return ref(title)
}
