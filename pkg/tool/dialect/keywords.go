package dialect

import "slices"

// types returns the types that a schema names, without duplicates.
func types(node object) (out []string) {
	switch t := node["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, item := range t {
			if name, ok := item.(string); ok && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if nullable, _ := node["nullable"].(bool); nullable && len(out) > 0 && !slices.Contains(out, "null") {
		out = append(out, "null")
	}
	return out
}

// guess returns the type that the other keywords of a schema imply.
func guess(node object) []string {
	for _, g := range []struct {
		kind  string
		words []string
	}{
		{"object", []string{"properties", "additionalProperties", "patternProperties", "required"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"pattern", "minLength", "maxLength", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		for _, word := range g.words {
			if _, ok := node[word]; ok {
				return []string{g.kind}
			}
		}
	}
	return nil
}

func properties(node object) object {
	fields, _ := node["properties"].(object)
	return fields
}

func required(node object) (out []string) {
	list, _ := node["required"].([]any)
	for _, item := range list {
		if name, ok := item.(string); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// enumOf returns the values that a schema permits, if it lists them.
func enumOf(node object) ([]any, bool) {
	if value, ok := node["const"]; ok {
		return []any{value}, true
	}
	values, ok := node["enum"].([]any)
	return values, ok && len(values) > 0
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// onlyRequire reports whether alternatives differ only in what they require or exclude: the
// dialect shows the object that they share.
func onlyRequire(variants []any) bool {
	return !slices.ContainsFunc(variants, func(variant any) bool {
		fields, ok := variant.(object)
		if !ok {
			return true
		}
		for word := range fields {
			if word != "required" && word != "not" && word != "title" && word != "description" {
				return true
			}
		}
		return false
	})
}
