package agentfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// decoder fills messages from YAML nodes. It reports invalid values and reads on, so
// that one run finds all problems.
type decoder struct {
	src    *source
	report *report
	places places
	// dir is the directory of this file.
	dir string
	// read reads other files; nil: there are none.
	read Reader
}

func (d *decoder) errorf(at *yaml.Node, format string, args ...any) {
	d.report.add(d.src, at.Line, at.Column, format, args...)
}

// mark records the place of a field.
func (d *decoder) mark(path string, n *yaml.Node) { d.places[path] = place{d.src, n} }

// mapping visits the pairs of a mapping, each key once.
func (d *decoder) mapping(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		d.errorf(n, "%sexpected a mapping", label(what))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			d.errorf(key, "%sexpected the name of a field", label(what))
			continue
		}
		if seen[key.Value] {
			d.errorf(key, "duplicate field %q", key.Value)
			continue
		}
		seen[key.Value] = true
		visit(key, value)
	}
}

func (d *decoder) list(n *yaml.Node, what string, visit func(i int, item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.errorf(n, "%sexpected a list", label(what))
		return
	}
	for i, item := range n.Content {
		visit(i, resolve(item))
	}
}

func label(what string) string {
	if what == "" {
		return ""
	}
	return what + ": "
}

// message fills m, which is at path, from a mapping.
func (d *decoder) message(m protoreflect.Message, n *yaml.Node, path, what string) {
	d.mark(path, n)
	d.mapping(n, what, func(key, value *yaml.Node) {
		if read := fileForm(m.Descriptor(), key.Value); read != nil {
			read(d, m, key, value, path+"."+key.Value)
			return
		}
		if !writable(m.Descriptor(), key.Value) {
			if key.Value == versionField {
				d.errorf(key, noVersion)
				return
			}
			d.errorf(key, "unknown field %q in %s%s", key.Value, inFile(path), hint(key.Value, fieldNames(m.Descriptor())))
			return
		}
		d.field(m, key, value, path+"."+key.Value)
	})
}

// writable reports whether a file may set a field of a message.
func writable(m protoreflect.MessageDescriptor, name string) bool {
	f := m.Fields().ByName(protoreflect.Name(name))
	return f != nil && (f.Message() == nil || f.Message().FullName() != contentName) && !hidden[f.FullName()]
}

// hidden are proto fields that no file sets.
var hidden = map[protoreflect.FullName]bool{"harness.v1.ToolSpec.origin": true, "harness.v1.McpServer.host": true}

const (
	contentName  = "harness.v1.Content" // a text that may be stored elsewhere
	durationName = "google.protobuf.Duration"
	subAgentName = "harness.v1.SubAgent" // may be a name alone
)

func fieldNames(m protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range m.Fields().Len() {
		if name := string(m.Fields().Get(i).Name()); writable(m, name) {
			names = append(names, name)
		}
	}
	return names
}

// field sets the field of m that key names, which exists and is at path.
func (d *decoder) field(m protoreflect.Message, key, n *yaml.Node, path string) {
	f := m.Descriptor().Fields().ByName(protoreflect.Name(key.Value))
	d.mark(path, n)
	if n.ShortTag() == "!!null" {
		d.errorf(key, "%s: missing value", key.Value)
		return
	}
	if read, ok := ownForms[f.FullName()]; ok {
		read(d, m, f, n, path)
		return
	}
	if !f.IsList() {
		if v, ok := d.value(f, func() protoreflect.Message { return m.NewField(f).Message() }, n, path); ok {
			m.Set(f, v)
		}
		return
	}
	list := m.Mutable(f).List()
	d.list(n, key.Value, func(i int, item *yaml.Node) {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.mark(at, item)
		v, ok := d.value(f, func() protoreflect.Message { return list.NewElement().Message() }, item, at)
		if !ok {
			v = list.NewElement() // later items keep their numbers
		}
		list.Append(v)
	})
}

// value reads one value; ok is false if a problem was reported.
func (d *decoder) value(f protoreflect.FieldDescriptor, fresh func() protoreflect.Message, n *yaml.Node, path string) (v protoreflect.Value, ok bool) {
	name := string(f.Name())
	if f.Message() != nil && f.Message().FullName() != durationName {
		m := fresh()
		if m.Descriptor().FullName() == subAgentName && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
			m.Set(m.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(n.Value)) // built in
			return protoreflect.ValueOfMessage(m), true
		}
		d.message(m, n, path, name)
		return protoreflect.ValueOfMessage(m), true
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.errorf(n, "%s: expected a single value", name)
		return v, false
	}
	if !plainTags[n.ShortTag()] {
		d.errorf(n, "%s: unsupported tag %s", name, n.ShortTag())
		return v, false
	}
	v, want := scalar(f, n)
	if want != "" {
		d.errorf(n, "%s: %q: expected %s", name, clip(n.Value), want)
	}
	return v, want == ""
}

var plainTags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!timestamp": true}

// scalar reads a single value; want is empty if it is valid, otherwise the expected
// form.
func scalar(f protoreflect.FieldDescriptor, n *yaml.Node) (v protoreflect.Value, want string) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		length, err := time.ParseDuration(n.Value)
		if err != nil || length <= 0 {
			return v, "a duration above zero, such as 90s or 1h30m"
		}
		return protoreflect.ValueOfMessage(durationpb.New(length).ProtoReflect()), ""
	case protoreflect.EnumKind:
		e := enumValue(f.Enum(), n.Value)
		if e == nil {
			return v, "one of " + strings.Join(enumNames(f), ", ")
		}
		return protoreflect.ValueOfEnum(e.Number()), ""
	case protoreflect.BoolKind:
		var b bool
		if n.ShortTag() != "!!bool" || n.Decode(&b) != nil {
			return v, "true or false"
		}
		return protoreflect.ValueOfBool(b), ""
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(n.Value), ""
	case protoreflect.Uint32Kind:
		var u uint32
		if !isWhole(n) || n.Decode(&u) != nil {
			return v, "a whole number from 0"
		}
		return protoreflect.ValueOfUint32(u), ""
	case protoreflect.Uint64Kind:
		var u uint64
		if !isWhole(n) || n.Decode(&u) != nil {
			return v, "a whole number from 0"
		}
		return protoreflect.ValueOfUint64(u), ""
	case protoreflect.DoubleKind:
		var x float64
		if n.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return v, "a number from 0"
		}
		return protoreflect.ValueOfFloat64(x), ""
	}
	return v, "nothing: it cannot be set in a file"
}

// isWhole reports whether a number has no fraction: the YAML reader would truncate 1.5
// to 1.
func isWhole(n *yaml.Node) bool {
	var x float64
	return n.ShortTag() == "!!int" || n.ShortTag() == "!!float" && n.Decode(&x) == nil && x == math.Trunc(x) && x < 1<<53
}

// enumValue finds a value by its name without the prefix, in any case.
func enumValue(e protoreflect.EnumDescriptor, name string) protoreflect.EnumValueDescriptor {
	v := e.Values().ByName(protoreflect.Name(enumPrefix(e) + strings.ToUpper(name)))
	if v == nil || v.Number() == 0 {
		return nil
	}
	return v
}

// enumNames returns the names of the values that a field can have.
func enumNames(f protoreflect.FieldDescriptor) []string {
	var names []string
	for i := range f.Enum().Values().Len() {
		if v := f.Enum().Values().Get(i); gateway.IsSettable(f, v.Number()) {
			names = append(names, EnumName(v))
		}
	}
	return names
}

// EnumName returns the name of a value in files and schemas: predicate types in
// capitals, all others in lower case. Both are accepted.
func EnumName(v protoreflect.EnumValueDescriptor) string {
	e := v.Parent().(protoreflect.EnumDescriptor)
	name := strings.TrimPrefix(string(v.Name()), enumPrefix(e))
	if e.FullName() == "harness.v1.PredicateType" {
		return name
	}
	return strings.ToLower(name)
}

func enumPrefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// clip shortens a quoted value.
func clip(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		return fmt.Sprintf("%s…", string(runes[:79]))
	}
	return text
}
