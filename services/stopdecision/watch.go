package stopdecision

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// watch looks for calls that repeat and for a run in which nothing moves, after
// turns that made calls. It ends the run for either.
func (d *deciding) watch() (ended bool, err error) {
	if !d.s.GetTurn().GetCalledTools() || d.s.GetTurn().GetNumber() != d.turn.GetTurnNumber() {
		return false, nil
	}
	looping, ended, err := d.watchLoops()
	if ended || err != nil || looping {
		return ended, err
	}
	return d.watchProgress()
}

// watchLoops corrects an agent that repeats itself, and gives it up in the end.
// looping says that a loop goes on: stalls are not looked for meanwhile.
func (d *deciding) watchLoops() (looping, ended bool, err error) {
	s, cfg := d.s, d.s.GetConfig().GetDoomLoop()
	if !cfg.GetEnabled() || s.GetDoomLoop() == nil {
		return false, false, nil
	}
	found := progress.Assess(s.GetDoomLoop(), cfg, int(s.GetTurn().GetCalls()))
	if found.Loop == nil {
		return false, false, nil
	}
	if found.Correct || found.End {
		kind := "loose"
		if found.Loop.Strict {
			kind = "strict"
		}
		d.emit(&harnessv1.Event{Event: &harnessv1.Event_DoomLoopDetected{DoomLoopDetected: &harnessv1.DoomLoopDetected{
			Kind: kind, Length: uint32(found.Loop.Length), Repeats: uint32(found.Loop.Repeats), //nolint:gosec // at most 30
			Tools: found.Loop.Tools, Correction: found.Correction,
		}}})
	}
	if found.End {
		if err := d.lastLook(); err != nil {
			return false, false, err
		}
		return true, true, d.end(harnessv1.RunStatus_RUN_STATUS_STALLED, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "doom_loop",
			fmt.Sprintf("The agent repeated the same calls with the same results after %d corrections.", cfg.GetMaxCorrections()), false)
	}
	if found.Correct {
		d.guide("doom_loop", "", progress.CorrectionText(found.Loop, found.Correction))
	}
	if found.Correct && s.GetProgressTracker() != nil {
		progress.ResetWindow(s.GetProgressTracker())
	}
	return true, false, nil // also a loose one: it never ends a run
}

// watchProgress ends a run in which nothing has moved for stall.threshold turns.
func (d *deciding) watchProgress() (ended bool, err error) {
	s, cfg := d.s, d.s.GetConfig().GetStall()
	if !cfg.GetEnabled() {
		return false, nil
	}
	if s.ProgressTracker == nil {
		s.ProgressTracker = &harnessv1.ProgressTracker{}
	}
	before := append([]uint64(nil), s.GetProgressTracker().GetFingerprints()...)
	// A cycle that may become a loop is left to the detection of loops, which
	// corrects before it gives up, for as long as the history reaches.
	window := cfg.GetThreshold()
	if s.GetConfig().GetDoomLoop().GetEnabled() && progress.HasRepeat(s.GetDoomLoop()) {
		window *= 2
	}
	progress.Push(s.GetProgressTracker(), cfg.GetThreshold(), d.fingerprint())
	if !progress.Stalled(s.GetProgressTracker(), window) {
		return false, nil
	}
	if d.hasContract() {
		// Outputs may have come about that nobody has looked at since.
		if err := d.look(d.made.Contract.Cheap); err != nil {
			return false, err
		}
		d.judgeContract()
		s.ProgressTracker.Fingerprints = before
		progress.Push(s.GetProgressTracker(), cfg.GetThreshold(), d.fingerprint())
		if !progress.Stalled(s.GetProgressTracker(), window) {
			return false, nil
		}
	}
	d.emit(&harnessv1.Event{Event: &harnessv1.Event_StallDetected{StallDetected: &harnessv1.StallDetected{Turns: window}}})
	return true, d.end(harnessv1.RunStatus_RUN_STATUS_STALLED, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "stalled",
		fmt.Sprintf("Nothing has changed in the last %d turns that made calls.", window), false)
}

// fingerprint stands for everything that counts as progress.
func (d *deciding) fingerprint() uint64 {
	return progress.Fingerprint(progress.Facts{
		WorkItems: workitem.Fingerprint(d.s.GetWorkItemLedger()),
		Coverage:  contract.Fingerprint(d.s.GetCoverageLedger()),
		Outcomes:  d.s.GetProgressTracker().GetDistinctOutcomes(),
	})
}
