// Package jit decides which just-in-time instructions the model gets before a turn:
// those of the built-in rules and of the rules of an agent, which are CEL conditions
// with a text.
//
// It is pure. Compiled rules never change and are safe for concurrent use. Compile
// reports an invalid rule with its place. A rule that cannot be evaluated for a certain
// state is left out and reported; it never fails a turn.
package jit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// maxRules bounds the rules of an agent.
	maxRules = 64
	// maxText bounds the text of a rule, before and after its expressions are replaced,
	// in bytes.
	maxText = 4 << 10
	// maxError bounds the error of a Failure, in bytes.
	maxError = 256
)

var idFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`) })

// Context is what rules know of a run before a turn. All counts are those of the run.
type Context struct {
	// Turn is the number of the next turn, from 1; MaxTurns is the last one allowed.
	Turn, MaxTurns uint32
	// SegmentTurn and SegmentMax are the same within the segment; 0 in the first segment.
	SegmentTurn, SegmentMax uint32
	// ToolUsage counts the calls of each tool, the harness's own tools included.
	ToolUsage map[string]uint32
	// Reads, Writes and Explores count calls by the annotations of their tools.
	Reads, Writes, Explores uint32
	// WorkItemsComplete and WorkItemsTotal count the finished work items and all of them.
	WorkItemsComplete, WorkItemsTotal uint32
	// ItemAdds counts the calls of work_item_add.
	ItemAdds uint32
	// Compactions counts the compactions so far: the committed changes of the plan by which the view of
	// the conversation is made.
	Compactions uint32
	// ContextUsed and ContextMax are the tokens in the model's window and those that fit.
	ContextUsed, ContextMax uint32
	// FilesChanged counts the files that have changed since the run started.
	FilesChanged uint32
	// Seconds is how long the run has worked.
	Seconds float64
	// ItemsOpen is true if a work item is not finished, and NextItem names the first of
	// those; empty without one.
	ItemsOpen bool
	NextItem  string
}

// Instruction is a text of a rule for the model.
type Instruction struct {
	// ID of the rule.
	ID string
	// Text for the model, at most 4 KiB.
	Text string
	// Once is true if the rule fires only once in a run: the caller records its id.
	Once bool
}

// Failure reports a rule that could not be evaluated and is left out.
type Failure struct {
	// ID of the rule.
	ID string
	// Error is one line of at most 256 bytes.
	Error string
}

type rule struct {
	id   string
	when *expr.Program
	text *expr.Template
	once bool
}

// Rules are the built-in rules and those of an agent. A nil Rules has only the built-in
// ones.
type Rules struct {
	custom       []rule
	filesChanged bool
}

// Compile checks and compiles the rules of an agent. The error is a
// *fault.FieldError.
func Compile(rules []*harnessv1.JitRule) (*Rules, error) {
	if len(rules) > maxRules {
		return nil, fault.Invalid("jit", "%d rules exceed the limit of %d", len(rules), maxRules)
	}
	r := &Rules{}
	first := make(map[string]int, len(rules))
	for i, given := range rules {
		compiled, err := compile(given)
		if before, taken := first[given.GetId()]; err == nil && taken {
			err = fault.Invalid("id", "duplicate id %q: jit[%d] has it", given.GetId(), before)
		}
		if err != nil {
			return nil, fault.In(fmt.Sprintf("jit[%d]", i), err)
		}
		first[given.GetId()] = i
		r.custom = append(r.custom, compiled)
		const files = "files_changed"
		r.filesChanged = r.filesChanged || strings.Contains(given.GetWhen(), files) || strings.Contains(given.GetText(), files)
	}
	return r, nil
}

func compile(given *harnessv1.JitRule) (rule, error) {
	r := rule{id: given.GetId(), once: given.Once == nil || given.GetOnce()}
	switch {
	case r.id == "":
		return r, fault.Invalid("id", "is required: the name of the rule")
	case !idFormat().MatchString(r.id):
		return r, fault.Invalid("id", "%q does not match [A-Za-z0-9_.-]{1,64}", content.Cut(r.id, 80))
	case slices.ContainsFunc(builtIn, func(b builtInRule) bool { return b.id == r.id }):
		return r, fault.Invalid("id", "%q is the id of a built-in rule; choose another", r.id)
	case strings.TrimSpace(given.GetText()) == "":
		return r, fault.Invalid("text", "is required: the text for the model")
	case len(given.GetText()) > maxText:
		return r, fault.Invalid("text", "%d bytes exceed the limit of %d", len(given.GetText()), maxText)
	}
	var err error
	if r.when, err = expr.Jit.Compile(given.GetWhen()); err != nil {
		return r, fault.In("when", err)
	}
	if r.text, err = expr.Jit.Template(given.GetText()); err != nil {
		return r, fault.In("text", err)
	}
	return r, nil
}

// NeedsFilesChanged reports whether a rule may read FilesChanged, which is costly to
// count.
func (r *Rules) NeedsFilesChanged() bool { return r != nil && r.filesChanged }

// Evaluate returns the instructions of the rules whose conditions are true, the built-in
// rules first, and the rules that could not be evaluated. fired reports whether a rule
// has fired in the run; a rule that fires once is not evaluated again.
func (r *Rules) Evaluate(c Context, fired func(id string) bool) ([]Instruction, []Failure) {
	if c.SegmentMax == 0 {
		c.SegmentTurn, c.SegmentMax = c.Turn, c.MaxTurns
	}
	var instructions []Instruction
	for _, b := range builtIn {
		if !fired(b.id) && b.holds(c) {
			instructions = append(instructions, Instruction{ID: b.id, Text: b.text(c), Once: true})
		}
	}
	if r == nil || len(r.custom) == 0 {
		return instructions, nil
	}
	var failures []Failure
	vars := c.variables()
	for _, rule := range r.custom {
		if rule.once && fired(rule.id) {
			continue
		}
		text, err := rule.evaluate(vars)
		switch {
		case err != nil:
			failures = append(failures, Failure{ID: rule.id, Error: content.Cut(err.Error(), maxError)})
		case text != "":
			instructions = append(instructions, Instruction{ID: rule.id, Text: text, Once: rule.once})
		}
	}
	return instructions, failures
}

// evaluate returns the text of a rule that fires; empty if it does not.
func (r rule) evaluate(vars map[string]any) (string, error) {
	holds, err := r.when.Holds(vars)
	if err != nil {
		return "", fmt.Errorf("when: %w", err)
	}
	if !holds {
		return "", nil
	}
	text, err := r.text.Render(vars)
	if err != nil {
		return "", fmt.Errorf("text: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("text: is empty after its expressions are replaced")
	}
	return content.Cut(text, maxText), nil
}

func (c Context) variables() map[string]any {
	usage := make(map[string]int64, len(c.ToolUsage))
	for tool, calls := range c.ToolUsage {
		usage[tool] = int64(calls)
	}
	return map[string]any{
		"turn":                c.Turn,
		"max_turns":           c.MaxTurns,
		"tool_usage":          usage,
		"reads":               c.Reads,
		"writes":              c.Writes,
		"explores":            c.Explores,
		"work_items_complete": c.WorkItemsComplete,
		"work_items_total":    c.WorkItemsTotal,
		"compaction_count":    c.Compactions,
		"context_used":        c.ContextUsed,
		"context_max":         c.ContextMax,
		"files_changed":       c.FilesChanged,
		"seconds_elapsed":     c.Seconds,
	}
}
