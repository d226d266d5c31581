package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const module = "github.com/harnessmesh/harnessmesh"

// folder is the Go of one folder: a package, its internal and its external tests.
type folder struct {
	files  map[string]*ast.File // by path from the root
	values map[string]ast.Expr  // package-level constants and variables that have a value, by name
	funcs  map[string]*ast.FuncDecl
	// bubbles are the functions that run a parameter in a bubble of testing/synctest.
	bubbles map[string]bool
}

// tree is the Go of a repository.
type tree struct {
	fset    *token.FileSet
	folders map[string]*folder
}

var unread = regexp.MustCompile(`(^|/)(testdata|node_modules)/|^pkg/gen/`)

// load parses the Go files that git knows or would add.
func load(root string) (*tree, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	t := &tree{fset: token.NewFileSet(), folders: map[string]*folder{}}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if file == "" || unread.MatchString(file) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not yet from the index
		}
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(t.fset, file, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		t.add(file, parsed)
	}
	t.findBubbles()
	return t, nil
}

func (t *tree) add(file string, parsed *ast.File) {
	f := t.folders[path.Dir(file)]
	if f == nil {
		f = &folder{files: map[string]*ast.File{}, values: map[string]ast.Expr{}, funcs: map[string]*ast.FuncDecl{}, bubbles: map[string]bool{}}
		t.folders[path.Dir(file)] = f
	}
	f.files[file] = parsed
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.funcs[d.Name.Name] = d
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, name := range v.Names {
					if i < len(v.Values) {
						f.values[name.Name] = v.Values[i]
					}
				}
			}
		}
	}
}

// imported returns the import path that a file uses under a name; "" for none.
func imported(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(p) == name {
			return p
		}
	}
	return ""
}

// qualified splits pkg.Name into the import path and the name.
func qualified(file *ast.File, e ast.Expr) (importPath, name string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return imported(file, x.Name), s.Sel.Name
}

// first returns the folder of an import path of the repository, and whether there is one.
func (t *tree) first(importPath string) (*folder, bool) {
	below, ok := strings.CutPrefix(importPath, module+"/")
	return t.folders[below], ok && t.folders[below] != nil
}

// bubble reports whether a call runs its arguments in a bubble.
func (t *tree) bubble(in *folder, file *ast.File, call *ast.CallExpr) bool {
	if id, ok := call.Fun.(*ast.Ident); ok {
		return in.bubbles[id.Name]
	}
	p, name := qualified(file, call.Fun)
	if p == "testing/synctest" {
		return name == "Test"
	}
	other, ok := t.first(p)
	return ok && other.bubbles[name]
}

// findBubbles finds the functions with a function as parameter that call
// synctest.Test, or a function like that.
func (t *tree) findBubbles() {
	for changed := true; changed; {
		changed = false
		for _, f := range t.folders {
			for _, file := range f.files {
				for _, d := range file.Decls {
					fn, ok := d.(*ast.FuncDecl)
					if !ok || fn.Body == nil || f.bubbles[fn.Name.Name] || !takesFunction(fn) {
						continue
					}
					ast.Inspect(fn.Body, func(n ast.Node) bool {
						if call, ok := n.(*ast.CallExpr); ok && t.bubble(f, file, call) {
							f.bubbles[fn.Name.Name], changed = true, true
						}
						return true
					})
				}
			}
		}
	}
}

func takesFunction(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}
