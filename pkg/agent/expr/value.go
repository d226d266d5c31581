package expr

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// adapter converts JSON values and those of callers to CEL values. It iterates over maps
// in the order of their keys, so results depend only on the contents of a map.
type adapter struct{ types.Adapter }

var values = adapter{types.DefaultTypeAdapter}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return sortedMap{types.NewStringInterfaceMap(a, v)}
	case map[string]string:
		return sortedMap{types.NewStringStringMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return types.Int(n)
		}
		if f, err := v.Float64(); err == nil {
			return types.Double(f)
		}
		return types.String(v.String())
	}
	return a.Adapter.NativeToValue(v)
}

// sortedMap is a map that is iterated in the order of its string keys.
type sortedMap struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m sortedMap) Iterator() traits.Iterator { return sortedKeys(m.Mapper) }

func sortedKeys(m traits.Mapper) traits.Iterator {
	keys := make([]string, 0, 16)
	for it := m.Iterator(); it.HasNext() == types.True; {
		if key, ok := it.Next().(types.String); ok {
			keys = append(keys, string(key))
		}
	}
	slices.Sort(keys)
	return types.NewStringList(values, keys).Iterator()
}

// usage is a map of counts by name; a missing name counts 0. It is deliberately no
// traits.Mapper: the evaluator then calls IsSet for has(m.x), which is false for a
// missing name, and Get for its value.
type usage struct {
	// The map of the caller, from string to a type of whole number. It is copied only
	// for expressions that read all of it.
	given any
}

// newUsage returns a usage of a map of counts, or of nil. ok is false for other values.
func newUsage(given any) (usage, bool) {
	switch given.(type) {
	case nil, map[string]uint32, map[string]uint64, map[string]int, map[string]int64, map[string]any:
		return usage{given}, true
	}
	return usage{}, false
}

func (u usage) count(name string) (n int64, is bool) {
	switch m := u.given.(type) {
	case map[string]uint32:
		v, is := m[name]
		return int64(v), is
	case map[string]uint64:
		v, is := m[name]
		return int64(min(v, math.MaxInt64)), is
	case map[string]int:
		v, is := m[name]
		return int64(v), is
	case map[string]int64:
		v, is := m[name]
		return v, is
	case map[string]any:
		return whole(m[name])
	}
	return 0, false
}

// all returns a copy of the counts.
func (u usage) all() traits.Mapper {
	counts := map[string]int64{}
	switch m := u.given.(type) {
	case map[string]uint32:
		copyCounts(u, m, counts)
	case map[string]uint64:
		copyCounts(u, m, counts)
	case map[string]int:
		copyCounts(u, m, counts)
	case map[string]int64:
		copyCounts(u, m, counts)
	case map[string]any:
		copyCounts(u, m, counts)
	}
	return types.NewDynamicMap(values, counts)
}

func copyCounts[V any](u usage, from map[string]V, to map[string]int64) {
	for name := range from {
		if n, is := u.count(name); is {
			to[name] = n
		}
	}
}

// ConvertToNative and the four below implement ref.Val.
func (u usage) ConvertToNative(t reflect.Type) (any, error) { return u.all().ConvertToNative(t) }
func (u usage) ConvertToType(t ref.Type) ref.Val            { return u.all().ConvertToType(t) }
func (u usage) Type() ref.Type                              { return types.MapType }
func (u usage) Value() any                                  { return u.all().Value() }
func (u usage) Equal(other ref.Val) ref.Val {
	if o, ok := other.(usage); ok {
		other = o.all()
	}
	return u.all().Equal(other)
}

// Contains implements traits.Container.
func (u usage) Contains(key ref.Val) ref.Val { return u.IsSet(key) }

// Get implements traits.Indexer.
func (u usage) Get(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		n, _ := u.count(string(name))
		return types.Int(n)
	}
	return types.MaybeNoSuchOverloadErr(key)
}

// IsSet implements traits.FieldTester.
func (u usage) IsSet(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		_, is := u.count(string(name))
		return types.Bool(is)
	}
	return types.MaybeNoSuchOverloadErr(key)
}

// Iterator implements traits.Iterable.
func (u usage) Iterator() traits.Iterator { return sortedKeys(u.all()) }

// Size implements traits.Sizer.
func (u usage) Size() ref.Val { return u.all().Size() }

// whole reads a whole number of any Go type.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case uint32:
		return int64(n), true
	case uint64:
		return int64(min(n, math.MaxInt64)), true
	case uint:
		return int64(min(uint64(n), math.MaxInt64)), true
	case float64: // out of JSON
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	case json.Number:
		i, err := strconv.ParseInt(n.String(), 10, 64)
		return i, err == nil
	}
	return 0, false
}
