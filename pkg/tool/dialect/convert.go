package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// converter is one call of Convert.
type converter struct {
	root  map[string]any
	nodes int
	err   error
	// refs are the references that are being written out.
	refs []string
}

func (c *converter) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// object converts the schema of the arguments, which is that of one object.
func (c *converter) object(top map[string]any) (map[string]any, *names) {
	merged := c.merge(top, 0)
	switch t := merged["type"].(type) {
	case nil:
	case string:
		if t != "object" {
			c.fail("its arguments are no object")
		}
	case []any:
		if !slices.Contains(t, any("object")) {
			c.fail("its arguments are no object")
		}
	}
	merged["type"] = "object"
	if _, ok := merged["properties"].(map[string]any); !ok {
		merged["properties"] = map[string]any{}
	}
	return c.node(merged, 0)
}

// merge returns an object schema without references and combinators at the top: what each of
// them allows is allowed, and what all of them require is required.
func (c *converter) merge(node map[string]any, depth int) map[string]any {
	node = c.resolved(node)
	out := maps.Clone(node)
	properties, _ := node["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	required := texts(node["required"])
	if depth > maxDepth {
		c.fail("its schema is nested too deeply")
		return out
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, ok := node[keyword].([]any)
		delete(out, keyword)
		if !ok {
			continue
		}
		var common []string
		objects := 0
		for _, b := range branches {
			branch, ok := b.(map[string]any)
			if !ok {
				continue
			}
			c.count()
			if c.err != nil {
				return out
			}
			branch = c.merge(branch, depth+1)
			if t, typed := branch["type"]; typed && !isType(t, "object") {
				continue
			}
			if out["type"] == nil && branch["type"] != nil {
				out["type"] = branch["type"]
			}
			if out["description"] == nil && branch["description"] != nil {
				out["description"] = branch["description"]
			}
			theirs, _ := branch["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(theirs)) {
				properties[name] = either(properties[name], theirs[name])
			}
			if keyword == "allOf" {
				required = append(required, texts(branch["required"])...)
			} else if objects == 0 {
				common = texts(branch["required"])
			} else {
				theirs := texts(branch["required"])
				common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(theirs, name) })
			}
			objects++
		}
		if objects == 0 && keyword != "allOf" && len(branches) > 0 && !isType(node["type"], "object") && len(properties) == 0 {
			c.fail("its arguments are no object")
		}
		required = append(required, common...)
		if objects > 0 && out["additionalProperties"] == false && keyword != "allOf" {
			delete(out, "additionalProperties")
		}
	}
	out["properties"] = properties
	out["required"] = anyOf(required)
	return out
}

// either returns a schema that allows what one of two allows.
func either(a, b any) any {
	switch {
	case a == nil:
		return b
	case b == nil || same(a, b):
		return a
	}
	if m, ok := a.(map[string]any); ok {
		if list, ok := m["anyOf"].([]any); ok && len(m) == 1 {
			if slices.ContainsFunc(list, func(l any) bool { return same(l, b) }) {
				return a
			}
			return map[string]any{"anyOf": append(slices.Clone(list), b)}
		}
	}
	return map[string]any{"anyOf": []any{a, b}}
}

func same(a, b any) bool {
	x, errX := encode(a)
	y, errY := encode(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func (c *converter) count() {
	if c.nodes++; c.nodes > maxNodes {
		c.fail("its schema has more than %d parts", maxNodes)
	}
}

// resolved returns a schema with its reference written out.
func (c *converter) resolved(node map[string]any) map[string]any {
	for range maxDepth {
		ref, ok := node["$ref"].(string)
		if !ok {
			return node
		}
		target, err := c.find(ref)
		if err != nil {
			c.fail("%w", err)
			return map[string]any{}
		}
		own := maps.Clone(node)
		delete(own, "$ref")
		node = maps.Clone(target)
		maps.Copy(node, own)
	}
	c.fail("its references have no end")
	return map[string]any{}
}

// find returns what a local reference refers to.
func (c *converter) find(ref string) (map[string]any, error) {
	if ref == "#" {
		return c.root, nil
	}
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, errors.New("it refers to another document")
	}
	var at any = c.root
	for step := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, errors.New("it refers to a part that is not there")
			}
			at = v[i]
		default:
			at = nil
		}
	}
	found, ok := at.(map[string]any)
	if !ok {
		return nil, errors.New("it refers to a part that is not there")
	}
	return found, nil
}

// value converts any schema.
func (c *converter) value(of any, depth int) (map[string]any, *names) {
	node, ok := of.(map[string]any)
	c.count()
	if !ok || c.err != nil || depth > maxDepth {
		return map[string]any{}, nil
	}
	if ref, ok := node["$ref"].(string); ok {
		if slices.Contains(c.refs, ref) { // it contains itself
			recursive := map[string]any{}
			if found, err := c.find(ref); err == nil {
				if t, ok := found["type"].(string); ok && t != "array" {
					recursive["type"] = t
				}
			}
			return recursive, nil
		}
		c.refs = append(c.refs, ref)
		defer func() { c.refs = c.refs[:len(c.refs)-1] }()
	}
	return c.node(c.resolved(node), depth)
}

// node converts a schema without a reference.
func (c *converter) node(node map[string]any, depth int) (map[string]any, *names) {
	if parts, ok := node["allOf"].([]any); ok && depth > 0 {
		node = c.all(node, parts)
	}
	out := map[string]any{}
	renamed := &names{original: map[string]property{}}
	if text, ok := node["description"].(string); ok {
		out["description"] = Text(text, maxText)
	} else if text, ok := node["title"].(string); ok && depth > 0 {
		out["description"] = Text(text, maxText)
	}
	branches := slices.Concat(schemas(node["anyOf"]), schemas(node["oneOf"]))
	kinds := types(node["type"])
	switch {
	case len(branches) > 0 && depth > 0:
		c.branches(out, branches, renamed, depth)
	case len(kinds) > 1:
		var each []any
		for _, kind := range kinds {
			one := maps.Clone(node)
			delete(one, "description")
			delete(one, "title")
			one["type"] = kind
			each = append(each, one)
		}
		c.branches(out, each, renamed, depth)
	default:
		kind := ""
		if len(kinds) == 1 {
			kind = kinds[0]
		} else if node["properties"] != nil {
			kind = "object"
		} else if node["items"] != nil {
			kind = "array"
		}
		c.typed(out, node, kind, renamed, depth)
	}
	if len(renamed.original) == 0 && renamed.items == nil {
		return out, nil
	}
	return out, renamed
}

// branches converts alternatives. One alone replaces them all.
func (c *converter) branches(out map[string]any, branches []any, renamed *names, depth int) {
	var list []any
	for _, b := range branches {
		if m, ok := b.(map[string]any); ok && isType(m["type"], "null") && m["type"] == "null" {
			continue
		}
		converted, mapped := c.value(b, depth+1)
		renamed.add(mapped)
		if !slices.ContainsFunc(list, func(have any) bool { return same(have, converted) }) {
			list = append(list, converted)
		}
	}
	switch len(list) {
	case 0:
	case 1:
		for key, value := range list[0].(map[string]any) {
			if _, given := out[key]; !given {
				out[key] = value
			}
		}
	default:
		out["anyOf"] = list
	}
}

// add adds the names of an alternative.
func (n *names) add(other *names) {
	if other == nil {
		return
	}
	maps.Copy(n.original, other.original)
	if n.items == nil {
		n.items = other.items
	} else if other.items != nil {
		n.items.add(other.items)
	}
}

// all returns what all parts of a schema together say.
func (c *converter) all(node map[string]any, parts []any) map[string]any {
	out := maps.Clone(node)
	delete(out, "allOf")
	for _, p := range parts {
		part, ok := p.(map[string]any)
		if !ok {
			continue
		}
		c.count()
		if c.err != nil {
			return out
		}
		part = c.resolved(part)
		if nested, ok := part["allOf"].([]any); ok {
			part = c.all(part, nested)
		}
		for key, value := range part {
			switch had := out[key].(type) {
			case nil:
				out[key] = value
			case map[string]any:
				if theirs, ok := value.(map[string]any); ok && key == "properties" {
					both := maps.Clone(had)
					maps.Copy(both, theirs)
					out[key] = both
				}
			case []any:
				if theirs, ok := value.([]any); ok && key == "required" {
					out[key] = slices.Concat(had, theirs)
				}
			}
		}
	}
	return out
}

// bounds are the keywords of each type that all providers take.
var bounds = map[string][]string{
	"string":  {"minLength", "maxLength"},
	"number":  {"minimum", "maximum"},
	"integer": {"minimum", "maximum"},
	"array":   {"minItems", "maxItems"},
}

// typed converts a schema of one type, or of none.
func (c *converter) typed(out, node map[string]any, kind string, renamed *names, depth int) {
	if kind != "" {
		out["type"] = kind
	}
	for _, keyword := range bounds[kind] {
		if n, ok := node[keyword].(json.Number); ok {
			if f, err := n.Float64(); err == nil && f > -1e15 && f < 1e15 {
				out[keyword] = n
			}
		}
	}
	c.enumerate(out, node, kind)
	if value, ok := node["default"]; ok && plain(value) {
		out["default"] = value
	}
	switch kind {
	case "array":
		items := node["items"]
		if tuple := schemas(node["prefixItems"]); items == nil && len(tuple) > 0 {
			items = map[string]any{"anyOf": tuple}
		} else if tuple := schemas(items); len(tuple) > 0 {
			items = map[string]any{"anyOf": tuple}
		}
		out["items"], renamed.items = c.value(items, depth+1)
	case "object":
		c.properties(out, node, renamed, depth)
	}
}

// enumerate converts what a value is one of. Values that are no texts are described, because not
// every provider takes them.
func (c *converter) enumerate(out, node map[string]any, kind string) {
	values, ok := node["enum"].([]any)
	if constant, is := node["const"]; is {
		values, ok = []any{constant}, true
	}
	if !ok || len(values) == 0 {
		return
	}
	var list []any
	onlyText := true
	for _, v := range values {
		text, ok := v.(string)
		onlyText = onlyText && ok && text != "" && text == Text(text, 200) || v == nil
		if v != nil {
			list = append(list, v)
		}
	}
	if onlyText && len(list) > 0 && len(list) <= maxEnum && (kind == "string" || kind == "") {
		out["type"], out["enum"] = "string", list
		return
	}
	text, err := encode(list[:min(len(list), 50)])
	if err != nil {
		return
	}
	described, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(described + " One of " + Text(string(text), maxText))
}

// properties converts those of an object.
func (c *converter) properties(out, node map[string]any, renamed *names, depth int) {
	given, _ := node["properties"].(map[string]any)
	converted, short := map[string]any{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		as := usable(name, "_.-", maxName, 6)
		if _, taken := converted[as]; taken {
			as = usable(name+"\x00", "_.-", maxName, 6)
		}
		short[name] = as
		value, mapped := c.value(given[name], depth+1)
		converted[as] = value
		if as != name || mapped != nil {
			renamed.original[as] = property{name, mapped}
		}
	}
	out["properties"] = converted
	var required []string
	for _, name := range texts(node["required"]) {
		if as, ok := short[name]; ok && !slices.Contains(required, as) {
			required = append(required, as)
		}
	}
	if len(required) > 0 {
		out["required"] = anyOf(required)
	}
	switch further := node["additionalProperties"].(type) {
	case bool:
		out["additionalProperties"] = further
	case map[string]any:
		out["additionalProperties"], renamed.items = c.value(further, depth+1)
	}
}

// shorten cuts the descriptions of a schema.
func (c *converter) shorten(node any, limit int) {
	switch v := node.(type) {
	case map[string]any:
		if text, ok := v["description"].(string); ok {
			if text = Text(text, limit); text == "" {
				delete(v, "description")
			} else {
				v["description"] = text
			}
		}
		for key, of := range v {
			if key == "properties" {
				properties, _ := of.(map[string]any)
				for _, p := range properties {
					c.shorten(p, limit)
				}
			} else {
				c.shorten(of, limit)
			}
		}
	case []any:
		for _, of := range v {
			c.shorten(of, limit)
		}
	}
}

// types returns the types of a schema without null.
func types(of any) []string {
	var list []string
	for _, t := range append(texts(of), text(of)) {
		switch t {
		case "string", "number", "integer", "boolean", "array", "object":
			if !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

func isType(of any, kind string) bool {
	return text(of) == kind || slices.Contains(texts(of), kind)
}

func text(of any) string {
	s, _ := of.(string)
	return s
}

// texts returns the texts in a list.
func texts(of any) []string {
	var out []string
	list, _ := of.([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func anyOf(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// schemas returns the schemas in a list.
func schemas(of any) []any {
	list, _ := of.([]any)
	return list
}

// plain reports whether a value is a text, a number or a truth value.
func plain(value any) bool {
	switch v := value.(type) {
	case string:
		return len(v) <= 200 && v == Text(v, 200)
	case json.Number, bool:
		return true
	}
	return false
}
