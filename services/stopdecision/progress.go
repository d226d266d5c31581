package stopdecision

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// checkProgress detects calls that repeat and turns without progress, after turns that
// made calls. It ends the run for either.
func (d *decision) checkProgress() (ended bool, err error) {
	if !d.s.GetTurn().GetCalledTools() || d.s.GetTurn().GetNumber() != d.turn.GetTurnNumber() {
		return false, nil
	}
	looping, ended, err := d.checkLoops()
	if ended || err != nil || looping {
		return ended, err
	}
	return d.checkStall()
}

// checkLoops corrects an agent that repeats itself, and ends the run after the last
// correction. looping is true if the turn ended in a loop; stalls are not detected then.
func (d *decision) checkLoops() (looping, ended bool, err error) {
	s, cfg := d.s, d.s.GetConfig().GetDoomLoop()
	if !cfg.GetEnabled() || s.GetDoomLoop() == nil {
		return false, false, nil
	}
	found := progress.Assess(s.GetDoomLoop(), cfg, int(s.GetTurn().GetCalls()))
	if found.Loop == nil {
		d.suggestWait()
		return false, false, nil
	}
	if found.Correct || found.End {
		kind := "loose"
		if found.Loop.Strict {
			kind = "strict"
		}
		d.Emit(event.DoomLoopDetected(&harnessv1.DoomLoopDetected{
			Kind: kind, Length: uint32(found.Loop.Length), Repeats: uint32(found.Loop.Repeats), //nolint:gosec // at most 30
			Tools: found.Loop.Tools, Correction: found.Correction,
		}))
	}
	if found.End {
		if err := d.refreshCoverage(); err != nil {
			return false, false, err
		}
		return true, true, d.end(harnessv1.RunStatus_RUN_STATUS_STALLED, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "doom_loop",
			fmt.Sprintf("The agent repeated the same calls with the same results after %d corrections.", cfg.GetMaxCorrections()), false)
	}
	if found.Correct {
		d.GuideOn("doom_loop", "doom_loop", "", progress.CorrectionText(found.Loop, found.Correction))
	}
	if found.Correct && s.GetProgressTracker() != nil {
		progress.ResetWindow(s.GetProgressTracker())
	}
	return true, false, nil // a loose loop too, which never ends a run
}

// runCommand is the name of the tool that runs commands.
const runCommand = "run_command"

// suggestWait tells an agent that repeats a call of the tool wait, once a segment and before it
// counts as a loop. The harness's own calls have no result that changes by itself.
func (d *decision) suggestWait() {
	s := d.s
	if s.GetDoomLoop().GetToldWait() || !s.GetConfig().GetTools().GetWait() || !progress.IsPoll(s.GetDoomLoop(), runCommand) {
		return
	}
	if last := progress.LastTool(s.GetDoomLoop()); harnesstool.Find(last) != nil {
		return
	}
	s.DoomLoop.ToldWait = true
	d.GuideOn("wait", "wait", "", progress.WaitText())
}

// checkStall ends a run that made no progress for stall.threshold turns.
func (d *decision) checkStall() (ended bool, err error) {
	s, cfg := d.s, d.s.GetConfig().GetStall()
	if !cfg.GetEnabled() {
		return false, nil
	}
	if s.ProgressTracker == nil {
		s.ProgressTracker = &harnessv1.ProgressTracker{}
	}
	before := append([]uint64(nil), s.GetProgressTracker().GetFingerprints()...)
	// The detection of loops corrects the agent before it ends the run, so a cycle that
	// may become a loop gets a window of twice the threshold.
	window := cfg.GetThreshold()
	if s.GetConfig().GetDoomLoop().GetEnabled() && progress.HasRepeat(s.GetDoomLoop()) {
		window *= 2
	}
	d.pushFingerprint(cfg.GetThreshold())
	if !progress.Stalled(s.GetProgressTracker(), window) {
		return false, nil
	}
	if asked, err := d.askQuestions(); asked || err != nil {
		progress.ResetWindow(s.GetProgressTracker()) // the answers may fill the gap
		return asked, err
	}
	if d.hasContract() {
		// Outputs may have appeared since the last check.
		if err := d.check(d.definition.Contract.Cheap); err != nil {
			return false, err
		}
		d.evaluateContract()
		s.ProgressTracker.Fingerprints = before
		d.pushFingerprint(cfg.GetThreshold())
		if !progress.Stalled(s.GetProgressTracker(), window) {
			return false, nil
		}
	}
	d.Emit(event.StallDetected(window))
	return true, d.end(harnessv1.RunStatus_RUN_STATUS_STALLED, harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, "stalled",
		fmt.Sprintf("Nothing has changed in the last %d turns that made calls.", window), false)
}

// pushFingerprint records the progress of the run after a turn.
func (d *decision) pushFingerprint(threshold uint32) {
	p := d.s.GetProgressTracker()
	progress.RecordStates(p, workitem.Statuses(d.s.GetWorkItemLedger()), contract.Statuses(d.s.GetCoverageLedger()))
	progress.Push(p, threshold, progress.Fingerprint(p))
}
