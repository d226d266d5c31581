package progress

import (
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// ringSize is the number of calls that are kept.
	ringSize = 30
	// maxCycle is the length of the longest cycle that is detected, in calls.
	maxCycle = 5
	// Equal calls in a row, and repetitions of a longer cycle, that make a loop.
	strictEqual, strictCycles = 3, 2
	looseEqual, looseCycles   = 5, 3
	// maxToolName bounds the name of a tool, in bytes.
	maxToolName = 32
	// loosePause is the number of calls between two corrections of a loose loop.
	loosePause = 10

	defaultMaxCorrections = 3
)

// Loop is a cycle of calls that the calls of a run end in.
type Loop struct {
	// Strict is true if the results repeat too, not only tools and arguments.
	Strict bool
	// Length of the cycle in calls, 1 to 5.
	Length int
	// Repeats counts its whole repetitions in the calls that are kept.
	Repeats int
	// Tools of the last repetition, in order, each cut to 32 bytes.
	Tools []string
	// Last is true if the next turn that ends in a strict loop ends the run. Assess sets
	// it.
	Last bool
}

// RecordCall appends a call to d, which keeps the last 30.
func RecordCall(d *harnessv1.DoomLoop, tool string, strict, loose uint64) {
	d.Strict = push(d.Strict, strict, ringSize)
	d.Loose = push(d.Loose, loose, ringSize)
	tools := d.GetTools() + strings.ReplaceAll(content.Cut(tool, maxToolName), "\n", " ") + "\n"
	if strings.Count(tools, "\n") > maxCycle {
		tools = tools[strings.IndexByte(tools, '\n')+1:]
	}
	d.Tools = tools
}

// Detect returns the loop that the calls of d end in; nil if they end in none. A strict
// loop is three equal calls in a row, or a cycle of 2 to 5 calls twice, with equal
// results. A loose loop is five calls in a row, or a cycle three times, that are equal
// except for their results. The shortest cycle counts.
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

// names returns the last n names of tools.
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

// Finding is the result of Assess.
type Finding struct {
	// Loop that the turn ended in; nil if there is none. After a strict one, stalls are
	// not detected and their window is reset.
	Loop *Loop
	// Correct is true if the model gets the CorrectionText.
	Correct bool
	// Correction is the number of the correction, from 1; 0 if there is none. It is
	// always 1 for a loose loop.
	Correction uint32
	// End is true if the loop ends the run.
	End bool
}

// Assess returns what follows from a turn whose newCalls calls have been recorded in d,
// and counts the correction in d. Each turn that ends in a strict loop is corrected, up
// to the maximum number of corrections; the next such turn ends the run. The count
// restarts when the calls end in no strict loop, but not when one strict loop follows
// another. A loose loop is corrected at most once in 10 calls and never ends the run. A
// turn without calls changes nothing. Unset fields of cfg have their defaults.
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
		return assessLoose(d, loop)
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

// assessLoose assesses a loose loop. The count of calls since the last correction
// includes the corrected call, so 0 means that there was no correction.
func assessLoose(d *harnessv1.DoomLoop, loop *Loop) Finding {
	if loop == nil {
		return Finding{}
	}
	if d.CallsSinceCorrection > 0 && d.CallsSinceCorrection <= loosePause {
		return Finding{Loop: loop}
	}
	d.CallsSinceCorrection = 1
	return Finding{Loop: loop, Correct: true, Correction: 1}
}

// push appends to a list and removes the oldest items beyond limit.
func push[T any](list []T, item T, limit int) []T {
	list = append(list, item)
	return slices.Delete(list, 0, max(0, len(list)-limit))
}

// IsPoll reports whether the last call repeats the one before it with its result, or one of
// the five before it that runs commands: the agent may wait for something.
func IsPoll(d *harnessv1.DoomLoop, command string) bool {
	return periodic(d.GetStrict(), 1) > 0 || LastTool(d) == command && HasRepeat(d)
}

// LastTool returns the tool of the last call, cut to 32 bytes; empty if there is none.
func LastTool(d *harnessv1.DoomLoop) string {
	last := names(d.GetTools(), 1)
	if len(last) == 0 {
		return ""
	}
	return last[0]
}

// WaitText returns the text for the model about waiting.
func WaitText() string {
	return "You have made the same call again with the same result. If you wait for something, do not ask again and again: call wait. It costs no turns. " +
		`Wait until a command succeeds ({"command":"…"}), a file changes ({"path":"…"}), a background command ends ({"background":"bg1"}), or for a time ({"seconds":60}); ` +
		"set deadline to the seconds after which you give up. If you do not wait for anything, do something else."
}

// HasRepeat reports whether the last call repeats, with its result, one of the five
// before it: a loop may follow that Detect does not see yet.
func HasRepeat(d *harnessv1.DoomLoop) bool {
	signatures := d.GetStrict()
	for length := 1; length <= maxCycle; length++ {
		if periodic(signatures, length) > 0 {
			return true
		}
	}
	return false
}
