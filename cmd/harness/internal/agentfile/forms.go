package agentfile

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ownForms are the fields that may be written in another form than their type.
var ownForms map[protoreflect.FullName]func(*decoder, protoreflect.Message, protoreflect.FieldDescriptor, *yaml.Node, string)

func init() {
	ownForms = map[protoreflect.FullName]func(*decoder, protoreflect.Message, protoreflect.FieldDescriptor, *yaml.Node, string){
		"harness.v1.Predicate.schema":           (*decoder).schema,
		"harness.v1.ToolSpec.parameters_schema": (*decoder).schema,
		"harness.v1.Predicate.arguments":        (*decoder).arguments,
		"harness.v1.WorkKind.prompts":           (*decoder).texts,
		"harness.v1.McpServer.env":              (*decoder).texts,
		"harness.v1.McpServer.headers":          (*decoder).texts,
		"harness.v1.WebCredential.headers":      (*decoder).texts,
		"harness.v1.McpServer.pins":             (*decoder).texts,
		"harness.v1.McpServer.network":          (*decoder).network,
		"harness.v1.McpServer.command":          (*decoder).command,
		"harness.v1.SubAgent.contract":          (*decoder).namedContract,
	}
	fileForms = map[protoreflect.FullName]func(*decoder, protoreflect.Message, *yaml.Node, *yaml.Node, string){
		"harness.v1.SubAgent.file": (*decoder).instructionsFile,
	}
}

// fileForms are fields that only files have: another way to write one that the message has.
var fileForms map[protoreflect.FullName]func(d *decoder, m protoreflect.Message, key, n *yaml.Node, path string)

// fileForm returns the form of a field that only files have; nil if there is none.
func fileForm(m protoreflect.MessageDescriptor, name string) func(*decoder, protoreflect.Message, *yaml.Node, *yaml.Node, string) {
	if !protoreflect.Name(name).IsValid() {
		return nil
	}
	return fileForms[m.FullName().Append(protoreflect.Name(name))]
}

// instructionsFile reads the instructions of a sub-agent from a text file.
func (d *decoder) instructionsFile(m protoreflect.Message, key, n *yaml.Node, path string) {
	f := m.Descriptor().Fields().ByName("instructions")
	if m.Has(f) {
		d.errorf(key, "file: the sub-agent has instructions too: expected one of the two")
		return
	}
	d.mark(strings.TrimSuffix(path, ".file")+".instructions", n)
	_, data := d.readOther(key, n)
	switch {
	case data == nil:
	case !utf8.Valid(data) || strings.TrimSpace(string(data)) == "":
		d.errorf(n, "file: expected a text that is not empty, in UTF-8")
	default:
		m.Set(f, protoreflect.ValueOfString(string(data)))
	}
}

// namedContract reads the contract of a sub-agent, inline or from a file.
func (d *decoder) namedContract(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, path string) {
	read, root := d, n
	if n.Kind == yaml.ScalarNode {
		if read, root = d.other(&yaml.Node{Value: string(f.Name())}, n); root == nil {
			return
		}
	}
	read.message(m.Mutable(f).Message(), root, path, string(f.Name()))
}

// arguments reads a predicate's list of {name, pattern}, or a mapping of names to
// patterns.
func (d *decoder) arguments(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, path string) {
	list := m.Mutable(f).List()
	add := func(at *yaml.Node, fill func(*harnessv1.ArgumentMatch, string)) {
		match := &harnessv1.ArgumentMatch{}
		where := path + "[" + strconv.Itoa(list.Len()) + "]"
		d.mark(where, at)
		fill(match, where)
		list.Append(protoreflect.ValueOfMessage(match.ProtoReflect()))
	}
	switch n.Kind {
	case yaml.MappingNode:
		d.mapping(n, "arguments", func(key, value *yaml.Node) {
			add(value, func(match *harnessv1.ArgumentMatch, where string) {
				d.mark(where+".name", key)
				d.mark(where+".pattern", value)
				match.Name = key.Value
				if value.Kind != yaml.ScalarNode || !plainTags[value.ShortTag()] {
					d.errorf(value, "arguments: %s: expected a pattern", key.Value)
					return
				}
				match.Pattern = value.Value
			})
		})
	case yaml.SequenceNode:
		d.list(n, "arguments", func(_ int, item *yaml.Node) {
			add(item, func(match *harnessv1.ArgumentMatch, where string) {
				d.message(match.ProtoReflect(), item, where, "arguments")
			})
		})
	default:
		d.errorf(n, "arguments: expected a list of {name, pattern}, or fields (name: pattern)")
	}
}

// outputSchema reads the JSON Schema of the result: inline, or from a JSON or YAML file.
func (d *decoder) outputSchema(file *File, key, value *yaml.Node) {
	const path = "spec.output_schema"
	d.mark(path, value)
	spec := &harnessv1.RunSpec{}
	read, root := d, value
	if text := strings.TrimSpace(value.Value); value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && !strings.HasPrefix(text, "{") {
		if read, root = d.other(key, value); root == nil {
			return
		}
	}
	read.schema(spec.ProtoReflect(), spec.ProtoReflect().Descriptor().Fields().ByName("output_schema"), root, path)
	file.OutputSchema = spec.GetOutputSchema()
}

// task reads what kind of work runs of the agent are.
func (d *decoder) task(file *File, key, value *yaml.Node) {
	const path = "spec.task"
	d.mark(path, value)
	spec := &harnessv1.RunSpec{}
	d.field(spec.ProtoReflect(), key, value, path)
	file.Task = spec.GetTask()
}

// schema reads a JSON Schema, written as YAML or as JSON text.
func (d *decoder) schema(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, _ string) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		m.Set(f, protoreflect.ValueOfString(n.Value))
		return
	}
	if n.Kind != yaml.MappingNode && n.ShortTag() != "!!bool" {
		d.errorf(n, "%s: expected a JSON Schema as fields, or as JSON text", f.Name())
		return
	}
	w := &jsonWriter{d: d, what: string(f.Name())}
	if w.write(n, 0) {
		m.Set(f, protoreflect.ValueOfString(w.out.String()))
	}
}

// maxDepth bounds the nesting of a JSON value.
const maxDepth = 100

// jsonWriter writes a value as JSON, fields in their order.
type jsonWriter struct {
	d    *decoder
	what string
	out  strings.Builder
}

// write returns false if a problem was reported.
func (w *jsonWriter) write(n *yaml.Node, depth int) bool {
	n = resolve(n)
	if depth > maxDepth || w.out.Len() > maxSize {
		w.d.errorf(n, "%s: too large, or contains itself", w.what)
		return false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return w.object(n, depth)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if !w.write(item, depth+1) {
				return false
			}
		}
		w.out.WriteByte(']')
		return true
	}
	return w.scalar(n)
}

func (w *jsonWriter) object(n *yaml.Node, depth int) bool {
	before := len(w.d.report.problems)
	w.out.WriteByte('{')
	fields, ok := 0, true
	w.d.mapping(n, w.what, func(key, value *yaml.Node) {
		if !ok {
			return
		}
		if fields++; fields > 1 {
			w.out.WriteByte(',')
		}
		w.value(key.Value)
		w.out.WriteByte(':')
		ok = w.write(value, depth+1)
	})
	w.out.WriteByte('}')
	return ok && len(w.d.report.problems) == before
}

func (w *jsonWriter) scalar(n *yaml.Node) bool {
	var value any
	if n.ShortTag() == "!!str" {
		value = n.Value
	} else if json.Valid([]byte(n.Value)) && plainTags[n.ShortTag()] {
		w.out.WriteString(n.Value) // as it is written: large numbers keep their digits
		return true
	} else if n.Decode(&value) != nil {
		value = struct{}{}
	}
	switch value.(type) {
	case nil, bool, string, int, int64, uint64, float64:
		if w.value(value) {
			return true
		}
	}
	w.d.errorf(n, "%s: %q: not a JSON value", w.what, clip(n.Value))
	return false
}

// value returns false if JSON cannot represent the value, such as infinity.
func (w *jsonWriter) value(value any) bool {
	raw, err := json.Marshal(value)
	w.out.Write(raw)
	return err == nil
}
