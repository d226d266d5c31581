package expr

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// recordTypes has the objects that expressions see, with their fields. A field that is
// not given has its zero value. Compile rejects unknown fields.
var recordTypes = map[string]map[string]variable{
	"WorkItemCounts": fields(ints("open", "finished", "total")),
	"Contract": fields(ints("met", "total"),
		[]variable{{name: "unmet", shape: shapeDyn, typ: types.NewListType(types.StringType)}}),
	"WorkItem": fields(short("id", "title", "status", "priority", "role"), bools("has_artifact")),
}

func fields(groups ...[]variable) map[string]variable {
	all := map[string]variable{}
	for _, group := range groups {
		for _, v := range group {
			all[v.name] = v
		}
	}
	return all
}

// recordProvider provides recordTypes to the compiler.
type recordProvider struct{ types.Provider }

// FindStructType implements types.Provider.
func (p recordProvider) FindStructType(name string) (*types.Type, bool) {
	if _, is := recordTypes[name]; is {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p recordProvider) FindStructFieldNames(name string) ([]string, bool) {
	if record, is := recordTypes[name]; is {
		names := make([]string, 0, len(record))
		for field := range record {
			names = append(names, field)
		}
		return names, true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p recordProvider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	record, is := recordTypes[name]
	if !is {
		return p.Provider.FindStructFieldType(name, field)
	}
	v, is := record[field]
	if !is {
		return nil, false
	}
	return &types.FieldType{
		Type: v.typ,
		IsSet: func(target any) bool {
			m, ok := object(target)
			_, has := m[v.name]
			return ok && has
		},
		GetFrom: func(target any) (any, error) {
			m, ok := object(target)
			if !ok {
				return nil, fmt.Errorf("read %s.%s: expected a record, got a %T", name, v.name, target)
			}
			given := m[v.name]
			if v.shape == shapeDyn {
				return list(given), nil
			}
			return v.value(given), nil
		},
	}, true
}

// NewValue implements types.Provider. Expressions cannot create records.
func (p recordProvider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, is := recordTypes[name]; is {
		return types.NewErr("a %s cannot be made", name)
	}
	return p.Provider.NewValue(name, fields)
}

// object reads a record.
func object(v any) (map[string]any, bool) {
	switch m := v.(type) {
	case map[string]any:
		return m, true
	case map[string]int:
		return widened(m), true
	case map[string]int64:
		return widened(m), true
	case map[string]uint32:
		return widened(m), true
	}
	return nil, false
}

func widened[V any](m map[string]V) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		out[key] = v
	}
	return out
}

// objects reads a list of records.
func objects(v any) ([]any, bool) {
	switch items := v.(type) {
	case []any:
		return items, true
	case []map[string]any:
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = item
		}
		return out, true
	}
	return nil, false
}

// list reads a list; empty if there is none.
func list(v any) any {
	if v == nil {
		return []any{}
	}
	return v
}
