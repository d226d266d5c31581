// Package runstate holds the pure rules over a run's snapshot that more than
// one executor keeps: the phase machine, the resolved configuration, budgets,
// what is appended to the conversation, and the result.
//
// Everything here is a function of its arguments. A snapshot that is passed in
// is changed only by functions whose comment says so; executors pass a clone.
package runstate

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Short names for the table below.
const (
	idle      = harnessv1.Phase_PHASE_IDLE
	planning  = harnessv1.Phase_PHASE_PLANNING
	executing = harnessv1.Phase_PHASE_EXECUTING
	awaiting  = harnessv1.Phase_PHASE_AWAITING_TOOL
	reflect   = harnessv1.Phase_PHASE_REFLECTING
	done      = harnessv1.Phase_PHASE_DONE
)

type cell struct {
	phase harnessv1.Phase
	input harnessv1.PhaseInput
}

// table holds every legal change whose result is fixed. Pause, resume and
// failure hold for many phases and are in Next.
var table = map[cell]harnessv1.Phase{
	{idle, harnessv1.PhaseInput_PHASE_INPUT_START}:              planning,
	{planning, harnessv1.PhaseInput_PHASE_INPUT_PLAN_COMMITTED}: executing,
	{planning, harnessv1.PhaseInput_PHASE_INPUT_NO_PLAN}:        done,
	{executing, harnessv1.PhaseInput_PHASE_INPUT_AWAIT_TOOL}:    awaiting,
	{awaiting, harnessv1.PhaseInput_PHASE_INPUT_ANSWERED}:       executing,
	{executing, harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED}:    reflect,
	{awaiting, harnessv1.PhaseInput_PHASE_INPUT_ANSWERED_LAST}:  reflect,
	{reflect, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN}:       executing,
	{reflect, harnessv1.PhaseInput_PHASE_INPUT_REPLAN}:          planning,
	{reflect, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE}:        done,
	{done, harnessv1.PhaseInput_PHASE_INPUT_REOPEN}:             idle,
}

// Next is the one function that changes a phase. paused is the phase to return
// to and is set only while a run pauses. ok is false where the table has no
// entry; the phases are then returned as they were.
func Next(phase, paused harnessv1.Phase, input harnessv1.PhaseInput) (next, nextPaused harnessv1.Phase, ok bool) {
	const none = harnessv1.Phase_PHASE_UNSPECIFIED
	switch input {
	case harnessv1.PhaseInput_PHASE_INPUT_PAUSE:
		if phase == done || phase == none || paused != none {
			return phase, paused, false
		}
		return idle, phase, true
	case harnessv1.PhaseInput_PHASE_INPUT_RESUME:
		if phase != idle || paused == none {
			return phase, paused, false
		}
		return paused, none, true
	case harnessv1.PhaseInput_PHASE_INPUT_FAIL:
		if phase == done || phase == none {
			return phase, paused, false
		}
		return done, none, true
	}
	to, ok := table[cell{phase, input}]
	if !ok || paused != none {
		return phase, paused, false
	}
	return to, none, true
}

// IllegalTransition is the error of a change of phase that the table refuses.
type IllegalTransition struct {
	Phase harnessv1.Phase
	Input harnessv1.PhaseInput
}

// Error names the change.
func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("illegal transition: %s in %s", e.Input, e.Phase)
}

// Enter changes the phase of s and notes the change in step.
func Enter(step *harnessv1.Step, s *harnessv1.Snapshot, input harnessv1.PhaseInput) error {
	next, paused, ok := Next(s.GetPhase(), s.GetPausedPhase(), input)
	if !ok {
		return &IllegalTransition{Phase: s.GetPhase(), Input: input}
	}
	step.PhaseChanges = append(step.PhaseChanges, &harnessv1.PhaseChange{From: s.GetPhase(), Input: input, To: next})
	s.Phase, s.PausedPhase = next, paused
	return nil
}

// CheckPhases says whether step's changes lead, by the table, from the state
// before it to its snapshot. Every step is checked before it is committed.
func CheckPhases(before *harnessv1.Snapshot, step *harnessv1.Step) error {
	phase, paused := before.GetPhase(), before.GetPausedPhase()
	for _, c := range step.GetPhaseChanges() {
		next, nextPaused, ok := Next(phase, paused, c.GetInput())
		if !ok || c.GetFrom() != phase || c.GetTo() != next {
			return &IllegalTransition{Phase: phase, Input: c.GetInput()}
		}
		phase, paused = next, nextPaused
	}
	after := step.GetSnapshot()
	if after.GetPhase() != phase || after.GetPausedPhase() != paused {
		return fmt.Errorf("the step ends in %s, its changes in %s: %w", after.GetPhase(), phase, &IllegalTransition{Phase: phase})
	}
	return nil
}
