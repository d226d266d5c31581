package progress

import (
	"encoding/binary"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Fewer turns than these say nothing about progress.
const minThreshold = 2

// Facts are what progress shows in. What the agent says, the number of the turn
// and the harness's own records are none of them.
type Facts struct {
	// Fingerprint of the work items: statuses and digests of artifacts; 0 for none.
	WorkItems uint64
	// Fingerprint of the contract: statuses of its outputs; 0 for none.
	Coverage uint64
	// Distinct outcomes of calls in the segment: tool, arguments and result.
	Outcomes uint32
}

// Fingerprint is equal for two turns between which nothing has moved.
func Fingerprint(f Facts) uint64 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[0:], f.WorkItems)
	binary.BigEndian.PutUint64(b[8:], f.Coverage)
	binary.BigEndian.PutUint32(b[16:], f.Outcomes)
	return digest("progress", string(b[:]))
}

// Push appends the fingerprint of a turn with calls to p, which remembers the
// last 2 × threshold.
func Push(p *harnessv1.ProgressTracker, threshold uint32, fp uint64) {
	p.Fingerprints = push(p.Fingerprints, fp, 2*int(threshold))
}

// Stalled says whether the last threshold fingerprints are equal. A threshold
// below 2 stalls nothing.
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

// ResetWindow empties the window of p, so that it takes threshold more turns before
// a run is stalled. Its other fields stay.
func ResetWindow(p *harnessv1.ProgressTracker) { p.Fingerprints = nil }
