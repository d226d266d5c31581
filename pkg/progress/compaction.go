package progress

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// maxIdleCompactions is the number of compactions in a row without new outcomes after which
// the agent receives TooLargeText.
const maxIdleCompactions = 3

// Compacted takes into account that the view of a run has changed: the agent may have to read
// results again that the view no longer shows. It restarts the window of the stall and the calls in which loops
// are detected, and counts compactions in a row since which the agent has only repeated
// itself. t and d may be nil.
//
// Once the agent has received TooLargeText, a compaction restarts nothing unless new outcomes
// came about since the one before.
func Compacted(t *harnessv1.ProgressTracker, d *harnessv1.DoomLoop) {
	restarts := true
	if t != nil {
		switch {
		case t.GetFreshOutcomes() > 0:
			t.IdleCompactions = 0
		case t.GetRepeatedOutcomes() > 0:
			t.IdleCompactions++
		}
		restarts = !t.GetToldTooLarge() || t.GetFreshOutcomes() > 0
		t.FreshOutcomes, t.RepeatedOutcomes = 0, 0
	}
	if !restarts {
		return
	}
	if t != nil {
		ResetWindow(t)
	}
	if d != nil {
		d.Strict, d.Loose, d.Tools = nil, nil, ""
	}
}

// MustTellTooLarge reports whether the agent is to receive TooLargeText: once in a segment,
// after three compactions in a row between which it only repeated itself.
func MustTellTooLarge(t *harnessv1.ProgressTracker) bool {
	return t.GetIdleCompactions() >= maxIdleCompactions && !t.GetToldTooLarge()
}

// TooLargeText returns the text for the model about material that does not fit.
func TooLargeText() string {
	return "You have read nothing new for a while, only what you had read before. Together it does not fit into your context window: " +
		"each part that you read again pushes out another one. Do not read all of it again. Read one small part at a time, by a search, or with offset and limit. " +
		"Write what you need from it into a file, or into the notes of a work item, and continue from these notes. " +
		"Example: search the files for the names that matter, note each with its file and line, then read only these lines. " +
		"From now on, reading the same again does not count as progress."
}
