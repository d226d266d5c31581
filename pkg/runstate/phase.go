// Package runstate holds the rules over a run's snapshot that several executors
// share: the phase machine, the resolved configuration, budgets, pending calls,
// remembered inputs and the result. A Draft is the record that a decision wants
// stored.
//
// Each field of a snapshot has one owner, which is the only one to assign it, or is shared for a
// reason: owner.go has a view for each owner.
//
// All functions are pure. They change a snapshot only if their comment states it;
// executors pass a clone.
package runstate

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Short names for the table below.
const (
	idle       = harnessv1.Phase_PHASE_IDLE
	planning   = harnessv1.Phase_PHASE_PLANNING
	executing  = harnessv1.Phase_PHASE_EXECUTING
	awaiting   = harnessv1.Phase_PHASE_AWAITING_TOOL
	reflecting = harnessv1.Phase_PHASE_REFLECTING
	done       = harnessv1.Phase_PHASE_DONE
)

type cell struct {
	phase harnessv1.Phase
	input harnessv1.PhaseInput
}

// table holds the legal changes of a single phase. Pause, resume and fail apply to
// many phases and are part of NextPhase.
var table = map[cell]harnessv1.Phase{
	{idle, harnessv1.PhaseInput_PHASE_INPUT_START}:              planning,
	{planning, harnessv1.PhaseInput_PHASE_INPUT_PLAN_COMMITTED}: executing,
	{planning, harnessv1.PhaseInput_PHASE_INPUT_NO_PLAN}:        done,
	{executing, harnessv1.PhaseInput_PHASE_INPUT_AWAIT_TOOL}:    awaiting,
	{awaiting, harnessv1.PhaseInput_PHASE_INPUT_ANSWERED}:       executing,
	{executing, harnessv1.PhaseInput_PHASE_INPUT_TURN_ENDED}:    reflecting,
	{awaiting, harnessv1.PhaseInput_PHASE_INPUT_ANSWERED_LAST}:  reflecting,
	{reflecting, harnessv1.PhaseInput_PHASE_INPUT_NEXT_TURN}:    executing,
	{reflecting, harnessv1.PhaseInput_PHASE_INPUT_REPLAN}:       planning,
	{reflecting, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE}:     done,
	{done, harnessv1.PhaseInput_PHASE_INPUT_REOPEN}:             idle,
}

// NextPhase is the only function that changes a phase. paused is the phase to
// return to, set only while a run is paused. ok is false if the change is illegal;
// both phases are then returned unchanged.
func NextPhase(phase, paused harnessv1.Phase, input harnessv1.PhaseInput) (next, nextPaused harnessv1.Phase, ok bool) {
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
	default: // in the table
	}
	to, ok := table[cell{phase, input}]
	if !ok || paused != none {
		return phase, paused, false
	}
	return to, none, true
}

// IllegalTransition is the error of an illegal change of phase.
type IllegalTransition struct {
	Phase harnessv1.Phase
	Input harnessv1.PhaseInput
}

// Error names the input and the phase.
func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("illegal transition: %s in %s", e.Input, e.Phase)
}

// ChangePhase changes the phase of s and records the change in step.
func ChangePhase(step *harnessv1.Step, s *harnessv1.Snapshot, input harnessv1.PhaseInput) error {
	next, paused, ok := NextPhase(s.GetPhase(), s.GetPausedPhase(), input)
	if !ok {
		return &IllegalTransition{Phase: s.GetPhase(), Input: input}
	}
	step.PhaseChanges = append(step.PhaseChanges, &harnessv1.PhaseChange{From: s.GetPhase(), Input: input, To: next})
	s.Phase, s.PausedPhase = next, paused
	return nil
}

// CheckPhases returns an error unless the changes of step are legal and lead from
// the snapshot before it to its own. Every step is checked before it is committed.
func CheckPhases(before *harnessv1.Snapshot, step *harnessv1.Step) error {
	phase, paused := before.GetPhase(), before.GetPausedPhase()
	for _, c := range step.GetPhaseChanges() {
		next, nextPaused, ok := NextPhase(phase, paused, c.GetInput())
		if !ok || c.GetFrom() != phase || c.GetTo() != next {
			return &IllegalTransition{Phase: phase, Input: c.GetInput()}
		}
		phase, paused = next, nextPaused
	}
	after := step.GetSnapshot()
	if after.GetPhase() != phase || after.GetPausedPhase() != paused {
		return fmt.Errorf("step: the snapshot is in %s, the phase changes lead to %s: %w", after.GetPhase(), phase, &IllegalTransition{Phase: phase})
	}
	return nil
}
