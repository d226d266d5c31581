package progress

import (
	"encoding/binary"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// minThreshold is the smallest number of turns that can be a stall.
const minThreshold = 2

// Facts are what counts as progress. The texts of the agent, the number of the turn and
// the records of the harness do not.
type Facts struct {
	// WorkItems is the fingerprint of the work items: statuses and digests of artifacts.
	WorkItems uint64
	// Coverage is the fingerprint of the contract: the statuses of its outputs.
	Coverage uint64
	// Outcomes counts the distinct outcomes of calls in the segment, by tool, arguments
	// and result.
	Outcomes uint32
}

// Fingerprint returns a hash that is equal for two turns without progress between them.
func Fingerprint(f Facts) uint64 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[0:], f.WorkItems)
	binary.BigEndian.PutUint64(b[8:], f.Coverage)
	binary.BigEndian.PutUint32(b[16:], f.Outcomes)
	return digest("progress", string(b[:]))
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
