package script

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxJSON bounds the arguments of a call, and the answer to a job, in bytes: with
	// aliases a small file can expand to a huge text.
	maxJSON = 8 << 20
	// maxDepth bounds how deep they nest.
	maxDepth = 100
)

// jsonWriter writes a YAML value as JSON, members in the order of the file.
type jsonWriter struct {
	parser *parser
	what   string // in errors: arguments or answer
	out    strings.Builder
}

func (j *jsonWriter) value(n *yaml.Node, depth int) error {
	n = deref(n)
	if depth > maxDepth || j.out.Len() > maxJSON {
		return j.parser.fail(n, "%s: deeper than %d levels or longer than %d bytes", j.what, maxDepth, maxJSON)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return j.object(n, depth)
	case yaml.SequenceNode:
		j.out.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				j.out.WriteByte(',')
			}
			if err := j.value(c, depth+1); err != nil {
				return err
			}
		}
		j.out.WriteByte(']')
		return nil
	default:
		return j.scalar(n)
	}
}

func (j *jsonWriter) object(n *yaml.Node, depth int) error {
	j.out.WriteByte('{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := deref(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return j.parser.fail(key, "a key of %s must be a text", j.what)
		}
		if seen[key.Value] {
			return j.parser.fail(key, "duplicate key %s", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			j.out.WriteByte(',')
		}
		j.text(key.Value)
		j.out.WriteByte(':')
		if err := j.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	j.out.WriteByte('}')
	return nil
}

func (j *jsonWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		j.out.WriteString("null")
	case "!!bool", "!!int", "!!float":
		if json.Valid([]byte(n.Value)) && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
			j.out.WriteString(n.Value) // as written: large numbers keep their digits
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return j.parser.fail(n, "%q is not a value that JSON has", n.Value)
		}
		b, err := json.Marshal(v)
		if err != nil { // .inf and .nan
			return j.parser.fail(n, "%q is not a value that JSON has", n.Value)
		}
		j.out.Write(b)
	default:
		j.text(n.Value)
	}
	return nil
}

func (j *jsonWriter) text(s string) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("script: a string has no JSON: " + err.Error())
	}
	j.out.WriteString(strings.TrimSuffix(b.String(), "\n"))
}
