package catalogue

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxPrice is the highest price that a file may name, in US dollars for a
// million tokens.
const maxPrice = 1e6

// Load is the embedded catalogue, extended by a file; see Extend.
func Load(path string) (*Catalogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var cause *os.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, fmt.Errorf("%s: the catalogue cannot be read: %w", path, err)
	}
	return Default().Extend(path, data)
}

// parser reads a catalogue file:
//
//	models:
//	  - {ref: "openai:local", window: 32768, max_output: 4096, input: 0.1, cached: 0.01, written: 0.1, output: 0.4,
//	     long: {above: 200000, input: 0.2, output: 0.6}}
//
// Prices are in US dollars for a million tokens, as providers write them. Input from
// the cache and input into it cost what input costs where the file does not say.
type parser struct{ file string }

func (p *parser) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", p.file, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...))
}

func parse(file string, data []byte) (map[string]Entry, error) {
	p := &parser{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, p.fail(&doc, "the catalogue is empty; it has the field models")
	} else if err != nil {
		return nil, p.syntax(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, p.fail(&more, "a catalogue is one document")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(err)
	}
	top, err := p.fields(doc.Content[0], "a catalogue", "models")
	if err != nil {
		return nil, err
	}
	models, ok := top["models"]
	if !ok || models.Kind != yaml.SequenceNode {
		if !ok {
			models = doc.Content[0]
		}
		return nil, p.fail(models, "models must be a list of models")
	}
	entries := map[string]Entry{}
	for _, n := range models.Content {
		ref, e, err := p.entry(resolve(n))
		if err != nil {
			return nil, err
		}
		if _, twice := entries[ref]; twice {
			return nil, p.fail(n, "duplicate model %s", ref)
		}
		entries[ref] = e
	}
	return entries, nil
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

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// fields returns the members of a mapping, which must be known and unique.
func (p *parser) fields(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "%s must be a mapping with %s", what, strings.Join(known, ", "))
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			return nil, p.fail(key, "%s has no field %q; it has %s", what, key.Value, strings.Join(known, ", "))
		}
		if out[key.Value] != nil {
			return nil, p.fail(key, "duplicate field %s", key.Value)
		}
		out[key.Value] = resolve(n.Content[i+1])
	}
	return out, nil
}

func (p *parser) entry(n *yaml.Node) (ref string, e Entry, err error) {
	f, err := p.fields(n, "a model", "ref", "window", "max_output", "input", "cached", "written", "output", "long")
	if err != nil {
		return "", e, err
	}
	if f["ref"] == nil || f["ref"].Kind != yaml.ScalarNode || !named(f["ref"].Value) {
		return "", e, p.fail(cmp.Or(f["ref"], n), "ref must be a provider and a name, such as openai:gpt-5")
	}
	ref, e.Known = f["ref"].Value, true
	if f["window"] == nil {
		return "", e, p.fail(n, "%s has no window: say how many tokens of input it takes", ref)
	}
	if e.Window, err = p.tokens(f["window"], "window"); err != nil {
		return "", e, err
	}
	if f["max_output"] != nil {
		if e.MaxOutput, err = p.tokens(f["max_output"], "max_output"); err != nil {
			return "", e, err
		}
	}
	e.Priced = f["input"] != nil || f["output"] != nil
	if !e.Priced && (f["cached"] != nil || f["written"] != nil || f["long"] != nil) {
		return "", e, p.fail(n, "%s has prices without input and output: say these too", ref)
	}
	if e.Prices, err = p.prices(f); err != nil || f["long"] == nil {
		return ref, e, err
	}
	long, err := p.fields(f["long"], "long", "above", "input", "cached", "written", "output")
	if err != nil {
		return "", e, err
	}
	if long["above"] == nil || long["input"] == nil || long["output"] == nil {
		return "", e, p.fail(f["long"], "long must say above how many tokens of input it begins (above), and its prices (input, output)")
	}
	if e.LongAbove, err = p.tokens(long["above"], "above"); err != nil {
		return "", e, err
	}
	e.Long, err = p.prices(long)
	return ref, e, err
}

func (p *parser) tokens(n *yaml.Node, what string) (uint32, error) {
	v, err := strconv.ParseUint(strings.ReplaceAll(n.Value, "_", ""), 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || v == 0 {
		return 0, p.fail(n, "%s must be a number of tokens, at least 1", what)
	}
	return uint32(v), nil
}

func (p *parser) prices(f map[string]*yaml.Node) (out Prices, err error) {
	for _, part := range []struct {
		name string
		into *uint64
	}{{"input", &out.Input}, {"output", &out.Output}, {"cached", &out.Cached}, {"written", &out.Written}} {
		n := f[part.name]
		if n == nil {
			if part.into != &out.Output {
				*part.into = out.Input
			}
			continue
		}
		usd, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(usd >= 0 && usd <= maxPrice) {
			return out, p.fail(n, "%s must be a price from 0 to %.0f US dollars for a million tokens", part.name, maxPrice)
		}
		*part.into = uint64(math.Round(usd * million))
	}
	return out, nil
}
