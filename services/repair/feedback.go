package repair

import (
	"cmp"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
)

// profile returns the key and the state of the run's profile; an empty key and nil if the run
// has none. Its error asks for the observation.
func (d *decision) profile() (string, *harnessv1.ProfileState, error) {
	key := ""
	if name := cmp.Or(d.s.GetTask().GetProfile(), d.s.GetWorkspace()); name != "" {
		key = profile.Key(name)
	}
	seen := agent.Observation(d.in, NeedProfile)
	if seen == nil {
		return "", nil, &agent.NeedsError{Keys: []string{NeedProfile}, Profile: &harnessv1.ProfileChange{Profile: key, Tier: d.s.GetTier()}}
	}
	return key, seen.GetProfile(), nil
}

// applyFeedback stores what a user says of the segment that has ended: in the state, and in the
// profile if the segment was judged.
func (d *decision) applyFeedback(f *harnessv1.Feedback) (refusal string, err error) {
	if refusal := input.RecheckFeedback(d.s, f); refusal != "" {
		return refusal, nil
	}
	q := d.s.GetQuality()
	if q.GetVerdict() != nil && q.GetProfile() != "" && agent.Observation(d.in, NeedFeedback+d.item) == nil {
		return "", d.storeFeedback(f)
	}
	if q != nil {
		q.Thumb = f.GetThumb()
	}
	d.Emit(event.FeedbackGiven(&harnessv1.FeedbackGiven{Thumb: input.Thumb(f.GetThumb()), Segment: d.s.GetSegment(), Caller: d.caller}))
	return "", nil
}

// storeFeedback returns the request to store feedback in the profile.
func (d *decision) storeFeedback(f *harnessv1.Feedback) error {
	s := d.s
	query, answer := s.GetGoalPreview(), ""
	var err error
	if s.GetGoal() != nil {
		if query, err = d.text(s.GetGoal()); err != nil {
			return err
		}
	}
	if s.GetAnswer() != nil {
		if answer, err = d.text(s.GetAnswer()); err != nil {
			return err
		}
	}
	return &agent.NeedsError{Keys: []string{NeedFeedback + d.item}, Profile: &harnessv1.ProfileChange{
		Profile: s.GetQuality().GetProfile(), RunId: d.in.GetRunId(), FirstSequence: s.GetFirstSequence(), Segment: s.GetSegment(),
		Change: &harnessv1.ProfileChange_Thumb{Thumb: &harnessv1.ProfileThumb{
			Thumb: f.GetThumb(), Score: s.GetQuality().GetVerdict().VerifierScore, Query: profile.Excerpt(query), Answer: profile.Excerpt(answer),
		}},
	}}
}
