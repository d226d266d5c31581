package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// shape is the kind of value of a variable.
type shape uint8

const (
	shapeText shape = iota
	shapeInt
	shapeDouble
	shapeBool
	shapeCounts
	shapeTexts
	shapeDyn
	shapeRecord
	shapeRecords
)

// variable is a name that expressions may use.
type variable struct {
	name  string
	shape shape
	typ   *cel.Type
	// size is the usual maximum of a text, in bytes.
	size uint64
}

func named(names []string, v variable) []variable {
	all := make([]variable, len(names))
	for i, name := range names {
		all[i] = v
		all[i].name = name
	}
	return all
}

func short(names ...string) []variable {
	return named(names, variable{shape: shapeText, typ: cel.StringType, size: 256})
}

func long(names ...string) []variable {
	return named(names, variable{shape: shapeText, typ: cel.StringType, size: 64 << 10})
}

func ints(names ...string) []variable {
	return named(names, variable{shape: shapeInt, typ: cel.IntType})
}

func doubles(names ...string) []variable {
	return named(names, variable{shape: shapeDouble, typ: cel.DoubleType})
}

func bools(names ...string) []variable {
	return named(names, variable{shape: shapeBool, typ: cel.BoolType})
}

func counts(names ...string) []variable {
	return named(names, variable{shape: shapeCounts, typ: cel.MapType(cel.StringType, cel.IntType)})
}

func texts(names ...string) []variable {
	return named(names, variable{shape: shapeTexts, typ: cel.MapType(cel.StringType, cel.StringType)})
}

func anything(names ...string) []variable {
	return named(names, variable{shape: shapeDyn, typ: cel.DynType})
}

func record(name, of string) []variable {
	return []variable{{name: name, shape: shapeRecord, typ: cel.ObjectType(of)}}
}

func records(name, of string) []variable {
	return []variable{{name: name, shape: shapeRecords, typ: cel.ListType(cel.ObjectType(of))}}
}

// value converts a value of the caller for the evaluator; nil is the zero value. A value
// of a wrong type becomes an error when the expression reads the variable.
func (v *variable) value(given any) any {
	switch v.shape {
	case shapeText:
		switch text := given.(type) {
		case nil:
			return types.String("")
		case string:
			return types.String(text)
		}
	case shapeInt:
		if given == nil {
			return types.Int(0)
		}
		if n, ok := whole(given); ok {
			return types.Int(n)
		}
	case shapeDouble:
		switch n := given.(type) {
		case nil:
			return types.Double(0)
		case float64:
			return types.Double(n)
		case float32:
			return types.Double(n)
		}
		if n, ok := whole(given); ok {
			return types.Double(n)
		}
	case shapeBool:
		switch b := given.(type) {
		case nil:
			return types.False
		case bool:
			return types.Bool(b)
		}
	case shapeCounts:
		if counted, ok := newUsage(given); ok {
			return counted
		}
	case shapeTexts:
		switch m := given.(type) {
		case nil:
			return map[string]string{}
		case map[string]string:
			return m
		case map[string]any:
			return m
		}
	case shapeRecord:
		if given == nil {
			return map[string]any{}
		}
		if fields, ok := object(given); ok {
			return fields
		}
	case shapeRecords:
		if given == nil {
			return []any{}
		}
		if items, ok := objects(given); ok {
			return items
		}
	case shapeDyn:
		if given == nil {
			return map[string]any{}
		}
		return given
	}
	return types.NewErr("the variable %s was given a %T", v.name, given)
}
