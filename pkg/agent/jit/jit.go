// Package jit decides which just-in-time instructions the model is given before
// a turn: the built-in rules, and those of an agent, which are CEL conditions
// with a text.
//
// It is pure. Rules are immutable once compiled and may be used by many
// goroutines. What is wrong with a rule is said by Compile, with its place; a
// rule that cannot be evaluated against a certain state is left out and
// reported, and never fails a turn.
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
	// Rules of one's own in an agent.
	maxRules = 64
	// Bytes of a rule's text, before and after its expressions are replaced.
	maxText = 4 << 10
	// Bytes of an error in a report.
	maxError = 256
)

var idFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`) })

// Context is what rules know of a run before a turn. All counts are of the run,
// but for Turn and MaxTurns as the snapshot has them.
type Context struct {
	// Number of the turn that is about to run, from 1, and the last one allowed.
	Turn, MaxTurns uint32
	// SegmentTurn and SegmentMax are the same within the segment; 0 means that it is
	// the first.
	SegmentTurn, SegmentMax uint32
	// Calls by tool, the harness's own tools included.
	ToolUsage map[string]uint32
	// Calls by the annotations of their tools, not by names.
	Reads, Writes, Explores uint32
	// Work items that are finished, and all.
	WorkItemsComplete, WorkItemsTotal uint32
	// Calls of work_item_add.
	ItemAdds uint32
	// Compactions so far.
	Compactions uint32
	// Files that have changed since the run began.
	FilesChanged uint32
	// Seconds that the run has worked.
	Seconds float64
	// Work items are left to be done.
	ItemsOpen bool
}

// Instruction is an instruction that the model is to be given.
type Instruction struct {
	// The rule.
	ID string
	// What the model is told, at most 4 KiB.
	Text string
	// It fires once in a run: its id is to be remembered.
	Once bool
}

// Failure is a rule that could not be evaluated and is left out.
type Failure struct {
	// The rule.
	ID string
	// Why, on one line of at most 256 bytes.
	Error string
}

type rule struct {
	id   string
	when *expr.Program
	text *expr.Template
	once bool
}

// Rules are an agent's rules, behind the built-in ones. A nil Rules has the
// built-in ones only.
type Rules struct {
	custom       []rule
	filesChanged bool
}

// Compile checks and compiles the rules of an agent. The error is a
// *fault.FieldError.
func Compile(rules []*harnessv1.JitRule) (*Rules, error) {
	if len(rules) > maxRules {
		return nil, fault.Invalid("jit", "has %d rules; at most %d are allowed", len(rules), maxRules)
	}
	r := &Rules{}
	first := make(map[string]int, len(rules))
	for i, given := range rules {
		compiled, err := compile(given)
		if before, taken := first[given.GetId()]; err == nil && taken {
			err = fault.Invalid("id", "%q is the id of jit[%d] already; give each rule its own", given.GetId(), before)
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
		return r, fault.Invalid("id", "is empty; give the rule a name")
	case !idFormat().MatchString(r.id):
		return r, fault.Invalid("id", "%q does not match [A-Za-z0-9_.-]{1,64}", content.Cut(r.id, 80))
	case slices.ContainsFunc(builtIn, func(b builtInRule) bool { return b.id == r.id }):
		return r, fault.Invalid("id", "%q is a built-in rule; choose another id", r.id)
	case strings.TrimSpace(given.GetText()) == "":
		return r, fault.Invalid("text", "is empty; write what the model is to be told")
	case len(given.GetText()) > maxText:
		return r, fault.Invalid("text", "has %d bytes; at most %d are allowed", len(given.GetText()), maxText)
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

// NeedsFilesChanged says whether a rule may look at the number of changed files,
// which somebody has to count.
func (r *Rules) NeedsFilesChanged() bool { return r != nil && r.filesChanged }

// Evaluate returns the rules whose conditions hold, the built-in ones first and
// then the agent's, each in their order, and the agent's rules that could not be
// evaluated. fired says whether a rule has fired in the run: one that fires once
// and has is not looked at.
func (r *Rules) Evaluate(c Context, fired func(id string) bool) ([]Instruction, []Failure) {
	if c.SegmentMax == 0 {
		c.SegmentTurn, c.SegmentMax = c.Turn, c.MaxTurns
	}
	var fires []Instruction
	for _, b := range builtIn {
		if !fired(b.id) && b.holds(c) {
			fires = append(fires, Instruction{ID: b.id, Text: b.text(c), Once: true})
		}
	}
	if r == nil || len(r.custom) == 0 {
		return fires, nil
	}
	var failed []Failure
	vars := c.variables()
	for _, rule := range r.custom {
		if rule.once && fired(rule.id) {
			continue
		}
		text, err := rule.evaluate(vars)
		switch {
		case err != nil:
			failed = append(failed, Failure{ID: rule.id, Error: content.Cut(err.Error(), maxError)})
		case text != "":
			fires = append(fires, Instruction{ID: rule.id, Text: text, Once: rule.once})
		}
	}
	return fires, failed
}

// evaluate is the text of a rule that fires, and empty when it does not.
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
		return "", errors.New("text: nothing is left of it once its expressions are replaced")
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
		"files_changed":       c.FilesChanged,
		"seconds_elapsed":     c.Seconds,
	}
}
