package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"time"
)

// limit is how long a test may wait.
const limit = 2 * time.Second

// wait is one place that waits longer than the limit.
type wait struct {
	file     string
	line     int
	function string // package.Function
	long     string // the duration, or that it is unknown
}

// reader reads one function.
type reader struct {
	*tree
	folder *folder
	file   *ast.File
	fn     *ast.FuncDecl
	scope  scope
	// params are the parameters that hold a duration, by name.
	params map[string]int
	// waiting is the index of the parameter that the function waits for; -1 for none.
	waiting int
	// callers are the functions that wait for a parameter, with its index.
	callers map[*ast.FuncDecl]int
	found   []wait
}

// waits returns what waits longer than the limit, by file and line.
func (t *tree) waits() []wait {
	waiting := map[*ast.FuncDecl]int{}
	var found []wait
	// The second time finds the calls of functions that wait for a parameter, the
	// third time calls of those that pass theirs on.
	for range 3 {
		found = nil
		for _, f := range t.folders {
			for name, file := range f.files {
				for _, d := range file.Decls {
					fn, ok := d.(*ast.FuncDecl)
					if !ok || fn.Body == nil || !tests(name, file.Name.Name, fn.Name.Name) {
						continue
					}
					r := reader{tree: t, folder: f, file: file, fn: fn, waiting: -1, callers: waiting}
					r.read()
					found = append(found, r.found...)
					if r.waiting >= 0 {
						waiting[fn] = r.waiting
					}
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b wait) int { return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	return found
}

// tests reports whether a function belongs to tests: not to a benchmark, nor to
// a program that a test starts.
func tests(file, pkg, function string) bool {
	switch {
	case strings.HasPrefix(file, "bench/"):
		return strings.HasSuffix(file, "_test.go") && strings.HasPrefix(function, "Test")
	case strings.HasSuffix(file, "_test.go"):
		return !strings.HasPrefix(function, "Benchmark")
	}
	return strings.HasPrefix(file, "test/") && pkg != "main"
}

func (r *reader) read() {
	r.scope = scope{tree: r.tree, folder: r.folder, file: r.file, locals: locals(r.fn.Body)}
	r.params = map[string]int{}
	i := 0
	for _, p := range r.fn.Type.Params.List {
		for _, name := range p.Names {
			r.params[name.Name] = i
			i++
		}
	}
	ast.Inspect(r.fn.Body, r.visit)
}

// locals returns the variables of a function that are assigned once, with their values.
func locals(body *ast.BlockStmt) map[string]ast.Expr {
	values, times := map[string]ast.Expr{}, map[string]int{}
	set := func(name, value ast.Expr) {
		if id, ok := name.(*ast.Ident); ok {
			times[id.Name]++
			values[id.Name] = value
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if len(n.Rhs) == len(n.Lhs) {
					set(left, n.Rhs[i])
				} else {
					set(left, nil)
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					set(name, n.Values[i])
				}
			}
		}
		return true
	})
	for name, n := range times {
		if n > 1 || values[name] == nil {
			delete(values, name)
		}
	}
	return values
}

func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if r.bubble(r.folder, r.file, n) {
			return false
		}
		if p, name := qualified(r.file, n.Fun); p == "time" && name == "Sleep" && len(n.Args) == 1 {
			r.add(n, n.Args[0])
			return true
		}
		if fn := r.called(n); fn != nil {
			if at, ok := r.callers[fn]; ok && at < len(n.Args) {
				r.add(n, n.Args[at])
			}
		}
	case *ast.SelectStmt:
		r.choice(n)
		for _, c := range n.Body.List {
			for _, s := range c.(*ast.CommClause).Body {
				ast.Inspect(s, r.visit)
			}
		}
		return false
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			if d := r.timer(n.X); d != nil {
				r.add(n, d)
			}
		}
	}
	return true
}

// called returns the function of the repository that a call names; nil for another.
func (r *reader) called(call *ast.CallExpr) *ast.FuncDecl {
	if id, ok := call.Fun.(*ast.Ident); ok {
		return r.folder.funcs[id.Name]
	}
	p, name := qualified(r.file, call.Fun)
	if other, ok := r.first(p); ok {
		return other.funcs[name]
	}
	return nil
}

// timer returns the duration after which a channel delivers: time.After(d),
// time.Tick(d), time.NewTimer(d).C, or a variable with one of these.
func (r *reader) timer(e ast.Expr) ast.Expr {
	if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == "C" {
		e = s.X
	}
	if id, ok := e.(*ast.Ident); ok {
		e = r.scope.locals[id.Name]
	}
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	switch p, name := qualified(r.file, call.Fun); {
	case p != "time":
	case name == "After", name == "Tick", name == "NewTimer":
		return call.Args[0]
	}
	return nil
}

// choice reads a select: it waits for the time of its timer if that is the only
// end that a test can expect.
func (r *reader) choice(s *ast.SelectStmt) {
	var after ast.Expr
	for _, c := range s.Body.List {
		clause := c.(*ast.CommClause)
		if clause.Comm == nil {
			return // with a default, it does not wait
		}
		if d := r.timer(received(clause.Comm)); d != nil {
			if fails(clause.Body) {
				return // a bound
			}
			after = d
			continue
		}
		if !fails(clause.Body) && !done(received(clause.Comm)) {
			return // another end is expected
		}
	}
	if after != nil {
		r.add(s, after)
	}
}

// received returns the channel that a case receives from; nil for a case that sends.
func received(s ast.Stmt) ast.Expr {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	}
	if u, ok := e.(*ast.UnaryExpr); ok {
		return u.X
	}
	return nil
}

// done reports whether a channel is that of a context.
func done(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Done"
}

// fails reports whether statements fail the test, panic or return something else than nil, such as an error.
func fails(body []ast.Stmt) bool {
	failed := false
	for _, s := range body {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				switch name {
				case "Fatal", "Fatalf", "Error", "Errorf", "Fail", "FailNow", "panic", "Exit", "New", "cancel":
					failed = true
				}
			case *ast.ReturnStmt:
				if last := len(n.Results) - 1; last >= 0 {
					id, ok := n.Results[last].(*ast.Ident)
					failed = failed || !ok || id.Name != "nil"
				}
			}
			return true
		})
	}
	return failed
}

// add adds a wait for a duration, unless it is at most the limit.
func (r *reader) add(at ast.Node, d ast.Expr) {
	w := wait{
		file: r.fset.Position(at.Pos()).Filename, line: r.fset.Position(at.Pos()).Line,
		function: strings.TrimSuffix(r.file.Name.Name, "_test") + "." + r.fn.Name.Name, long: "for a time that cannot be computed",
	}
	if n, ok := r.scope.upper(d); ok {
		if n <= float64(limit) {
			return
		}
		w.long = time.Duration(n).String()
	} else if i, ok := r.param(d); ok {
		r.waiting = i
		return
	}
	r.found = append(r.found, w)
}

// param returns the index of the parameter that an expression passes on, also as
// the bound of a random number or a conversion, and whether it does.
func (r *reader) param(e ast.Expr) (int, bool) {
	switch e := e.(type) {
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return r.param(e.Args[0])
		}
	case *ast.Ident:
		i, ok := r.params[e.Name]
		return i, ok
	}
	return 0, false
}
