package dialect

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// maxOpen bounds how often a reference is inlined in itself.
const maxOpen = 2

// maxChain bounds references to references and allOf in allOf.
const maxChain = 32

// flat returns a schema whose $ref and allOf are merged into it. recursive reports that it
// was inlined in itself too often. leave must follow when its parts have been converted.
func (c *converter) flat(node object, chain int) (out object, recursive bool, err error) {
	if c.visits++; c.visits > maxVisits || chain > maxChain {
		return nil, false, errLarge
	}
	out = maps.Clone(node)
	if ref, ok := node["$ref"].(string); ok {
		delete(out, "$ref")
		c.open[ref]++
		if c.open[ref] > maxOpen {
			return out, true, nil
		}
		target, err := c.resolve(ref)
		if err != nil {
			return nil, false, err
		}
		inner, recursive, err := c.flat(target, chain+1)
		c.leave(target)
		if err != nil || recursive {
			return out, recursive, err
		}
		out = merge(out, inner)
	}
	parts, _ := out["allOf"].([]any)
	delete(out, "allOf")
	for _, part := range parts {
		fields, ok := part.(object)
		if !ok {
			continue
		}
		inner, recursive, err := c.flat(fields, chain+1)
		c.leave(fields)
		if err != nil {
			return nil, false, err
		}
		if recursive {
			return out, true, nil
		}
		out = merge(out, inner)
	}
	return out, false, nil
}

// leave undoes what flat noted of a schema.
func (c *converter) leave(node object) {
	if ref, ok := node["$ref"].(string); ok {
		c.open[ref]--
	}
}

// resolve returns the schema of a reference in the document.
func (c *converter) resolve(ref string) (object, error) {
	fragment, local := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(fragment)
	if !local || err != nil || path != "" && !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("its $ref %s does not point to a place in it", content.Clip(Text(ref, 80), 80))
	}
	var at any = c.root
	if path != "" {
		for _, step := range strings.Split(path[1:], "/") {
			step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
			switch v := at.(type) {
			case object:
				at = v[step]
			case []any:
				i, err := strconv.Atoi(step)
				if err != nil || i < 0 || i >= len(v) {
					i, v = 0, []any{nil}
				}
				at = v[i]
			default:
				at = nil
			}
		}
	}
	switch v := at.(type) {
	case object:
		return v, nil
	case bool:
		return object{}, nil
	}
	return nil, fmt.Errorf("its $ref %s points to nothing", content.Clip(Text(ref, 80), 80))
}

// merge returns a schema that both schemas allow, or a wider one: the server's schema checks
// the arguments in any case.
func merge(a, b object) object {
	out := maps.Clone(a)
	for word, value := range b {
		has, both := out[word]
		if !both {
			out[word] = value
			continue
		}
		switch word {
		case "properties":
			out[word] = mergeProperties(has, value, func(a, b any) any { return object{"allOf": []any{a, b}} })
		case "required":
			out["required"] = anyList(union(required(a), required(b)))
		case "type":
			if both := intersect(types(a), types(b)); len(both) > 0 {
				out["type"] = anyList(both)
			}
		case "enum":
			one, _ := has.([]any)
			two, _ := value.([]any)
			out[word] = slices.DeleteFunc(slices.Clone(one), func(v any) bool {
				return !slices.ContainsFunc(two, func(w any) bool { return reflect.DeepEqual(v, w) })
			})
		}
	}
	return out
}

func mergeProperties(a, b any, both func(a, b any) any) object {
	one, _ := a.(object)
	two, _ := b.(object)
	out := maps.Clone(one)
	if out == nil {
		out = object{}
	}
	for name, value := range two {
		if has, ok := out[name]; ok && !reflect.DeepEqual(has, value) {
			value = both(has, value)
		}
		out[name] = value
	}
	return out
}

// union returns the top with the alternatives of a combinator in one object: all their
// properties, of which those are required that every alternative requires. sets are the
// properties that each alternative requires.
func (c *converter) union(node object, word string, variants []any) (object, []string, error) {
	out := maps.Clone(node)
	delete(out, word)
	var common []string
	var sets []string
	first := true
	for _, variant := range variants {
		fields, ok := variant.(object)
		if !ok {
			continue
		}
		part, _, err := c.flat(fields, 0)
		c.leave(fields)
		if err != nil {
			return nil, nil, err
		}
		if t := types(part); len(t) > 0 && !slices.Contains(t, "object") {
			continue // null or a text: arguments are an object
		}
		for _, nested := range []string{"anyOf", "oneOf"} {
			if inner, ok := part[nested].([]any); ok && len(inner) > 0 {
				if c.visits++; c.visits > maxVisits {
					return nil, nil, errLarge
				}
				if part, _, err = c.union(part, nested, inner); err != nil {
					return nil, nil, err
				}
			}
		}
		out["properties"] = mergeProperties(out["properties"], part["properties"], func(a, b any) any { return object{"anyOf": []any{a, b}} })
		needs := required(part)
		if first {
			common = needs
		}
		first = false
		common = intersect(common, needs)
		if len(needs) > 0 {
			sets = append(sets, strings.Join(needs, " + "))
		}
	}
	if first && len(types(node)) == 0 && len(properties(node)) == 0 {
		return nil, nil, errors.New("its arguments are no object")
	}
	out["required"] = anyList(union(required(node), common))
	return out, sets, nil
}

// variants converts the alternatives of a value.
func (c *converter) variants(node object, word string, variants []any, depth int) (object, *mapping, bool, error) {
	base := maps.Clone(node)
	for _, drop := range []string{word, "description", "default", "$defs", "definitions"} {
		delete(base, drop)
	}
	var outs []object
	var parts []*mapping
	var seen []string
	nullable := false
	for _, variant := range variants {
		if fields, ok := variant.(object); ok && len(base) > 0 {
			variant = object{"allOf": []any{fields, base}}
		}
		out, m, null, err := c.value(variant, depth)
		if err != nil {
			return nil, nil, false, err
		}
		nullable = nullable || null
		if out == nil {
			continue
		}
		text, err := encode(out)
		if err != nil {
			return nil, nil, false, err
		}
		if !slices.Contains(seen, text) {
			outs, parts, seen = append(outs, out), append(parts, m), append(seen, text)
		}
	}
	switch {
	case len(outs) == 0:
		return nil, nil, nullable, nil
	case len(outs) == 1:
		c.lead(outs[0], node)
		return outs[0], parts[0], nullable, nil
	case slices.ContainsFunc(parts, func(m *mapping) bool { return m.json }):
		kinds := kindsOf(parts)
		out, m := c.text(node, kinds, describeKinds(kinds))
		return out, m, nullable, nil
	case !slices.ContainsFunc(parts, func(m *mapping) bool { return m.values == nil }):
		var all []any
		for i, m := range parts {
			if texts, ok := outs[i]["enum"].([]any); ok {
				for _, text := range texts {
					all = append(all, m.values[text.(string)])
				}
			}
		}
		if len(all) > 0 {
			out, m, null := c.enum(node, all)
			return out, m, nullable || null, nil
		}
	}
	c.lead(outs[0], node)
	list := make([]any, len(outs))
	for i, out := range outs {
		list[i] = out
	}
	return object{"anyOf": list}, &mapping{variants: parts}, nullable, nil
}

// lead puts the description of a combinator before that of its first alternative: services
// accept no keyword next to anyOf.
func (c *converter) lead(out, node object) {
	around := object{}
	c.describe(around, object{"description": node["description"], "default": node["default"]})
	text, _ := around["description"].(string)
	inner, _ := out["description"].(string)
	if text = strings.TrimSpace(text + " " + inner); text != "" && inner != text {
		out["description"] = text
	}
}

func describeKinds(kinds []string) string {
	if len(kinds) == 0 {
		return "Any JSON value, as text."
	}
	return "JSON as text: " + strings.Join(kinds, " or ") + "."
}
