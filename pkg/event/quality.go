package event

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// QualityComplexity reports how the work was classified.
func QualityComplexity(c *harnessv1.QualityComplexity) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityComplexity{QualityComplexity: c}}
}

// QualityPlanSelected reports which plan was chosen.
func QualityPlanSelected(p *harnessv1.QualityPlanSelected) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityPlanSelected{QualityPlanSelected: p}}
}

// QualityAlert reports a finding of the monitor in the text of an attempt.
func QualityAlert(a *harnessv1.QualityAlert) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityAlert{QualityAlert: a}}
}

// QualityContract reports whether an attempt has what its kind requires.
func QualityContract(c *harnessv1.QualityContract) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityContract{QualityContract: c}}
}

// QualityVerified reports what verifiers say about an attempt.
func QualityVerified(v *harnessv1.QualityVerified) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityVerified{QualityVerified: v}}
}

// QualityScored reports a score of an attempt.
func QualityScored(s *harnessv1.QualityScored) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityScored{QualityScored: s}}
}

// QualityRetry reports that another attempt begins.
func QualityRetry(attempt uint32, reason string, previous float64) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityRetry{QualityRetry: &harnessv1.QualityRetry{Attempt: attempt, Reason: reason, PreviousScore: previous}}}
}

// QualityDegraded reports that no attempt was good enough.
func QualityDegraded(d *harnessv1.QualityDegraded) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityDegraded{QualityDegraded: d}}
}

// QualityIterated reports the iterations of a segment.
func QualityIterated(i *harnessv1.QualityIterated) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityIterated{QualityIterated: i}}
}

// QualityProfile reports the profile after a segment was counted.
func QualityProfile(p *harnessv1.QualityProfile) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityProfile{QualityProfile: p}}
}

// QualityMilestone reports that a profile has become more mature.
func QualityMilestone(m *harnessv1.QualityMilestone) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_QualityMilestone{QualityMilestone: m}}
}

// ContextMetrics reports the results of tools in a segment that ends.
func ContextMetrics(m *harnessv1.ContextMetrics) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ContextMetrics{ContextMetrics: m}}
}

// FeedbackGiven reports that a user gave feedback on a segment.
func FeedbackGiven(f *harnessv1.FeedbackGiven) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_FeedbackGiven{FeedbackGiven: f}}
}
