package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// directive names the packages that may write the fields of a view, or the one field of a getter.
const directive = "//snapshot:writers "

// ownership has the writers of each field of a snapshot.
type ownership struct{ writers map[string][]string }

// ownershipIn reads the views: the interfaces with getters of fields, and the directives in
// their comments.
func ownershipIn(files []*ast.File, fset *token.FileSet) (*ownership, error) {
	o := &ownership{writers: map[string][]string{}}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				t := spec.(*ast.TypeSpec) //nolint:forcetypeassert // of a type declaration
				view, ok := t.Type.(*ast.InterfaceType)
				if !ok {
					continue
				}
				all := writersIn(g.Doc)
				for _, m := range view.Methods.List {
					writers := all
					if own := writersIn(m.Doc); len(own) > 0 {
						writers = own
					}
					if len(writers) == 0 || len(m.Names) != 1 {
						continue
					}
					field := strings.TrimPrefix(m.Names[0].Name, "Get")
					if o.writers[field] != nil {
						return nil, fmt.Errorf("%s: field %s belongs to another view too", fset.Position(m.Pos()), field)
					}
					o.writers[field] = writers
				}
			}
		}
	}
	if len(o.writers) == 0 {
		return nil, errors.New(rules + ": no view has a directive " + directive)
	}
	return o, nil
}

// writersIn returns the packages of the directive in a comment; nil without one.
func writersIn(doc *ast.CommentGroup) []string {
	if doc == nil {
		return nil
	}
	for _, c := range doc.List {
		if list, ok := strings.CutPrefix(c.Text, directive); ok {
			return strings.Fields(list)
		}
	}
	return nil
}

// refuse returns why a package may not write a field; empty if it may.
func (o *ownership) refuse(field, room string) string {
	writers := o.writers[field]
	if len(writers) == 0 {
		return fmt.Sprintf("field %s of the snapshot has no owner: add its getter to a view", field)
	}
	if slices.ContainsFunc(writers, func(w string) bool { return room == w || strings.HasPrefix(room, w+"/") }) {
		return ""
	}
	return fmt.Sprintf("field %s of the snapshot is written by %s only", field, strings.Join(writers, ", "))
}
