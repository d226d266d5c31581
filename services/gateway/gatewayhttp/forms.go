package gatewayhttp

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ownForms are the fields that may be written in another form than their type, as in
// agent and contract files.
var ownForms map[protoreflect.FullName]func(protoreflect.Message, protoreflect.FieldDescriptor, json.RawMessage, string) error

func init() {
	ownForms = map[protoreflect.FullName]func(protoreflect.Message, protoreflect.FieldDescriptor, json.RawMessage, string) error{
		"harness.v1.Predicate.schema":           schema,
		"harness.v1.ToolSpec.parameters_schema": schema,
		"harness.v1.RunSpec.output_schema":      schema,
		"harness.v1.Predicate.arguments":        argumentMatches,
		"harness.v1.TaskContract.stored":        internal,
		"harness.v1.SandboxConfig.level":        sandboxLevel,
		"harness.v1.SandboxConfig.network":      sandboxNetwork,
		"harness.v1.McpServer.network":          sandboxNetwork,
	}
}

// schema reads a JSON Schema, or a JSON text of one.
func schema(m protoreflect.Message, f protoreflect.FieldDescriptor, value json.RawMessage, path string) error {
	switch kindOf(value) {
	case '"':
		s, err := text(value, path)
		m.Set(f, protoreflect.ValueOfString(s))
		return err
	case '{', 't', 'f':
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return err
		}
		m.Set(f, protoreflect.ValueOfString(compact.String()))
		return nil
	}
	return fault.Invalid(path, "expected a JSON Schema, or a JSON text of one")
}

// argumentMatches reads a list of {name, pattern}, or an object of names and patterns.
func argumentMatches(m protoreflect.Message, f protoreflect.FieldDescriptor, value json.RawMessage, path string) error {
	list := m.Mutable(f).List()
	if kindOf(value) == '{' {
		return object(value, path, func(name string, value json.RawMessage) error {
			pattern, err := text(value, join(path, name))
			list.Append(protoreflect.ValueOfMessage((&harnessv1.ArgumentMatch{Name: name, Pattern: pattern}).ProtoReflect()))
			return err
		})
	}
	return array(value, path, func(i int, item json.RawMessage) error {
		match := &harnessv1.ArgumentMatch{}
		list.Append(protoreflect.ValueOfMessage(match.ProtoReflect()))
		return fill(match.ProtoReflect(), item, indexed(path, i))
	})
}

// internal refuses a field that only the mesh sets and that answers show empty.
func internal(_ protoreflect.Message, _ protoreflect.FieldDescriptor, value json.RawMessage, path string) error {
	if s, err := text(value, path); err != nil || s != "" {
		return fault.Invalid(path, "cannot be set")
	}
	return nil
}

// sandboxLevel reads a level of confinement; auto is the highest that works.
func sandboxLevel(m protoreflect.Message, f protoreflect.FieldDescriptor, value json.RawMessage, path string) error {
	if name, err := text(value, path); err == nil && name == "auto" {
		return nil
	}
	v, err := enum(f, value, path)
	if err == nil && v.IsValid() {
		m.Set(f, v)
	}
	return err
}

// sandboxNetwork reads the network of commands: an object, its mode alone, or its hosts alone.
func sandboxNetwork(m protoreflect.Message, f protoreflect.FieldDescriptor, value json.RawMessage, path string) error {
	network := m.Mutable(f).Message()
	fields := network.Descriptor().Fields()
	switch kindOf(value) {
	case '"':
		return fillField(network, fields.ByName("mode"), value, path, false)
	case '[':
		network.Set(fields.ByName("mode"), protoreflect.ValueOfEnum(harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS.Number()))
		return fillField(network, fields.ByName("hosts"), value, path, false)
	}
	return fill(network, value, path)
}
