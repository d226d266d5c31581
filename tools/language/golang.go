package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// forPeople matches the names of functions whose string arguments are errors,
// logs, help or failures of tests.
var forPeople = regexp.MustCompile(`(?i)^(?:.*(?:error|errorf|fatalf?|warn|invalid|refus\w*|reject\w*|problem|violation|usage)|New|Errorf|Info|Debug|Warn|Log|Logf|LogAttrs|Skipf?|InfoContext|DebugContext|WarnContext|ErrorContext|WithDescription)$`)

// fields of literals that are help.
var helpFields = map[string]bool{"Short": true, "Long": true, "Description": true, "Usage": true, "Help": true, "Hint": true, "Message": true}

// goTexts returns the comments, the declared names and the texts for people of a Go file.
func goTexts(file string, content []byte) ([]text, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	c := goCollector{fset: fset, file: file, command: strings.HasPrefix(file, "cmd/") && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/harnesstest/")}
	c.comments(parsed)
	c.name(identifier, strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test"), parsed.Package)
	for _, d := range parsed.Decls {
		c.owner = ""
		if f, ok := d.(*ast.FuncDecl); ok {
			c.owner = f.Name.Name
		}
		ast.Inspect(d, c.visit)
	}
	return c.texts, nil
}

type goCollector struct {
	fset    *token.FileSet
	file    string
	command bool   // the file belongs to the command line, where all strings are for people
	owner   string // the function that is read, for texts for models
	texts   []text
}

func (c *goCollector) line(p token.Pos) int { return c.fset.Position(p).Line }

func (c *goCollector) comments(file *ast.File) {
	for _, group := range file.Comments {
		g := gather{kind: comment}
		for _, one := range group.List {
			if strings.HasPrefix(one.Text, "//go:") {
				continue
			}
			for i, line := range strings.Split(one.Text, "\n") {
				g.add(strings.Trim(line, "/* \t"), c.line(one.Pos())+i)
			}
		}
		c.texts = append(c.texts, g.texts...)
	}
}

// name adds a declared name.
func (c *goCollector) name(k kind, name string, at token.Pos) {
	if name != "_" {
		c.texts = append(c.texts, oneLine(k, split(name), c.line(at)))
	}
}

func (c *goCollector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		c.name(identifier, n.Name.Name, n.Name.Pos())
		c.name(function, n.Name.Name, n.Name.Pos())
	case *ast.TypeSpec:
		c.name(identifier, n.Name.Name, n.Name.Pos())
		c.name(typeName, n.Name.Name, n.Name.Pos())
	case *ast.ValueSpec:
		for _, name := range n.Names {
			c.name(identifier, name.Name, name.Pos())
		}
	case *ast.Field:
		for _, name := range n.Names {
			c.name(identifier, name.Name, name.Pos())
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok {
					c.name(identifier, name.Name, name.Pos())
				}
			}
		}
	case *ast.CallExpr:
		if !c.command && forPeople.MatchString(called(n.Fun)) {
			for _, arg := range n.Args {
				c.literals(arg)
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && !c.command && helpFields[key.Name] {
			c.literals(n.Value)
		}
	case *ast.BasicLit:
		if c.command {
			c.literal(n)
		}
	}
	return true
}

// called is the name of the function that an expression calls.
func called(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literals adds the strings of an expression: a literal, or several joined by +.
func (c *goCollector) literals(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		c.literal(e)
	case *ast.BinaryExpr:
		c.literals(e.X)
		c.literals(e.Y)
	case *ast.ParenExpr:
		c.literals(e.X)
	}
}

func (c *goCollector) literal(lit *ast.BasicLit) {
	if lit.Kind != token.STRING || forModels(c.file, c.owner) {
		return
	}
	body, err := strconv.Unquote(lit.Value)
	if err != nil || !strings.Contains(body, " ") {
		return
	}
	start := c.line(lit.Pos())
	if lit.Value[0] != '`' {
		c.texts = append(c.texts, oneLine(message, body, start))
		return
	}
	g := gather{kind: message}
	for i, line := range strings.Split(body, "\n") {
		g.add(line, start+i)
	}
	c.texts = append(c.texts, g.texts...)
}

// split splits a name: "goesOnHTTP" and "goes_on_http" are "goes on http".
func split(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r == '_':
			b.WriteByte(' ')
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
