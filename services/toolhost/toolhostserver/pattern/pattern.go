// Package pattern matches the regular expressions that models write.
//
// A match ends soon after its context does, whatever the pattern and the line are: nothing
// continues in the background. For that the size of a pattern is bounded, so that one
// character costs less than a millisecond, and a match that could take longer than some
// milliseconds reads its line through a reader that ends with the context.
package pattern

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxSize bounds the size of a pattern, which is about the number of its instructions.
	// A character of a line costs at most some 20 ns for each.
	maxSize = 10_000
	// quickSteps is the product of the sizes of a pattern and a line up to which a match
	// takes some milliseconds at most.
	quickSteps = 1 << 18
)

// Pattern is a regular expression of bounded size, in RE2 syntax.
type Pattern struct {
	re     *regexp.Regexp
	prefix []byte // with which each match begins
	size   int    // the number of its instructions
}

// errTooLarge is written for the model.
var errTooLarge = fmt.Errorf("repeats more than %d characters; use smaller repetitions, such as .* instead of .{0,1000}", maxSize)

// Compile returns a pattern. The text of its error is for the model.
func Compile(text string) (*Pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if sizeOf(parsed) > maxSize {
		return nil, errTooLarge
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	// Not that of re, which leaves out a ^ before it.
	prefix, _ := program.Prefix()
	return &Pattern{re: re, prefix: []byte(prefix), size: len(program.Inst)}, nil
}

// sizeOf returns about the number of instructions of an expression, without compiling it:
// a repetition of a repetition would need the memory first. It is at most maxSize+1.
func sizeOf(e *syntax.Regexp) int {
	size := 1
	switch e.Op {
	case syntax.OpConcat, syntax.OpRepeat:
		size = 0
	case syntax.OpLiteral:
		size = len(e.Rune)
	default:
	}
	for _, sub := range e.Sub {
		size = min(size+sizeOf(sub), maxSize+1)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(e.Min, e.Max, 1)
	}
	return min(size, maxSize+1)
}

// Find returns the first match in a line, its beginning and end; nil if there is none, or if
// ctx ended before one was found.
func (p *Pattern) Find(ctx context.Context, line []byte) []int {
	from := bytes.Index(line, p.prefix)
	if from < 0 {
		return nil
	}
	if p.size*len(line) <= quickSteps {
		return p.re.FindIndex(line)
	}
	// Nothing that a match depends on comes before its prefix.
	match := p.re.FindReaderIndex(&reader{ctx: ctx, rest: line[from:]})
	if match == nil || ctx.Err() != nil {
		return nil
	}
	return []int{from + match[0], from + match[1]}
}

// reader reads the characters of a line until its context ends.
type reader struct {
	ctx  context.Context //nolint:containedctx // it lives during one match
	rest []byte
}

var errEnd = errors.New("the line or the context has ended")

// ReadRune implements io.RuneReader.
func (r *reader) ReadRune() (rune, int, error) {
	if len(r.rest) == 0 || r.ctx.Err() != nil {
		return 0, 0, errEnd
	}
	c, size := utf8.DecodeRune(r.rest)
	r.rest = r.rest[size:]
	return c, size, nil
}
