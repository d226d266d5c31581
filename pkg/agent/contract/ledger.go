package contract

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Sizes of the texts in a ledger, in bytes.
const (
	maxEvidenceText = 128
	maxWhy          = 256
)

// NewLedger returns the ledger of a resolved contract before any check.
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

// Record stores the results of checks in the ledger. It ignores checks of outputs that
// are not in the ledger. turn is the turn that the checks followed.
func Record(l *harnessv1.CoverageLedger, checks []*harnessv1.RequirementCoverage, turn uint32) {
	places := make(map[string]int, len(l.GetRequirements()))
	for i, r := range l.GetRequirements() {
		places[r.GetRequirementId()] = i
	}
	for _, seen := range checks {
		if i, is := places[seen.GetRequirementId()]; is {
			l.Requirements[i] = proto.CloneOf(seen)
			limit(l.Requirements[i])
		}
	}
	l.TurnNumber, l.Stored = turn, nil
}

// limit cuts the texts and numbers of a coverage to their limits.
func limit(r *harnessv1.RequirementCoverage) {
	r.Why = clip(r.GetWhy(), maxWhy)
	r.Confidence = clamp(r.GetConfidence())
	r.Evidence = r.Evidence[:min(len(r.Evidence), maxEvidence)]
	for _, e := range r.GetEvidence() {
		e.Text = clip(e.GetText(), maxEvidenceText)
	}
}

// Statuses returns the statuses of the outputs in a ledger, in their order.
func Statuses(l *harnessv1.CoverageLedger) []byte {
	statuses := make([]byte, 0, len(l.GetRequirements()))
	for _, r := range l.GetRequirements() {
		status := r.GetStatus()
		if status == harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNSPECIFIED {
			status = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
		}
		statuses = append(statuses, byte(status))
	}
	return statuses
}
