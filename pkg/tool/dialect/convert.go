package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type object = map[string]any

// converter converts one schema with one pass.
type converter struct {
	root       object
	pass       pass
	open       map[string]int // the references that are being inlined
	visits     int
	properties int
}

// top converts the schema of the arguments.
func (c *converter) top() (object, *mapping, error) {
	node, _, err := c.flat(c.root, 0)
	if err != nil {
		return nil, nil, err
	}
	note := ""
	for _, word := range []string{"anyOf", "oneOf"} {
		variants, ok := node[word].([]any)
		if !ok || len(variants) == 0 {
			continue
		}
		var sets []string
		if node, sets, err = c.union(node, word, variants); err != nil {
			return nil, nil, err
		}
		if len(sets) > 0 {
			note = Text("Arguments that belong together, one group of these: "+strings.Join(sets, "; ")+".", 400)
		}
	}
	if t := types(node); len(t) > 0 && !slices.Contains(t, "object") {
		return nil, nil, errors.New("its arguments are no object")
	}
	out, m, err := c.object(node, 1)
	if err != nil {
		return nil, nil, err
	}
	if out["properties"] == nil {
		out["properties"] = object{}
	}
	if note != "" {
		out["description"] = note
	}
	return out, m, nil
}

// value converts a schema below the top. A nil object without an error means that only null
// fits, or nothing. nullable reports whether null fits.
func (c *converter) value(schema any, depth int) (out object, m *mapping, nullable bool, err error) {
	if c.visits++; c.visits > maxVisits {
		return nil, nil, false, errLarge
	}
	raw, ok := schema.(object)
	if !ok {
		if schema == false {
			return nil, nil, false, nil
		}
		out, m = c.text(object{}, nil, "Any JSON value, as text.")
		return out, m, true, nil
	}
	node, recursive, err := c.flat(raw, 0)
	if err != nil {
		return nil, nil, false, err
	}
	defer c.leave(raw)
	if recursive {
		out, m = c.text(node, nil, "A JSON value of the same form as the one around it, as text.")
		return out, m, false, nil
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if variants, ok := node[word].([]any); ok && len(variants) > 0 {
			if onlyRequire(variants) {
				delete(node, word)
				continue
			}
			return c.variants(node, word, variants, depth)
		}
	}
	if values, ok := enumOf(node); ok {
		out, m, nullable = c.enum(node, values)
		return out, m, nullable, nil
	}
	kinds := types(node)
	if len(kinds) == 0 {
		kinds = guess(node)
	}
	nullable = slices.Contains(kinds, "null")
	kinds = slices.DeleteFunc(kinds, func(t string) bool { return t == "null" })
	switch {
	case len(kinds) == 0 && nullable:
		return nil, nil, true, nil
	case len(kinds) == 0:
		out, m = c.text(node, nil, "Any JSON value, as text.")
		return out, m, true, nil
	case len(kinds) == 1:
		out, m, err = c.one(node, kinds[0], depth)
		return out, m, nullable, err
	}
	parts := make([]any, len(kinds))
	for i, kind := range kinds {
		part := maps.Clone(node)
		part["type"] = kind
		delete(part, "description")
		parts[i] = part
	}
	out, m, _, err = c.variants(object{"description": node["description"]}, "anyOf", parts, depth)
	return out, m, nullable, err
}

// one converts a schema of one type.
func (c *converter) one(node object, kind string, depth int) (object, *mapping, error) {
	switch kind {
	case "object":
		if len(properties(node)) == 0 && len(required(node)) == 0 {
			note := "A JSON object, as text."
			if values, ok := node["additionalProperties"].(object); ok {
				if t := types(values); len(t) == 1 {
					note = "A JSON object with values of type " + Text(t[0], 20) + ", as text."
				}
			}
			out, m := c.text(node, []string{"object"}, note)
			return out, m, nil
		}
		if depth >= c.pass.depth {
			out, m := c.text(node, []string{"object"}, "A JSON object, as text. Keys: "+strings.Join(slices.Sorted(maps.Keys(properties(node))), ", ")+".")
			return out, m, nil
		}
		return c.object(node, depth)
	case "array":
		if depth >= c.pass.depth {
			out, m := c.text(node, []string{"array"}, "A JSON list, as text.")
			return out, m, nil
		}
		return c.array(node, depth)
	case "string", "number", "integer", "boolean":
		out := object{"type": kind}
		if kind == "number" || kind == "integer" {
			bound(out, node, "minimum", "maximum")
		}
		c.describe(out, node)
		return out, &mapping{kind: kind}, nil
	}
	out, m := c.text(node, nil, "Any JSON value, as text.")
	return out, m, nil
}

func (c *converter) object(node object, depth int) (object, *mapping, error) {
	fields := maps.Clone(properties(node))
	if fields == nil {
		fields = object{}
	}
	needs := required(node)
	for _, name := range needs {
		if _, ok := fields[name]; !ok {
			fields[name] = true
		}
	}
	if c.properties += len(fields); c.properties > maxProperties {
		return nil, nil, errLarge
	}
	names := slices.Sorted(maps.Keys(fields))
	plain := propertyNames(names)
	m := &mapping{kind: "object", properties: map[string]property{}}
	shown, must := object{}, []any{}
	for _, name := range names {
		out, part, nullable, err := c.value(fields[name], depth+1)
		if err != nil {
			return nil, nil, err
		}
		need := slices.Contains(needs, name)
		if need && nullable && fields[name] != true {
			m.nulls = append(m.nulls, name)
		}
		if out == nil {
			continue
		}
		if need && (!nullable || fields[name] == true) {
			must = append(must, plain[name])
		}
		shown[plain[name]] = out
		m.properties[plain[name]] = property{name: name, value: part}
	}
	out := object{"type": "object"}
	if depth > 1 {
		c.describe(out, node)
	}
	if len(shown) == 0 && depth > 1 {
		out, m = c.text(node, []string{"object"}, "A JSON object, as text.")
		return out, m, nil
	}
	out["properties"] = shown
	if len(must) > 0 {
		out["required"] = must
	}
	return out, m, nil
}

func (c *converter) array(node object, depth int) (object, *mapping, error) {
	var item any = true
	tuple, _ := node["prefixItems"].([]any)
	if list, ok := node["items"].([]any); ok {
		tuple = list
	}
	if len(tuple) > 0 {
		item = object{"anyOf": tuple}
	} else if schema, ok := node["items"].(object); ok {
		item = schema
	}
	items, m, nullable, err := c.value(item, depth+1)
	if err != nil {
		return nil, nil, err
	}
	if items == nil || nullable && items["type"] != "string" {
		// Lists of null: the dialect has no null, so the whole list is text.
		if out, m := c.text(node, []string{"array"}, "A JSON list, as text."); items == nil {
			return out, m, nil
		}
	}
	out := object{"type": "array", "items": items}
	bound(out, node, "minItems", "maxItems")
	c.describe(out, node)
	return out, &mapping{kind: "array", items: m}, nil
}

// enum converts an enum to one of texts, with the values that the texts mean.
func (c *converter) enum(node object, values []any) (object, *mapping, bool) {
	m := &mapping{kind: "string", values: map[string]any{}}
	texts, nullable := []any{}, false
	for _, value := range values {
		if value == nil {
			nullable = true
			continue
		}
		text, isText := value.(string)
		if !isText {
			text, _ = encode(value)
		}
		shown := Text(text, 200)
		if shown == "" {
			shown = "(empty)"
		}
		if _, twice := m.values[shown]; twice {
			continue
		}
		m.values[shown] = value
		texts = append(texts, shown)
	}
	if len(texts) == 0 {
		return nil, nil, nullable
	}
	if len(texts) > maxEnum {
		some := make([]string, 20)
		for i := range some {
			some[i] = texts[i].(string)
		}
		out := object{"type": "string"}
		c.describe(out, node, fmt.Sprintf("One of %d values, such as %s.", len(texts), Text(strings.Join(some, ", "), 400)))
		return out, m, nullable
	}
	out := object{"type": "string", "enum": texts}
	c.describe(out, node)
	return out, m, nullable
}

// text returns a schema for a value that the model writes as JSON in a text, because the
// dialect has no form for it. No kinds mean any.
func (c *converter) text(node object, kinds []string, note string) (object, *mapping) {
	out := object{"type": "string"}
	c.describe(out, node, note)
	return out, &mapping{kind: "string", json: true, kinds: kinds}
}

// describe sets the description: that of the schema and notes of the keywords that the dialect lacks.
func (c *converter) describe(out, node object, notes ...string) {
	description, _ := node["description"].(string)
	if c.pass.description > 0 {
		notes = append(notes, remarks(node)...)
	}
	for i, note := range notes {
		notes[i] = Text(note, 500)
	}
	text := strings.TrimSpace(Text(description, c.pass.description) + " " + strings.Join(notes, " "))
	if text != "" {
		out["description"] = text
	}
}

// remarks returns what a schema says in keywords that the dialect lacks.
func remarks(node object) (notes []string) {
	for _, r := range []struct{ word, label string }{
		{"format", "Format: "},
		{"pattern", "Pattern: "},
		{"default", "Default: "},
		{"exclusiveMinimum", "Above "},
		{"exclusiveMaximum", "Below "},
		{"multipleOf", "A multiple of "},
	} {
		value, ok := node[r.word]
		if !ok || value == nil {
			continue
		}
		text, isText := value.(string)
		if !isText || r.word == "default" {
			text, _ = encode(value)
		}
		if len(text) <= 100 && text != `""` && text != "" {
			notes = append(notes, r.label+text+".")
		}
	}
	return notes
}

// bound copies bounds that are of a size that services accept.
func bound(out, node object, words ...string) {
	for _, word := range words {
		n, ok := node[word].(json.Number)
		if !ok {
			continue
		}
		f, err := n.Float64()
		if err != nil || f > 1<<31 || f < -1<<31 {
			continue
		}
		if strings.HasSuffix(word, "Items") && (f < 0 || f > 1000 || f != float64(int(f))) {
			continue
		}
		out[word] = f
	}
}
