package catalogue

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxPrice is the highest price that a file may name, in US dollars for a
// million tokens.
const maxPrice = 1e6

// scalar returns the text of a value that is neither a mapping nor a list nor null.
func scalar(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null"
}

// text returns a reader of a text that is not blank and has no line break.
func (p *parser) text(into *string) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || strings.TrimSpace(value) != value || value == "" || strings.ContainsAny(value, "\r\n\x00") {
			return p.fail(n, "%s must be a text of one line without spaces around it", name)
		}
		*into = value
		return nil
	}
}

// texts returns a reader of a list of texts.
func (p *parser) texts(into *[]string) reader {
	return func(name string, n *yaml.Node) error {
		*into = []string{}
		return p.list("texts", func(n *yaml.Node) error {
			var value string
			if err := p.text(&value)("an element of "+name, n); err != nil {
				return err
			}
			*into = append(*into, value)
			return nil
		})(name, n)
	}
}

// flag returns a reader of true or false.
func (p *parser) flag(into *bool) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || value != "true" && value != "false" {
			return p.fail(n, "%s must be true or false", name)
		}
		*into = value == "true"
		return nil
	}
}

// optionalFlag returns a reader of true or false that differ from a missing field.
func (p *parser) optionalFlag(into **bool) reader {
	return func(name string, n *yaml.Node) error {
		*into = new(bool)
		return p.flag(*into)(name, n)
	}
}

// choice returns a reader of one of some values.
func choice[T ~string](p *parser, into *T, values ...T) reader {
	return func(name string, n *yaml.Node) error {
		value, ok := scalar(n)
		if !ok || !slices.Contains(values, T(value)) {
			names := make([]string, len(values))
			for i, v := range values {
				names[i] = string(v)
			}
			return p.fail(n, "%s must be %s", name, anyOf(names))
		}
		*into = T(value)
		return nil
	}
}

// anyOf joins names to "a, b or c".
func anyOf(names []string) string {
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (p *parser) tokens(into *uint32) reader { return p.number(into, "of tokens") }

// number returns a reader of a whole number from 1.
func (p *parser) number(into *uint32, of string) reader {
	return func(name string, n *yaml.Node) error {
		v, err := strconv.ParseUint(strings.ReplaceAll(n.Value, "_", ""), 10, 32)
		if n.Kind != yaml.ScalarNode || err != nil || v == 0 {
			return p.fail(n, "%s must be a number %s, at least 1", name, of)
		}
		*into = uint32(v)
		return nil
	}
}

// decimal returns a reader of a number from 0 to a limit.
func (p *parser) decimal(into *float64, limit float64, of string) reader {
	return func(name string, n *yaml.Node) error {
		v, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0 && v <= limit) {
			return p.fail(n, "%s must be a %s from 0 to %s", name, of, strconv.FormatFloat(limit, 'f', -1, 64))
		}
		*into = v
		return nil
	}
}

func (p *parser) price(into **uint64) reader {
	return func(name string, n *yaml.Node) error {
		var usd float64
		if p.decimal(&usd, maxPrice, "price")(name, n) != nil {
			return p.fail(n, "%s must be a price from 0 to %.0f US dollars for a million tokens", name, maxPrice)
		}
		price := uint64(math.Round(usd * million))
		*into = &price
		return nil
	}
}

// efforts returns a reader of a list of efforts. An empty list is not nil.
func (p *parser) efforts(into *[]harnessv1.Effort) reader {
	return func(name string, n *yaml.Node) error {
		*into = []harnessv1.Effort{}
		return p.list("efforts", func(n *yaml.Node) error {
			var value string
			if err := choice(p, &value, effortNames()...)("an element of "+name, n); err != nil {
				return err
			}
			effort := effortNamed(value)
			if slices.Contains(*into, effort) {
				return p.fail(n, "duplicate effort %s", value)
			}
			*into = append(*into, effort)
			return nil
		})(name, n)
	}
}

// members returns a reader of a mapping from texts to JSON. reserved are names that it
// must not have.
func (p *parser) members(into *map[string]json.RawMessage, reserved ...string) reader {
	return func(name string, n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return p.fail(n, "%s must be a mapping", name)
		}
		*into = map[string]json.RawMessage{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := (*into)[key.Value]; twice {
				return p.fail(key, "duplicate field %q", key.Value)
			}
			if key.Kind != yaml.ScalarNode || key.Value == "" || slices.Contains(reserved, key.Value) {
				return p.fail(key, "%s cannot set %q: the harness does", name, key.Value)
			}
			value, err := asJSON(n.Content[i+1])
			if err != nil {
				return p.fail(n.Content[i+1], "%s.%q cannot be written as JSON", name, key.Value)
			}
			(*into)[key.Value] = value
		}
		return nil
	}
}

// asJSON returns a value of YAML as JSON. Names of members must be texts.
func asJSON(n *yaml.Node) (json.RawMessage, error) {
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// effortNames returns the names of all efforts, as files and flags have them.
func effortNames() []string {
	return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
}

func effortNamed(name string) harnessv1.Effort {
	return harnessv1.Effort(harnessv1.Effort_value["EFFORT_"+strings.ToUpper(name)])
}

// EffortName returns the name of an effort; empty for an unspecified one.
func EffortName(e harnessv1.Effort) string {
	if e == harnessv1.Effort_EFFORT_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(e.String(), "EFFORT_"))
}
