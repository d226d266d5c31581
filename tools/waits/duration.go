package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"time"
)

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// scope is where an expression is evaluated.
type scope struct {
	tree   *tree
	folder *folder
	file   *ast.File
	locals map[string]ast.Expr // assigned once in the function
	depth  int
}

// upper returns the upper bound of an expression as a number of nanoseconds or
// a plain number, and whether it can be computed.
func (s scope) upper(e ast.Expr) (float64, bool) {
	if s.depth++; s.depth > 20 {
		return 0, false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseFloat(e.Value, 64)
		return n, err == nil
	case *ast.ParenExpr:
		return s.upper(e.X)
	case *ast.Ident:
		if v, ok := s.locals[e.Name]; ok {
			return s.upper(v)
		}
		if v, ok := s.folder.values[e.Name]; ok {
			s.locals = nil
			return s.upper(v)
		}
	case *ast.SelectorExpr:
		p, name := qualified(s.file, e)
		if p == "time" {
			d, ok := units[name]
			return float64(d), ok
		}
		if other, ok := s.tree.first(p); ok {
			if v, ok := other.values[name]; ok {
				return scope{tree: s.tree, folder: other, file: other.fileOf(v), depth: s.depth}.upper(v)
			}
		}
	case *ast.BinaryExpr:
		return s.binary(e)
	case *ast.CallExpr:
		return s.call(e)
	}
	return 0, false
}

func (s scope) binary(e *ast.BinaryExpr) (float64, bool) {
	x, okX := s.upper(e.X)
	y, okY := s.upper(e.Y)
	switch {
	case e.Op == token.ADD && okX && okY:
		return x + y, true
	case e.Op == token.MUL && okX && okY:
		return x * y, true
	case e.Op == token.QUO && okX && okY && y != 0:
		return x / y, true
	case e.Op == token.SUB && okX: // y is not negative
		if !okY {
			y = 0
		}
		return x - y, true
	}
	return 0, false
}

// call evaluates conversions, min, random numbers and the time until a sum.
func (s scope) call(e *ast.CallExpr) (float64, bool) {
	if len(e.Args) == 0 {
		return 0, false
	}
	name := ""
	switch f := e.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	switch name {
	case "Duration", "N", "IntN", "Int64N", "Intn", "Int63n", "float64", "int64", "int", "number", "Until":
		return s.upper(e.Args[0])
	case "Add": // of a time that has passed
		return s.upper(e.Args[0])
	case "min":
		least, known := 0.0, false
		for _, a := range e.Args {
			if v, ok := s.upper(a); ok && (!known || v < least) {
				least, known = v, true
			}
		}
		return least, known
	case "max":
		most := 0.0
		for _, a := range e.Args {
			v, ok := s.upper(a)
			if !ok {
				return 0, false
			}
			most = max(most, v)
		}
		return most, true
	}
	return 0, false
}

// fileOf returns the file of a folder that contains an expression.
func (f *folder) fileOf(e ast.Expr) *ast.File {
	for _, file := range f.files {
		if file.FileStart <= e.Pos() && e.Pos() < file.FileEnd {
			return file
		}
	}
	return nil
}
