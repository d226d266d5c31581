package progress

import (
	"encoding/binary"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// minThreshold is the smallest number of turns that can be a stall.
const minThreshold = 2

// RecordStates records in p the statuses of the work items and of the outputs of the
// contract, each by its place in a list to which only the end is added. A status is 0 to 7.
// A status that an item or output had before in the segment changes nothing.
func RecordStates(p *harnessv1.ProgressTracker, items, outputs []byte) {
	p.ItemStatuses = addStatuses(p.GetItemStatuses(), items)
	p.OutputStatuses = addStatuses(p.GetOutputStatuses(), outputs)
}

func addStatuses(seen, statuses []byte) []byte {
	for i, status := range statuses {
		if i == len(seen) {
			seen = append(seen, 0)
		}
		seen[i] |= 1 << (status & 7)
	}
	return seen
}

// Fingerprint returns a hash of the progress in the segment so far: the statuses that its
// work items and outputs have had, and the number of distinct outcomes of its calls. Each
// only grows, so that a state to which a run returns changes nothing. The
// texts of the agent, the number of the turn and the records of the harness do not count.
func Fingerprint(p *harnessv1.ProgressTracker) uint64 {
	var count [4]byte
	binary.BigEndian.PutUint32(count[:], p.GetDistinctOutcomes())
	return digest("progress", string(p.GetItemStatuses()), string(p.GetOutputStatuses()), string(count[:]))
}

// Push appends the fingerprint of a turn with calls to p, which keeps the last
// 2 × threshold.
func Push(p *harnessv1.ProgressTracker, threshold uint32, fp uint64) {
	p.Fingerprints = push(p.Fingerprints, fp, 2*int(threshold))
}

// Stalled reports whether the last threshold fingerprints are equal. With a threshold
// below 2 no run is stalled.
func Stalled(p *harnessv1.ProgressTracker, threshold uint32) bool {
	all := p.GetFingerprints()
	if threshold < minThreshold || uint64(len(all)) < uint64(threshold) {
		return false
	}
	last := all[len(all)-int(threshold):]
	for _, fp := range last {
		if fp != last[0] {
			return false
		}
	}
	return true
}

// ResetWindow empties the window of p: a run can be stalled only after threshold more
// turns. It keeps the other fields.
func ResetWindow(p *harnessv1.ProgressTracker) { p.Fingerprints = nil }
