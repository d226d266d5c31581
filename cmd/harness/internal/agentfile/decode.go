package agentfile

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// decoder fills messages from YAML nodes.
type decoder struct {
	file string
}

func (d decoder) errorf(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", d.file, at.Line, at.Column, fmt.Sprintf(format, args...))
}

// mapping visits the pairs of a mapping, each key once.
func (d decoder) mapping(n *yaml.Node, visit func(key, value *yaml.Node) error) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return d.errorf(n, "want fields (name: value) here")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return d.errorf(key, "field %q stands here twice", key.Value)
		}
		seen[key.Value] = true
		if err := visit(key, resolve(n.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// message fills m from a mapping.
func (d decoder) message(m protoreflect.Message, n *yaml.Node, path string) error {
	return d.mapping(n, func(key, value *yaml.Node) error {
		if m.Descriptor().Fields().ByName(protoreflect.Name(key.Value)) == nil {
			return d.errorf(key, "unknown field %q in %s", key.Value, path)
		}
		return d.field(m, key, value)
	})
}

// field fills the field of m that key names, which exists.
func (d decoder) field(m protoreflect.Message, key, n *yaml.Node) error {
	f := m.Descriptor().Fields().ByName(protoreflect.Name(key.Value))
	if n.Tag == "!!null" {
		return d.errorf(key, "%s has no value", key.Value)
	}
	if !f.IsList() {
		v, err := d.value(f, func() protoreflect.Message { return m.NewField(f).Message() }, n, key.Value)
		if err != nil {
			return err
		}
		m.Set(f, v)
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return d.errorf(n, "%s: want a list", key.Value)
	}
	list := m.Mutable(f).List()
	for _, item := range n.Content {
		v, err := d.value(f, func() protoreflect.Message { return list.NewElement().Message() }, resolve(item), key.Value)
		if err != nil {
			return err
		}
		list.Append(v)
	}
	return nil
}

func (d decoder) value(f protoreflect.FieldDescriptor, fresh func() protoreflect.Message, n *yaml.Node, path string) (protoreflect.Value, error) {
	none := protoreflect.Value{}
	if f.Message() != nil && f.Message().FullName() != "google.protobuf.Duration" && f.Message().FullName() != "harness.v1.Content" {
		m := fresh()
		return protoreflect.ValueOfMessage(m), d.message(m, n, path)
	}
	if n.Kind != yaml.ScalarNode {
		return none, d.errorf(n, "%s: want a single value", path)
	}
	wrong := func(want string) (protoreflect.Value, error) {
		return none, d.errorf(n, "%s: %q: want %s", path, n.Value, want)
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.Message().FullName() == "harness.v1.Content" {
			text := &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: n.Value}}
			return protoreflect.ValueOfMessage(text.ProtoReflect()), nil
		}
		length, err := time.ParseDuration(n.Value)
		if err != nil || length <= 0 {
			return wrong("a duration above zero, such as 90s or 1h30m")
		}
		return protoreflect.ValueOfMessage(durationpb.New(length).ProtoReflect()), nil
	case protoreflect.EnumKind:
		if v := enumValue(f.Enum(), n.Value); v != nil {
			return protoreflect.ValueOfEnum(v.Number()), nil
		}
		return wrong("one of " + strings.Join(enumNames(f.Enum()), ", "))
	case protoreflect.BoolKind:
		var v bool
		if n.Decode(&v) != nil {
			return wrong("true or false")
		}
		return protoreflect.ValueOfBool(v), nil
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(n.Value), nil
	case protoreflect.Uint32Kind:
		var v uint32
		if n.Decode(&v) != nil {
			return wrong("a whole number from 0")
		}
		return protoreflect.ValueOfUint32(v), nil
	case protoreflect.Uint64Kind:
		var v uint64
		if n.Decode(&v) != nil {
			return wrong("a whole number from 0")
		}
		return protoreflect.ValueOfUint64(v), nil
	case protoreflect.DoubleKind:
		var v float64
		if n.Decode(&v) != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return wrong("a number from 0")
		}
		return protoreflect.ValueOfFloat64(v), nil
	}
	return none, d.errorf(n, "%s cannot be set in a file", path)
}

// enumValue finds a value by its name without the prefix, in either case.
func enumValue(e protoreflect.EnumDescriptor, name string) protoreflect.EnumValueDescriptor {
	v := e.Values().ByName(protoreflect.Name(enumPrefix(e) + strings.ToUpper(name)))
	if v == nil || v.Number() == 0 {
		return nil
	}
	return v
}

func enumNames(e protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range e.Values().Len() {
		if v := e.Values().Get(i); v.Number() != 0 {
			names = append(names, strings.ToLower(strings.TrimPrefix(string(v.Name()), enumPrefix(e))))
		}
	}
	return names
}

func enumPrefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// child is the value of a key of a mapping that has it.
func child(n *yaml.Node, key string) *yaml.Node {
	n = resolve(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return n
}
