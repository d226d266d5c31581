package contract

import (
	"hash/fnv"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bytes of the texts in a ledger.
const (
	maxEvidenceText = 128
	maxWhy          = 256
)

// NewLedger is the ledger of a resolved contract at which nobody has looked yet.
func NewLedger(c *harnessv1.TaskContract) *harnessv1.CoverageLedger {
	l := &harnessv1.CoverageLedger{}
	for _, o := range c.GetRequiredOutputs() {
		l.Requirements = append(l.Requirements, &harnessv1.RequirementCoverage{
			RequirementId: o.GetId(),
			Status:        harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET,
			Why:           "not looked at yet",
		})
	}
	return l
}

// Record puts what was seen into the ledger, each in the place of its output;
// what is about no output of the ledger is left out. turn is the turn after
// which was looked.
func Record(l *harnessv1.CoverageLedger, checks []*harnessv1.RequirementCoverage, turn uint32) {
	places := make(map[string]int, len(l.GetRequirements()))
	for i, r := range l.GetRequirements() {
		places[r.GetRequirementId()] = i
	}
	for _, seen := range checks {
		if i, is := places[seen.GetRequirementId()]; is {
			l.Requirements[i] = proto.CloneOf(seen)
			bound(l.Requirements[i])
		}
	}
	l.TurnNumber, l.Stored = turn, nil
}

// bound holds a coverage to the bounds of its texts and numbers.
func bound(r *harnessv1.RequirementCoverage) {
	r.Why = clip(r.GetWhy(), maxWhy)
	r.Confidence = clamp(r.GetConfidence())
	r.Evidence = r.Evidence[:min(len(r.Evidence), maxEvidence)]
	for _, e := range r.GetEvidence() {
		e.Text = clip(e.GetText(), maxEvidenceText)
	}
}

// Fingerprint is a hash of the statuses in a ledger; 0 when there are none. A
// change of it is progress.
func Fingerprint(l *harnessv1.CoverageLedger) uint64 {
	if len(l.GetRequirements()) == 0 {
		return 0
	}
	hash := fnv.New64a()
	statuses := make([]byte, 0, MaxOutputs)
	for _, r := range l.GetRequirements() {
		status := r.GetStatus()
		if status == harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNSPECIFIED {
			status = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
		}
		statuses = append(statuses, byte(status))
	}
	hash.Write(statuses)
	return hash.Sum64()
}
