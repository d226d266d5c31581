package agentfile

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// MaxClientTools bounds the tools that a client runs.
const MaxClientTools = 64

// anyArguments is the schema of a tool whose file gives none.
const anyArguments = `{"type":"object"}`

// clientTools reads the tools that the client of the run runs itself.
func (d decoder) clientTools(n *yaml.Node) ([]*harnessv1.ToolSpec, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, d.errorf(n, "client_tools: want a list")
	}
	if len(n.Content) > MaxClientTools {
		return nil, d.errorf(n, "client_tools: %d tools; at most %d", len(n.Content), MaxClientTools)
	}
	var tools []*harnessv1.ToolSpec
	seen := map[string]bool{}
	for _, item := range n.Content {
		spec, err := d.clientTool(resolve(item))
		if err != nil {
			return nil, err
		}
		if seen[spec.GetName()] {
			return nil, d.errorf(item, "client_tools: %q stands here twice", spec.GetName())
		}
		seen[spec.GetName()] = true
		tools = append(tools, spec)
	}
	return tools, nil
}

func (d decoder) clientTool(n *yaml.Node) (*harnessv1.ToolSpec, error) {
	spec := &harnessv1.ToolSpec{ParametersSchema: anyArguments}
	schema := n
	err := d.mapping(n, func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "name", "description", "annotations":
			return d.field(spec.ProtoReflect(), key, value)
		case "parameters_schema":
			schema = value
			spec.ParametersSchema, err = d.schema(key, value)
			return err
		}
		return d.errorf(key, "unknown field %q in client_tools", key.Value)
	})
	switch {
	case err != nil:
		return nil, err
	case spec.GetName() == "":
		return nil, d.errorf(n, "client_tools: name is missing")
	case spec.GetName() == "*" || !toolName.MatchString(spec.GetName()):
		return nil, d.errorf(child(n, "name"), "client_tools: name %q: want letters, digits, - and _, at most 64", spec.GetName())
	case strings.TrimSpace(spec.GetDescription()) == "":
		return nil, d.errorf(n, "client_tools: %s: description is missing: the model chooses by it", spec.GetName())
	}
	if _, err := tool.NewSet([]*harnessv1.ToolSpec{spec}); err != nil {
		return nil, d.errorf(schema, "client_tools: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return spec, nil
}

// schema is a JSON Schema, written as YAML or as text that holds JSON.
func (d decoder) schema(key, n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value, nil
	}
	if n.Kind != yaml.MappingNode {
		return "", d.errorf(key, "parameters_schema: want a JSON Schema as fields, or as text that holds JSON")
	}
	var out strings.Builder
	err := d.json(&out, n, 0)
	return out.String(), err
}

// maxDepth bounds what stands inside each other in a schema.
const maxDepth = 100

// json writes a value as JSON, fields in their order.
func (d decoder) json(out *strings.Builder, n *yaml.Node, depth int) error {
	n = resolve(n)
	if depth > maxDepth || out.Len() > maxSize {
		return d.errorf(n, "parameters_schema: too large, or it holds itself")
	}
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		first := true
		err := d.mapping(n, func(key, value *yaml.Node) error {
			if !first {
				out.WriteByte(',')
			}
			first = false
			writeJSON(out, key.Value)
			out.WriteByte(':')
			return d.json(out, value, depth+1)
		})
		out.WriteByte('}')
		return err
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := d.json(out, item, depth+1); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	}
	return d.scalar(out, n)
}

func (d decoder) scalar(out *strings.Builder, n *yaml.Node) error {
	var value any
	if n.Tag == "!!str" {
		value = n.Value
	} else if err := n.Decode(&value); err != nil {
		return d.errorf(n, "parameters_schema: %q: not a value that JSON has", n.Value)
	}
	switch value.(type) {
	case nil, bool, string, int, int64, uint64, float64:
		if writeJSON(out, value) {
			return nil
		}
	}
	return d.errorf(n, "parameters_schema: %q: not a value that JSON has", n.Value)
}

// writeJSON is false where JSON has no word for a value, such as infinity.
func writeJSON(out *strings.Builder, value any) bool {
	raw, err := json.Marshal(value)
	out.Write(raw)
	return err == nil
}
