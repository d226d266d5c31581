package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load is the embedded catalogue, extended by a file; see Extend.
func Load(path string) (*Catalogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: the catalogue cannot be read: %w", path, err)
	}
	return Default().Extend(path, data)
}

// parser reads a catalogue file: a mapping with the lists models and providers, of which
// one may be missing. docs/models.md describes their fields.
type parser struct{ file string }

// contents are the models and providers of a file, in its order.
type contents struct {
	models    []placedModel
	providers []placedProvider
}

type placedModel struct {
	ref   string
	entry Entry
	at    *yaml.Node
}

type placedProvider struct {
	*Provider
	at *yaml.Node
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", p.file, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...))
}

// parse reads the file alone; check compares it with others.
func (p *parser) parse(data []byte) (*contents, error) {
	doc, err := p.document(data)
	if err != nil {
		return nil, err
	}
	out := &contents{}
	err = p.read(doc, "a catalogue", member{"models", p.models(out)}, member{"providers", p.providers(out)})
	if err == nil && len(doc.Content) == 0 {
		err = p.fail(doc, "the catalogue is empty; it has the fields models and providers")
	}
	return out, err
}

// document returns the root of the only document.
func (p *parser) document(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, p.fail(&doc, "the catalogue is empty; it has the fields models and providers")
	} else if err != nil {
		return nil, p.syntax(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, p.fail(&more, "a catalogue is one document")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(err)
	}
	return doc.Content[0], nil
}

// syntax is the parser's complaint, with the column 1 where it names a line only.
func (p *parser) syntax(err error) error {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, said, ok := strings.Cut(rest, ": "); ok {
			return fmt.Errorf("%s:%s:1: %s", p.file, line, said)
		}
	}
	return fmt.Errorf("%s:1:1: %s", p.file, text)
}

// reader reads the value of the field name.
type reader func(name string, n *yaml.Node) error

// member is a field of a mapping and how it is read.
type member struct {
	name string
	read reader
}

// read reads a mapping, whose fields must be known and unique, in the order of members.
func (p *parser) read(n *yaml.Node, what string, members ...member) error {
	f, err := p.fields(n, what, members)
	if err != nil {
		return err
	}
	for _, m := range members {
		if value := f[m.name]; value != nil {
			if err := m.read(m.name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// fields returns the values of a mapping.
func (p *parser) fields(n *yaml.Node, what string, members []member) (map[string]*yaml.Node, error) {
	known := make([]string, len(members))
	for i, m := range members {
		known[i] = m.name
	}
	if n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "%s must be a mapping with %s", what, strings.Join(known, ", "))
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			if key.Value == "version" {
				return nil, p.fail(key, "these files have no version: leave out version")
			}
			return nil, p.fail(key, "%s has no field %q; it has %s", what, key.Value, strings.Join(known, ", "))
		}
		if out[key.Value] != nil {
			return nil, p.fail(key, "duplicate field %s", key.Value)
		}
		out[key.Value] = resolve(n.Content[i+1])
	}
	return out, nil
}

// list returns a reader of a list that calls each for its elements.
func (p *parser) list(of string, each func(n *yaml.Node) error) reader {
	return func(name string, n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return p.fail(n, "%s must be a list of %s", name, of)
		}
		for _, element := range n.Content {
			if err := each(resolve(element)); err != nil {
				return err
			}
		}
		return nil
	}
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
