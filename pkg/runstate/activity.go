package runstate

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// maxToolUsage bounds the tools that are counted by name, otherTools included.
const maxToolUsage = 128

// otherTools is the name under which all further tools are counted.
const otherTools = "other"

// CountToolUse counts a call of a tool. A tool that is not known, or one too many,
// is counted as otherTools. It changes s.
func CountToolUse(s *harnessv1.Snapshot, name string, known bool) {
	if !known {
		name = otherTools
	}
	for _, u := range s.GetToolUsage() {
		if u.GetTool() == name {
			u.Calls++
			return
		}
	}
	if len(s.GetToolUsage()) >= maxToolUsage-1 && name != otherTools {
		CountToolUse(s, otherTools, true)
		return
	}
	s.ToolUsage = append(s.ToolUsage, &harnessv1.ToolUsage{Tool: name, Calls: 1})
}

// OwnActivity returns the activity of s for the caller to change. It creates one
// if there is none.
func OwnActivity(s *harnessv1.Snapshot) *harnessv1.Activity {
	if s.Activity == nil {
		s.Activity = &harnessv1.Activity{}
	}
	return s.Activity
}

// CountActivity counts a call that runs, by the annotations of its tool. It
// changes s.
func CountActivity(s *harnessv1.Snapshot, call interface {
	GetReads() bool
	GetWrites() bool
	GetExplores() bool
}) {
	if !call.GetReads() && !call.GetWrites() && !call.GetExplores() {
		return
	}
	a := OwnActivity(s)
	if call.GetReads() {
		a.Reads++
	}
	if call.GetWrites() {
		a.Writes++
	}
	if call.GetExplores() {
		a.Explores++
	}
}

// RecordOutcome records the result of a call for the detection of loops and of stalls, if they
// are enabled. strict and loose are the call's signatures. An outcome that is repeated counts
// as progress until the model has the message that its material does not fit. It changes s.
func RecordOutcome(s *harnessv1.Snapshot, tool string, strict, loose uint64, novelty Novelty) {
	if s.GetConfig().GetDoomLoop().GetEnabled() {
		if s.DoomLoop == nil {
			s.DoomLoop = &harnessv1.DoomLoop{}
		}
		progress.RecordCall(s.DoomLoop, tool, strict, loose)
	}
	if !s.GetConfig().GetStall().GetEnabled() {
		return
	}
	if s.ProgressTracker == nil {
		s.ProgressTracker = &harnessv1.ProgressTracker{}
	}
	t := s.ProgressTracker
	if novelty == Fresh || novelty == Repeated && !t.GetToldTooLarge() {
		t.DistinctOutcomes++
	}
	switch {
	case !s.GetConfig().GetContext().GetCompaction(): // no compaction will ask
	case novelty == Fresh:
		t.FreshOutcomes++
	default:
		t.RepeatedOutcomes++
	}
}
