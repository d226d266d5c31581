package progress

import (
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// Calls that are remembered.
	ringSize = 30
	// Longest cycle that is looked for, in calls.
	maxCycle = 5
	// Equal calls in a row, and repeats of a longer cycle, that make a loop.
	strictEqual, strictCycles = 3, 2
	looseEqual, looseCycles   = 5, 3
	// Bytes of a tool's name that are remembered.
	maxToolName = 32
	// Calls from one correction of a loose loop to the next.
	loosePause = 10

	defaultMaxCorrections = 3
)

// Loop is a cycle of calls at the end of what was done.
type Loop struct {
	// Results repeat too, not only tools and arguments.
	Strict bool
	// Calls after which it begins anew, 1 to 5.
	Length int
	// Whole times that it was seen, as far as calls are remembered.
	Repeats int
	// The tools of its last time, in order, each cut to 32 bytes.
	Tools []string
	// The next turn that ends in a strict loop ends the run. Set by Assess.
	Last bool
}

// RecordCall appends a call to d, which remembers the last 30.
func RecordCall(d *harnessv1.DoomLoop, tool string, strict, loose uint64) {
	d.Strict = push(d.Strict, strict, ringSize)
	d.Loose = push(d.Loose, loose, ringSize)
	tools := d.GetTools() + strings.ReplaceAll(content.Cut(tool, maxToolName), "\n", " ") + "\n"
	if strings.Count(tools, "\n") > maxCycle {
		tools = tools[strings.IndexByte(tools, '\n')+1:]
	}
	d.Tools = tools
}

// Detect finds the loop that the calls of d end in: three equal ones in a row or
// a cycle of 2 to 5 seen twice with the results, else five equal ones in a row
// or a cycle of 2 to 5 seen three times without. The shortest cycle counts. It
// is nil when the calls end in none, whatever was before.
func Detect(d *harnessv1.DoomLoop) *Loop {
	if l := find(d.GetStrict(), d.GetTools(), strictEqual, strictCycles); l != nil {
		l.Strict = true
		return l
	}
	return find(d.GetLoose(), d.GetTools(), looseEqual, looseCycles)
}

func find(signatures []uint64, tools string, equal, cycles int) *Loop {
	for length := 1; length <= maxCycle; length++ {
		need := cycles
		if length == 1 {
			need = equal
		}
		repeats := (length + periodic(signatures, length)) / length
		if len(signatures) < length || repeats < need {
			continue
		}
		return &Loop{Length: length, Repeats: repeats, Tools: names(tools, length)}
	}
	return nil
}

// names are the last n names of tools.
func names(tools string, n int) []string {
	all := strings.Split(strings.TrimSuffix(tools, "\n"), "\n")
	return all[max(0, len(all)-n):]
}

// periodic counts, from the last call back, the calls that equal the one length
// calls before them.
func periodic(signatures []uint64, length int) int {
	n := 0
	for i := len(signatures) - 1; i >= length && signatures[i] == signatures[i-length]; i-- {
		n++
	}
	return n
}

// Finding is what Assess makes of a turn.
type Finding struct {
	// The loop that the turn ended in; nil for none. While a strict one goes on, a
	// stall is not looked for and its window starts anew.
	Loop *Loop
	// The model is to be told, in the words of the function CorrectionText.
	Correct bool
	// Which correction of the loop this is, from 1; 0 for none. A loose loop is
	// always told the first.
	Correction uint32
	// The run ends for it.
	End bool
}

// Assess says what follows from a turn whose calls, newCalls of them, have been
// noted in d, and counts it in d. A strict loop is corrected after each turn
// that ends in one, up to the maximum of corrections, and the next such turn
// ends the run; the count starts anew once the calls end in no strict loop, not
// when they go from one into another. A loose loop is corrected at most once in 10 calls and never ends a run. A turn
// without calls changes nothing. cfg has defaults where it is unset.
func Assess(d *harnessv1.DoomLoop, cfg *harnessv1.DoomLoopConfig, newCalls int) Finding {
	off := cfg != nil && cfg.Enabled != nil && !cfg.GetEnabled()
	if off || newCalls <= 0 {
		return Finding{}
	}
	if d.CallsSinceCorrection > 0 {
		d.CallsSinceCorrection += uint32(newCalls) //nolint:gosec // calls of one turn
	}
	loop := Detect(d)
	if loop == nil || !loop.Strict {
		d.Corrections = 0
		return judgeLoose(d, loop)
	}
	limit := uint32(defaultMaxCorrections)
	if cfg != nil && cfg.MaxCorrections != nil {
		limit = cfg.GetMaxCorrections()
	}
	if d.Corrections >= limit {
		return Finding{Loop: loop, End: true}
	}
	d.Corrections++
	loop.Last = d.Corrections == limit
	return Finding{Loop: loop, Correct: true, Correction: d.Corrections}
}

// judgeLoose keeps the count of calls since the last correction, in which the
// call that was corrected is the first, so that 0 can stand for none.
func judgeLoose(d *harnessv1.DoomLoop, loop *Loop) Finding {
	if loop == nil {
		return Finding{}
	}
	if d.CallsSinceCorrection > 0 && d.CallsSinceCorrection <= loosePause {
		return Finding{Loop: loop}
	}
	d.CallsSinceCorrection = 1
	return Finding{Loop: loop, Correct: true, Correction: 1}
}

// push appends to a list and forgets the oldest beyond limit.
func push[T any](list []T, item T, limit int) []T {
	list = append(list, item)
	return slices.Delete(list, 0, max(0, len(list)-limit))
}

// HasRepeat says whether the last call repeats, with its result, one of the five before
// it: the calls may be on their way into a loop that Detect does not see yet.
func HasRepeat(d *harnessv1.DoomLoop) bool {
	signatures := d.GetStrict()
	for length := 1; length <= maxCycle; length++ {
		if periodic(signatures, length) > 0 {
			return true
		}
	}
	return false
}
