package dialect

import (
	"encoding/json"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/schema"
)

// mapping leads from a value of the dialect to the value of the server.
type mapping struct {
	kind       string
	properties map[string]property // by their names in the dialect
	nulls      []string            // properties of the server that are null if they are missing
	items      *mapping
	values     map[string]any // of an enum, by their texts
	variants   []*mapping
	json       bool     // the value is JSON as text
	kinds      []string // the types that this JSON can have; none for any
}

// property is a property of an object.
type property struct {
	name  string // the server's
	value *mapping
}

// restore returns the server's value of a value in the dialect. A value that does not fit
// remains unchanged: the server's schema refuses it.
func (m *mapping) restore(value any) any {
	if m == nil {
		return value
	}
	if len(m.variants) > 0 {
		return m.choose(value).restore(value)
	}
	switch v := value.(type) {
	case string:
		if original, ok := m.values[v]; ok {
			return original
		}
		if m.json {
			return m.parse(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.items.restore(item)
		}
		return out
	case object:
		return m.restoreObject(v)
	}
	return value
}

func (m *mapping) restoreObject(v object) object {
	out := make(object, len(v))
	for name, item := range v {
		if p, ok := m.properties[name]; ok {
			out[p.name] = p.value.restore(item)
		}
	}
	for name, item := range v {
		if _, ok := m.properties[name]; ok {
			continue
		}
		if _, ok := out[name]; !ok { // the declared property has priority
			out[name] = item
		}
	}
	for _, name := range m.nulls {
		if _, ok := out[name]; !ok {
			out[name] = nil
		}
	}
	return out
}

// parse returns the value of JSON as text, or the text where it is no JSON of the types.
func (m *mapping) parse(text string) any {
	value, err := schema.Decode(text)
	if err != nil {
		return text
	}
	kind := kindOf(value)
	switch {
	case len(m.kinds) == 0:
		return value
	case slices.Contains(m.kinds, "string") && kind != "object" && kind != "array":
		return text
	case slices.Contains(m.kinds, kind), kind == "number" && slices.Contains(m.kinds, "integer"):
		return value
	}
	return text
}

// choose returns the alternative that fits a value best.
func (m *mapping) choose(value any) *mapping {
	best, most := m.variants[0], -1
	for _, variant := range m.variants {
		if score := variant.score(value); score > most {
			best, most = variant, score
		}
	}
	return best
}

// score is higher the better an alternative fits a value, negative if it does not.
func (m *mapping) score(value any) int {
	kind := kindOf(value)
	if kind != m.kind && (kind != "number" || m.kind != "integer") {
		return -1
	}
	switch v := value.(type) {
	case string:
		if m.values != nil {
			if _, ok := m.values[v]; !ok {
				return 0
			}
			return 2
		}
		return 1
	case object:
		score := 0
		for name, item := range v {
			p, ok := m.properties[name]
			if !ok {
				continue
			}
			if score++; p.value != nil && p.value.values != nil && p.value.score(item) > 1 {
				score += 2
			}
		}
		return score
	}
	return 0
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case []any:
		return "array"
	case object:
		return "object"
	}
	return "null"
}

// kindsOf returns the types of alternatives, none if one of them takes any.
func kindsOf(parts []*mapping) (kinds []string) {
	for _, m := range parts {
		switch {
		case m.json && len(m.kinds) == 0:
			return nil
		case m.json:
			kinds = union(kinds, m.kinds)
		case m.kind != "":
			kinds = union(kinds, []string{m.kind})
		default:
			kinds = union(kinds, kindsOf(m.variants))
		}
	}
	return kinds
}
