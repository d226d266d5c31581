package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Template is a text with expressions.
type Template struct {
	parts []part
}

// part is a piece of text and the expression that follows it, if there is one.
type part struct {
	text    string
	program *Program
}

// Template compiles a text in which {{ expression }} is replaced by the value of the
// expression, of any type but bytes and types. Write {{ "{{" }} for literal braces. The
// error is a *fault.FieldError with a place in the text.
func (e *Env) Template(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, &fault.FieldError{Message: fmt.Sprintf("%d bytes exceed the limit of %d", len(text), maxTemplate)}
	}
	if !utf8.ValidString(text) {
		return nil, &fault.FieldError{Message: "is not valid UTF-8"}
	}
	t := &Template{}
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			t.parts = append(t.parts, part{text: text[at:]})
			return t, nil
		}
		start := at + open + 2
		length := expressionLength(text[start:])
		if length < 0 {
			line, column := place(text, start-2)
			return nil, &fault.FieldError{Line: line, Column: column, Message: "{{ has no }}"}
		}
		program, err := e.compile(text[start : start+length])
		if err == nil {
			err = printable(program)
		}
		if err != nil {
			return nil, move(err, text, start)
		}
		t.parts = append(t.parts, part{text[at : start-2], program})
		at = start + length + 2
	}
}

// expressionLength returns the offset of the }} that ends the expression at the start of
// text, -1 if there is none. Braces in literals do not count.
func expressionLength(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			raw := i > 0 && (text[i-1] == 'r' || text[i-1] == 'R')
			n := literalLength(text[i:], raw)
			if n < 0 {
				return -1
			}
			i += n - 1
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}' && strings.HasPrefix(text[i:], "}}"):
			return i
		}
	}
	return -1
}

// literalLength returns the length of the string literal at the start of text, including
// its quotes; -1 if it does not end.
func literalLength(text string, raw bool) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// move returns an error in an expression with its place in the whole text.
func move(err error, text string, start int) error {
	var at *fault.FieldError
	if !errors.As(err, &at) {
		return err
	}
	line, column := place(text, start)
	out := &fault.FieldError{Line: line, Column: column, Message: at.Message}
	switch {
	case at.Line == 1:
		out.Column += at.Column - 1
	case at.Line > 1:
		out.Line, out.Column = line+at.Line-1, at.Column
	}
	return out
}

// place returns the line and column of a byte of the text, from 1.
func place(text string, offset int) (line, column int) {
	before := text[:offset]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

func printable(p *Program) error {
	if p.output == types.BytesKind || p.output == types.TypeKind {
		return &fault.FieldError{Line: 1, Column: 1, Message: fmt.Sprintf("has a value of type %s, which has no text", p.outputName)}
	}
	return nil
}

// Render returns the text with the values of its expressions. Lists and maps are written
// with commas, maps in the order of their keys. It is an error if an expression has no
// value.
func (t *Template) Render(vars map[string]any) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		out.WriteString(p.text)
		if p.program == nil {
			continue
		}
		value, err := p.program.eval(vars)
		if err != nil {
			return "", err
		}
		write(&out, value, 0)
		if out.Len() > maxRendered {
			break
		}
	}
	return cut(out.String(), maxRendered), nil
}

func write(out *strings.Builder, value ref.Val, depth int) {
	if out.Len() > maxRendered || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case types.String:
		out.WriteString(cut(string(v), maxRendered))
	case types.Int:
		out.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		out.WriteString(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		out.WriteString(strconv.FormatFloat(float64(v), 'f', -1, 64))
	case types.Bool:
		out.WriteString(strconv.FormatBool(bool(v)))
	case types.Null:
		out.WriteString("null")
	case traits.Lister:
		between(out, v.Iterator(), func(item ref.Val) { write(out, item, depth+1) })
	case traits.Mapper:
		between(out, sortedMap{v}.Iterator(), func(key ref.Val) {
			write(out, key, depth+1)
			out.WriteByte(' ')
			write(out, v.Get(key), depth+1)
		})
	case usage:
		between(out, v.Iterator(), func(key ref.Val) {
			write(out, key, depth+1)
			out.WriteByte(' ')
			write(out, v.Get(key), depth+1)
		})
	default:
		if text, ok := value.ConvertToType(types.StringType).(types.String); ok {
			out.WriteString(string(text))
		}
	}
}

func between(out *strings.Builder, it traits.Iterator, each func(ref.Val)) {
	for first := true; it.HasNext() == types.True && out.Len() <= maxRendered; first = false {
		if !first {
			out.WriteString(", ")
		}
		each(it.Next())
	}
}

// cut cuts a text at a character boundary.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
