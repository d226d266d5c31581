package agentfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxProblems bounds the reported problems of a file.
const maxProblems = 100

// Problem is a mistake at a place in a file.
type Problem struct {
	// File is the name of the file, as the user wrote it.
	File string
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Message is one line that includes what to do.
	Message string
}

// Error returns FILE:LINE:COLUMN: MESSAGE.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems are all mistakes in a file and the files that it names, sorted by place, the
// file itself first. As an error it is never empty.
type Problems []*Problem

// Error returns the first problem and the number of others.
func (p Problems) Error() string {
	text := p[0].Error()
	if len(p) > 1 {
		text += fmt.Sprintf(" (and %d more: harness agent check lists them)", len(p)-1)
	}
	return text
}

// report collects the problems of a file and those that it names.
type report struct {
	problems Problems
	files    []string
}

// add adds a problem; the text becomes one line.
func (r *report) add(src *source, line, column int, format string, args ...any) {
	if !slices.Contains(r.files, src.name) {
		r.files = append(r.files, src.name)
	}
	p := &Problem{
		File: src.name, Line: max(line, 1), Column: max(column, 1),
		Message: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "),
	}
	for _, other := range r.problems {
		if *other == *p {
			return
		}
	}
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p)
	}
}

// err returns nil if there is no problem.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b *Problem) int {
		return cmp.Or(
			slices.Index(r.files, a.File)-slices.Index(r.files, b.File),
			a.Line-b.Line, a.Column-b.Column,
		)
	})
	return r.problems
}

// place is a value in a file.
type place struct {
	src  *source
	node *yaml.Node
}

// places maps the path of a field in the spec, such as spec.agent.hooks[1].cel, to its
// place in a file.
type places map[string]place

// find returns the place of a field, or of the nearest enclosing one.
func (p places) find(field string) (place, bool) {
	for {
		if at, ok := p[field]; ok {
			return at, true
		}
		cut := strings.LastIndexAny(field, ".[")
		if cut < 0 {
			return place{}, false
		}
		field = field[:cut]
	}
}
