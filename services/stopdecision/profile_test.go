package stopdecision_test

import (
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// TestSegmentIsCountedInItsProfile before its end, with the score and the issues of the attempt
// that is delivered.
func TestSegmentIsCountedInItsProfile(t *testing.T) {
	const atEnd = "quality_contract quality_verified quality_scored quality_profile quality_milestone context_metrics session_complete"
	j := qualityRun(t, quality.Drafting)
	j.artifacts("document")
	j.s.Quality.Profile, j.s.Quality.Refused = "p", true
	j.profile = &harnessv1.ProfileState{TotalRuns: 12, ScoredRuns: 12, ScoreSum: 6, Number: 10, Thumbs: 3, IssueBits: 1.5}
	o := j.decide()
	if v := o.GetStep().GetResult().GetQuality(); v.GetIssueBits() != 1.5 {
		t.Errorf("verdict %v", v)
	}
	if eventNames(o) != atEnd {
		t.Fatalf("events %s", eventNames(o))
	}
	if p := o.GetEvents()[3].GetQualityProfile(); p.GetTotalRuns() != 12 || p.GetMaturity() != quality.Developing || p.GetAvgQuality() != 0.5 || p.GetFeedbackRate() != 0.25 || p.GetProblem() != "" {
		t.Errorf("profile %v", p)
	}
	if m := o.GetEvents()[4].GetQualityMilestone(); m.GetLevel() != quality.Developing || m.GetTotalRuns() != 10 {
		t.Errorf("milestone %v", m)
	}
	count := j.counted.GetCount()
	if j.counted.GetProfile() != "p" || j.counted.GetFirstSequence() != 3 || j.counted.GetSegment() != 2 || count.GetScore() != 0.9 ||
		!slices.Equal(count.GetIssues(), []string{quality.Refused, quality.Other}) {
		t.Errorf("counted %v", j.counted)
	}
	if i := slices.Index(j.keys, stopdecision.KeyProfile); i < slices.Index(j.keys, stopdecision.KeyOutput) {
		t.Errorf("observed %v", j.keys)
	}
}

// TestOnlyTheThresholdIsAMilestone: a segment that was counted with another number reports none,
// nor does a profile that could not be used.
func TestOnlyTheThresholdIsAMilestone(t *testing.T) {
	for name, p := range map[string]*harnessv1.ProfileState{
		"11th": {TotalRuns: 11, Number: 11}, "9th of 10": {TotalRuns: 10, Number: 9}, "problem": {Problem: "a newer program wrote it"},
	} {
		j := qualityRun(t, quality.Chat)
		j.s.Quality.Profile, j.profile = "p", p
		o := j.decide()
		if !strings.Contains(eventNames(o), "quality_profile context_metrics session_complete") || verdict(o) != "DONE agent_done true" {
			t.Errorf("%s: %s, events %s", name, verdict(o), eventNames(o))
		}
		for _, e := range o.GetEvents() {
			if q := e.GetQualityProfile(); q != nil && (q.GetProblem() != p.GetProblem() || q.GetMaturity() == "") {
				t.Errorf("%s: %v", name, q)
			}
		}
	}
}

// TestOnlyAnswersAreCounted: a run without an answer that its turns end has none; one with an
// answer is counted without a verifier.
func TestOnlyAnswersAreCounted(t *testing.T) {
	for answered, want := range map[bool]string{true: "quality_contract quality_profile context_metrics session_complete", false: "context_metrics session_complete"} {
		j := qualityRun(t, quality.Chat)
		j.s.Quality.Profile, j.profile, j.s.MaxTurns = "p", &harnessv1.ProfileState{TotalRuns: 1, Number: 1}, 4
		if !answered {
			j.s.Answer, j.s.Summary = nil, nil
		}
		if o := j.decide(); eventNames(o) != want || (j.counted != nil) != answered || answered && j.counted.GetCount().Score != nil {
			t.Errorf("answered %t: events %s, counted %v", answered, eventNames(o), j.counted)
		}
	}
}

// TestVerifierIsCalibrated with the verdicts that users did not share.
func TestVerifierIsCalibrated(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Quality.Profile = "p"
	j.profile = &harnessv1.ProfileState{Mismatches: []*harnessv1.Mismatch{{Query: "earlier goal", Answer: "earlier answer", Score: 0.8, Thumb: harnessv1.Thumb_THUMB_DOWN}}}
	j.decide()
	if len(j.asked) != 1 || !strings.Contains(j.asked[0].GetPrompt(), "Goal: earlier goal\nOutput: earlier answer\nScore: 0.80, user: down") {
		t.Errorf("asked %v", j.asked)
	}
}
