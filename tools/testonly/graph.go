package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// called are the methods that packages call without an interface that they export: kong those of commands and flags,
// errors those of errors, and net/http that of wrapped writers.
var called = []string{"Run", "Help", "Validate", "BeforeApply", "AfterApply", "Unwrap", "Is", "As"}

// A graph has the package-level declarations and methods of a repository, and which of them each refers to.
// A declaration of two loads of a package is the same by position, so objects are known by it.
type graph struct {
	loaded []*packages.Package
	nodes  map[token.Pos]*node
	roots  []token.Pos
	// interfaces are the names of the methods of all interfaces, those of dependencies included.
	interfaces map[string]bool
	// ignored are the names in files for other systems, by import path.
	ignored map[string]map[string]bool
	// enums are the constants that are declared with values of which some are counted.
	enums map[token.Pos]bool
}

// A node is a declaration.
type node struct {
	object  types.Object
	refers  []token.Pos
	methods []token.Pos // of a type
}

// unusedName is a declaration that no program uses, or a package that none imports.
type unusedName struct {
	pos  token.Pos
	name string // package.Name or package.Type.Method, without the module
}

func newGraph(loaded []*packages.Package) (*graph, error) {
	g := &graph{loaded: loaded, nodes: map[token.Pos]*node{}, interfaces: map[string]bool{}, ignored: map[string]map[string]bool{}, enums: map[token.Pos]bool{}}
	seen := map[*types.Package]bool{}
	for _, p := range loaded {
		g.addInterfaces(p.Types, seen)
		for _, tv := range p.TypesInfo.Types {
			if tv.IsType() {
				g.addInterface(tv.Type)
			}
		}
		names, err := namesIn(p.IgnoredFiles)
		if err != nil {
			return nil, err
		}
		g.ignored[p.PkgPath] = names
	}
	for _, p := range loaded {
		g.declare(p)
	}
	for _, p := range loaded {
		for _, f := range p.Syntax {
			g.read(p, f)
		}
	}
	return g, nil
}

// addInterfaces notes the interfaces of a package and of those that it imports.
func (g *graph) addInterfaces(p *types.Package, seen map[*types.Package]bool) {
	if p == nil || seen[p] {
		return
	}
	seen[p] = true
	for _, name := range p.Scope().Names() {
		if t, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			g.addInterface(t.Type())
		}
	}
	for _, other := range p.Imports() {
		g.addInterfaces(other, seen)
	}
}

func (g *graph) addInterface(t types.Type) {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return
	}
	for m := range i.Methods() {
		g.interfaces[m.Name()] = true
	}
}

var word = regexp.MustCompile(`\b[\pL_][\pL\d_]*\b`)

// namesIn returns the words of Go files.
func namesIn(files []string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, w := range word.FindAllString(string(text), -1) {
			names[w] = true
		}
	}
	return names, nil
}

// declare adds the declarations of a package.
func (g *graph) declare(p *packages.Package) {
	for id, o := range p.TypesInfo.Defs {
		if o == nil || id.Name == "_" {
			continue
		}
		f, ok := o.(*types.Func)
		method := ok && f.Signature().Recv() != nil
		if method || o.Parent() == p.Types.Scope() {
			g.nodes[o.Pos()] = &node{object: o}
		}
		if ok && !method && (id.Name == "main" && p.Name == "main" || id.Name == "init") ||
			slices.Contains(generators, below(p.PkgPath)) && o.Exported() && g.nodes[o.Pos()] != nil ||
			g.ignored[p.PkgPath][id.Name] && g.nodes[o.Pos()] != nil {
			g.roots = append(g.roots, o.Pos())
		}
	}
	for pos, n := range g.nodes {
		f, ok := n.object.(*types.Func)
		if !ok || f.Pkg() != p.Types {
			continue
		}
		if t := receiver(f); t != nil && g.nodes[t.Pos()] != nil {
			g.nodes[t.Pos()].methods = append(g.nodes[t.Pos()].methods, pos)
		}
	}
}

// receiver returns the type of a method; nil for a function and a method of an interface.
func receiver(f *types.Func) *types.TypeName {
	r := f.Signature().Recv()
	if r == nil {
		return nil
	}
	t := r.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := t.(*types.Named)
	if !ok || types.IsInterface(named) {
		return nil
	}
	return named.Origin().Obj()
}

// read adds the references of a file.
func (g *graph) read(p *packages.Package, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				g.refer(p, nil, d)
				continue
			}
			g.refer(p, []*ast.Ident{d.Name}, d)
		case *ast.GenDecl:
			counted := slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
				v, ok := s.(*ast.ValueSpec)
				return ok && d.Tok == token.CONST && len(v.Values) == 0
			})
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && counted {
					for _, id := range v.Names {
						g.enums[id.Pos()] = true
					}
				}
				switch s := s.(type) {
				case *ast.TypeSpec:
					g.refer(p, []*ast.Ident{s.Name}, s)
				case *ast.ValueSpec:
					g.refer(p, s.Names, s)
				}
			}
		}
	}
}

// refer adds the references of a declaration to each of its names, or to the roots if it has no name but _.
func (g *graph) refer(p *packages.Package, names []*ast.Ident, decl ast.Node) {
	var used []token.Pos
	ast.Inspect(decl, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		if o := origin(p.TypesInfo.Uses[id]); o != nil {
			used = append(used, o.Pos())
		}
		return true
	})
	named := false
	for _, id := range names {
		if o := p.TypesInfo.Defs[id]; o != nil && g.nodes[o.Pos()] != nil {
			g.nodes[o.Pos()].refers = append(g.nodes[o.Pos()].refers, used...)
			named = true
		}
	}
	if !named {
		g.roots = append(g.roots, used...)
	}
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// live returns the declarations that can be reached from the roots.
func (g *graph) live() map[token.Pos]bool {
	live := map[token.Pos]bool{}
	for todo := slices.Clone(g.roots); len(todo) > 0; {
		pos := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := g.nodes[pos]
		if n == nil || live[pos] {
			continue
		}
		live[pos] = true
		todo = append(todo, n.refers...)
		for _, m := range n.methods {
			if name := g.nodes[m].object.Name(); g.interfaces[name] || slices.Contains(called, name) {
				todo = append(todo, m)
			}
		}
	}
	return live
}

// linked returns the import paths that the programs and generators reach.
func (g *graph) linked() map[string]bool {
	linked := map[string]bool{}
	var add func(p *packages.Package)
	add = func(p *packages.Package) {
		if linked[p.PkgPath] {
			return
		}
		linked[p.PkgPath] = true
		for _, other := range p.Imports {
			add(other)
		}
	}
	for _, p := range g.loaded {
		if p.Name == "main" || slices.Contains(generators, below(p.PkgPath)) {
			add(p)
		}
	}
	return linked
}

// unused returns the findings.
func (g *graph) unused() []unusedName {
	live, linked := g.live(), g.linked()
	var found []unusedName
	for _, p := range g.loaded {
		if !linked[p.PkgPath] && !strings.HasSuffix(p.PkgPath, "test") && len(p.Types.Scope().Names()) > 0 {
			found = append(found, unusedName{p.Syntax[0].Package, below(p.PkgPath)})
		}
	}
	for pos, n := range g.nodes {
		path := n.object.Pkg().Path()
		if live[pos] || !linked[path] || strings.HasPrefix(below(path), "pkg/gen/") || g.enums[pos] || typed(n.object) {
			continue
		}
		name := below(path) + "." + n.object.Name()
		if f, ok := n.object.(*types.Func); ok {
			if f.Signature().Recv() != nil {
				t := receiver(f)
				if t == nil || !live[t.Pos()] {
					continue // a method of an interface, or of a type that is reported itself
				}
				name = below(path) + "." + t.Name() + "." + f.Name()
			}
		}
		found = append(found, unusedName{pos, name})
	}
	return found
}

// typed reports whether an object is a constant of a declared type.
func typed(o types.Object) bool {
	c, ok := o.(*types.Const)
	if !ok {
		return false
	}
	_, named := c.Type().(*types.Named)
	return named
}

// below returns an import path relative to the module.
func below(path string) string { return strings.TrimPrefix(path, module+"/") }
