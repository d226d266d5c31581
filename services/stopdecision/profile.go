package stopdecision

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// countSegment counts a segment that ends with an answer in its profile, and reports the
// profile. A decision that is made again counts nothing twice and reports the same milestone.
func (d *decision) countSegment() error {
	q := d.s.GetQuality()
	v := q.GetVerdict()
	if v == nil || q.GetProfile() == "" {
		return nil
	}
	seen := agent.Observation(d.in, KeyProfile)
	if seen == nil {
		count := &harnessv1.ProfileCount{Score: v.VerifierScore}
		for _, a := range q.GetAttempts() {
			if a.GetNumber() == v.GetDelivered() {
				count.Issues = quality.CategoriesOf(d.kept(a).GetIssues(), q.GetRefused())
			}
		}
		return &agent.NeedsError{Keys: []string{KeyProfile}, Profile: &harnessv1.ProfileChange{
			Profile: q.GetProfile(), RunId: d.in.GetRunId(), FirstSequence: d.s.GetFirstSequence(), Segment: d.s.GetSegment(),
			Change: &harnessv1.ProfileChange_Count{Count: count},
		}}
	}
	p := seen.GetProfile()
	profile := quality.ProfileOf(p)
	profile.Problem = p.GetProblem()
	d.Emit(event.QualityProfile(profile))
	if n := p.GetNumber(); n > 0 {
		v.IssueBits = proto.Float64(p.GetIssueBits())
		if m := quality.Milestone(n-1, n, p); m != nil {
			d.Emit(event.QualityMilestone(m))
		}
	}
	return nil
}
