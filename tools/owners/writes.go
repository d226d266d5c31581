package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// A write is a place that changes a field of a snapshot, or a value that is reached through it.
type write struct {
	field string
	pos   token.Pos
}

// writer finds the writes in one package.
type writer struct {
	info *types.Info
	// aliases are the local variables whose value is reached through a field.
	aliases map[types.Object]string
	found   []write
}

// writesIn returns the writes of a type-checked package to the fields of snapshots.
func writesIn(files []*ast.File, info *types.Info) []write {
	w := &writer{info: info, aliases: map[types.Object]string{}}
	for _, f := range files {
		ast.Inspect(f, w.visit)
	}
	return w.found
}

func (w *writer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, lhs := range n.Lhs {
			w.target(lhs)
		}
		if len(n.Lhs) == len(n.Rhs) {
			for i, lhs := range n.Lhs {
				w.alias(lhs, w.field(n.Rhs[i]))
			}
		}
	case *ast.IncDecStmt:
		w.target(n.X)
	case *ast.RangeStmt:
		w.alias(n.Value, w.field(n.X))
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.target(n.X)
		}
	case *ast.CompositeLit:
		w.literal(n)
	}
	return true
}

// target records a write to an expression, unless it is a local variable itself.
func (w *writer) target(x ast.Expr) {
	if _, local := ast.Unparen(x).(*ast.Ident); local {
		return
	}
	if field := w.field(x); field != "" {
		w.found = append(w.found, write{field, x.Pos()})
	}
}

// alias records that a new variable is reached through a field.
func (w *writer) alias(x ast.Expr, field string) {
	id, ok := x.(*ast.Ident)
	if !ok || field == "" {
		return
	}
	o := w.info.Defs[id]
	if o == nil {
		return
	}
	switch o.Type().Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map:
		w.aliases[o] = field
	}
}

// field returns the field of a snapshot through which an expression is reached; empty if it is not.
func (w *writer) field(x ast.Expr) string {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return w.aliases[w.info.Uses[x]]
	case *ast.SelectorExpr:
		if w.isSnapshot(x.X) {
			if v, ok := w.info.Uses[x.Sel].(*types.Var); ok && v.IsField() {
				return x.Sel.Name
			}
			return ""
		}
		return w.field(x.X)
	case *ast.IndexExpr:
		return w.field(x.X)
	case *ast.SliceExpr:
		return w.field(x.X)
	case *ast.StarExpr:
		return w.field(x.X)
	case *ast.CallExpr: // a getter
		sel, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || len(x.Args) > 0 || len(sel.Sel.Name) <= 3 || sel.Sel.Name[:3] != "Get" {
			return ""
		}
		if w.isSnapshot(sel.X) || view(w.info.TypeOf(sel.X)) {
			return sel.Sel.Name[3:]
		}
		return w.field(sel.X)
	}
	return ""
}

// literal records the fields of a snapshot that a literal sets.
func (w *writer) literal(n *ast.CompositeLit) {
	if !snapshot(w.info.TypeOf(n)) {
		return
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				w.found = append(w.found, write{key.Name, kv.Pos()})
			}
		}
	}
}

func (w *writer) isSnapshot(x ast.Expr) bool { return snapshot(w.info.TypeOf(x)) }

// snapshot reports whether t is the message or a pointer to it.
func snapshot(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Snapshot" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == messages
}

// view reports whether t is the view of an owner, through which a function gets its fields.
func view(t types.Type) bool {
	if t == nil {
		return false
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && types.IsInterface(named) && strings.HasSuffix(named.Obj().Name(), "Fields") &&
		named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == module+"/"+rules
}
