package runstate_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const (
	none      = harnessv1.Phase_PHASE_UNSPECIFIED
	idle      = harnessv1.Phase_PHASE_IDLE
	planning  = harnessv1.Phase_PHASE_PLANNING
	executing = harnessv1.Phase_PHASE_EXECUTING
	awaiting  = harnessv1.Phase_PHASE_AWAITING_TOOL
	reflect   = harnessv1.Phase_PHASE_REFLECTING
	done      = harnessv1.Phase_PHASE_DONE

	start         = harnessv1.PhaseInput_PHASE_INPUT_START
	planCommitted = harnessv1.PhaseInput_PHASE_INPUT_PLAN_COMMITTED
	noPlan        = harnessv1.PhaseInput_PHASE_INPUT_NO_PLAN
	awaitTool     = harnessv1.PhaseInput_PHASE_INPUT_AWAIT_TOOL
	answered      = harnessv1.PhaseInput_PHASE_INPUT_ANSWERED
	answeredLast  = harnessv1.PhaseInput_PHASE_INPUT_ANSWERED_LAST
	turnEnded     = harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED
	nextTurn      = harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN
	replan        = harnessv1.PhaseInput_PHASE_INPUT_REPLAN
	complete      = harnessv1.PhaseInput_PHASE_INPUT_COMPLETE
	pause         = harnessv1.PhaseInput_PHASE_INPUT_PAUSE
	resume        = harnessv1.PhaseInput_PHASE_INPUT_RESUME
	fail          = harnessv1.PhaseInput_PHASE_INPUT_FAIL
	reopen        = harnessv1.PhaseInput_PHASE_INPUT_REOPEN
)

// state is a phase with, in brackets, the one that the run paused in.
type state struct{ phase, paused harnessv1.Phase }

func (s state) String() string { return fmt.Sprintf("%s(%s)", s.phase, s.paused) }

// legal is the whole table. Other pairs are refused.
var legal = map[state]map[harnessv1.PhaseInput]state{
	{idle, none}:      {start: {planning, none}, pause: {idle, idle}, fail: {done, none}},
	{planning, none}:  {planCommitted: {executing, none}, noPlan: {done, none}, pause: {idle, planning}, fail: {done, none}},
	{executing, none}: {awaitTool: {awaiting, none}, turnEnded: {reflect, none}, pause: {idle, executing}, fail: {done, none}},
	{awaiting, none}:  {answered: {executing, none}, answeredLast: {reflect, none}, pause: {idle, awaiting}, fail: {done, none}},
	{reflect, none}: {
		nextTurn: {executing, none}, replan: {planning, none}, complete: {done, none},
		pause: {idle, reflect}, fail: {done, none},
	},
	{done, none}: {reopen: {idle, none}},

	{idle, idle}:      {resume: {idle, none}, fail: {done, none}},
	{idle, planning}:  {resume: {planning, none}, fail: {done, none}},
	{idle, executing}: {resume: {executing, none}, fail: {done, none}},
	{idle, awaiting}:  {resume: {awaiting, none}, fail: {done, none}},
	{idle, reflect}:   {resume: {reflect, none}, fail: {done, none}},
}

func inputs() []harnessv1.PhaseInput {
	var all []harnessv1.PhaseInput
	for n := range harnessv1.PhaseInput_name {
		all = append(all, harnessv1.PhaseInput(n))
	}
	return append(all, 99)
}

// TestNextIsTotal calls every cell: every phase, paused in every phase, with
// every input, those that no run can have included.
func TestNextIsTotal(t *testing.T) {
	for phase := range harnessv1.Phase_name {
		for paused := range harnessv1.Phase_name {
			from := state{harnessv1.Phase(phase), harnessv1.Phase(paused)}
			reachable := legal[from] != nil
			for _, input := range inputs() {
				next, nextPaused, ok := runstate.NextPhase(from.phase, from.paused, input)
				to := state{next, nextPaused}
				want, isLegal := legal[from][input]
				switch {
				case reachable && isLegal && (!ok || to != want):
					t.Errorf("%s in %s goes to %s (%v), want %s", input, from, to, ok, want)
				case reachable && !isLegal && (ok || to != from):
					t.Errorf("%s in %s goes to %s (%v), want a refusal", input, from, to, ok)
				case !ok && to != from:
					t.Errorf("%s in %s was refused and went to %s", input, from, to)
				case ok && legal[to] == nil:
					t.Errorf("%s leads from %s, where no run is, to %s, where none should be", input, from, to)
				}
			}
		}
	}
}

// TestReachable walks from the start through everything that is allowed.
func TestReachable(t *testing.T) {
	seen := map[state]bool{{idle, none}: true}
	for work := []state{{idle, none}}; len(work) > 0; work = work[1:] {
		from := work[0]
		for _, input := range inputs() {
			phase, paused, ok := runstate.NextPhase(from.phase, from.paused, input)
			if !ok {
				continue
			}
			to := state{phase, paused}
			if to.paused != none && to.phase != idle {
				t.Errorf("%s leads to %s: paused outside of IDLE", input, to)
			}
			if from.phase == done && input != reopen {
				t.Errorf("%s leads out of DONE", input)
			}
			if back, _, resumed := runstate.NextPhase(to.phase, to.paused, resume); input == pause && (!resumed || back != from.phase) {
				t.Errorf("a pause of %s resumes in %s", from, back)
			}
			if from.phase != done {
				if end, _, failed := runstate.NextPhase(from.phase, from.paused, fail); !failed || end != done {
					t.Errorf("%s cannot fail", from)
				}
			}
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	want := map[state]bool{}
	for s := range legal {
		want[s] = true
	}
	if !maps.Equal(seen, want) {
		t.Errorf("reached %v", seen)
	}
}

func change(from harnessv1.Phase, input harnessv1.PhaseInput, to harnessv1.Phase) *harnessv1.PhaseChange {
	return &harnessv1.PhaseChange{From: from, Input: input, To: to}
}

func TestCheckPhases(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  state
		changes []*harnessv1.PhaseChange
		after   state
		legal   bool
	}{
		{"nothing changes", state{executing, none}, nil, state{executing, none}, true},
		{"one change", state{executing, none}, []*harnessv1.PhaseChange{change(executing, turnEnded, reflect)}, state{reflect, none}, true},
		{"a chain", state{done, none}, []*harnessv1.PhaseChange{
			change(done, reopen, idle), change(idle, start, planning), change(planning, planCommitted, executing),
		}, state{executing, none}, true},
		{"a pause", state{awaiting, none}, []*harnessv1.PhaseChange{change(awaiting, pause, idle)}, state{idle, awaiting}, true},
		{"resume and pause again", state{idle, executing}, []*harnessv1.PhaseChange{
			change(idle, resume, executing), change(executing, pause, idle),
		}, state{idle, executing}, true},

		{"a change without its entry", state{executing, none}, nil, state{reflect, none}, false},
		{"an entry without its change", state{executing, none}, []*harnessv1.PhaseChange{change(executing, turnEnded, reflect)}, state{executing, none}, false},
		{"a chain with a gap", state{idle, none}, []*harnessv1.PhaseChange{
			change(idle, start, planning), change(executing, turnEnded, reflect),
		}, state{reflect, none}, false},
		{"a forged beginning", state{idle, none}, []*harnessv1.PhaseChange{change(reflect, complete, done)}, state{done, none}, false},
		{"a forged end", state{reflect, none}, []*harnessv1.PhaseChange{change(reflect, nextTurn, done)}, state{done, none}, false},
		{"an input out of place", state{executing, none}, []*harnessv1.PhaseChange{change(executing, complete, done)}, state{done, none}, false},
		{"out of DONE by the back door", state{done, none}, []*harnessv1.PhaseChange{change(done, nextTurn, executing)}, state{executing, none}, false},
		{"a resume elsewhere", state{idle, awaiting}, []*harnessv1.PhaseChange{change(idle, resume, executing)}, state{executing, none}, false},
		{"a pause that forgets", state{awaiting, none}, []*harnessv1.PhaseChange{change(awaiting, pause, idle)}, state{idle, none}, false},
		{"a pause that remembers something else", state{awaiting, none}, []*harnessv1.PhaseChange{change(awaiting, pause, idle)}, state{idle, executing}, false},
		{"no phase at all", state{none, none}, []*harnessv1.PhaseChange{change(none, start, planning)}, state{planning, none}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := runstate.CheckPhases(
				&harnessv1.Snapshot{Phase: c.before.phase, PausedPhase: c.before.paused},
				&harnessv1.Step{PhaseChanges: c.changes, Snapshot: &harnessv1.Snapshot{Phase: c.after.phase, PausedPhase: c.after.paused}})
			if (err == nil) != c.legal {
				t.Fatalf("%v", err)
			}
			var illegal *runstate.IllegalTransition
			if err != nil && !errors.As(err, &illegal) {
				t.Errorf("%v is no IllegalTransition, so the run would not end as one", err)
			}
		})
	}
}

// TestEnterAndCheckAgree: what Enter writes is what CheckPhases accepts, and
// what it refuses leaves no trace.
func TestEnterAndCheckAgree(t *testing.T) {
	for from := range legal {
		for _, input := range inputs() {
			before := &harnessv1.Snapshot{Phase: from.phase, PausedPhase: from.paused}
			after := &harnessv1.Snapshot{Phase: from.phase, PausedPhase: from.paused}
			step := &harnessv1.Step{Snapshot: after}
			err := runstate.ChangePhase(step, after, input)
			if _, isLegal := legal[from][input]; isLegal != (err == nil) {
				t.Errorf("%s in %s: %v", input, from, err)
			}
			if err != nil && len(step.GetPhaseChanges()) > 0 {
				t.Errorf("%s in %s left a change", input, from)
			}
			if err := runstate.CheckPhases(before, step); err != nil {
				t.Errorf("%s in %s: %v", input, from, err)
			}
		}
	}
}
