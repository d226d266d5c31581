package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

func feedback(thumb harnessv1.Thumb) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: "f", Caller: "ann", Input: &harnessv1.InboxItem_Feedback{Feedback: &harnessv1.Feedback{Thumb: thumb}}}
}

// TestFeedbackOnAnEndedRun is accepted, reported and kept; the run stays ended.
func TestFeedbackOnAnEndedRun(t *testing.T) {
	s := finished()
	s.Quality = &harnessv1.QualityState{}
	o := drain(t, s, feedback(harnessv1.Thumb_THUMB_DOWN))
	if verdict(o) != verdict(drain(t, finished())) || events(o) != "feedback.given input.accepted" || o.GetStep().GetSnapshot().GetQuality().GetThumb() != harnessv1.Thumb_THUMB_DOWN {
		t.Errorf("%s: %s", verdict(o), events(o))
	}
	if f := o.GetEvents()[0].GetFeedbackGiven(); f.GetThumb() != "down" || f.GetSegment() != 1 || f.GetCaller() != "ann" {
		t.Errorf("%v", f)
	}
	if o := drain(t, finished(), feedback(harnessv1.Thumb_THUMB_UP)); events(o) != "feedback.given input.accepted" {
		t.Errorf("without quality: %s", events(o))
	}
}

func TestFeedbackIsRefused(t *testing.T) {
	for name, o := range map[string]*harnessv1.Outcome{
		"parked": drain(t, parked("interrupted"), feedback(harnessv1.Thumb_THUMB_UP)), "neither": drain(t, finished(), feedback(harnessv1.Thumb_THUMB_UNSPECIFIED)),
	} {
		if events(o) != "input.rejected" {
			t.Errorf("%s: %s", name, events(o))
		}
	}
}

// TestFeedbackIsStoredInTheProfile with the score and excerpts, before it is reported.
func TestFeedbackIsStoredInTheProfile(t *testing.T) {
	s := finished()
	s.FirstSequence, s.Answer = 3, content.Inline(strings.Repeat("é", 400))
	s.Quality = &harnessv1.QualityState{Profile: "p", Verdict: &harnessv1.QualityVerdict{VerifierScore: proto.Float64(0.8)}}
	item := feedback(harnessv1.Thumb_THUMB_DOWN)
	item.Sequence = 11
	in := &harnessv1.StepInput{
		RunId: "r", Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{Items: []*harnessv1.InboxItem{item}, Cursor: 11}}}},
	}
	out, err := repair.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	c := out.GetNeeds().GetProfile()
	if keys := out.GetNeeds().GetKeys(); len(keys) != 1 || keys[0] != repair.NeedFeedback+"f" || c.GetProfile() != "p" || c.GetRunId() != "r" || c.GetFirstSequence() != 3 ||
		c.GetThumb().GetScore() != 0.8 || c.GetThumb().GetQuery() != "the goal" || c.GetThumb().GetAnswer() != strings.Repeat("é", 300) {
		t.Fatalf("needs %v", out)
	}
	in.Observed = append(in.Observed, &harnessv1.Observation{Key: repair.NeedFeedback + "f", Value: &harnessv1.Observation_Profile{Profile: &harnessv1.ProfileState{}}})
	if o := decide(t, in); events(o) != "feedback.given input.accepted" {
		t.Errorf("%s", events(o))
	}
}

// TestProfileScalesWhatIsRequired also of the preamble; a profile that cannot be read is reported.
func TestProfileScalesWhatIsRequired(t *testing.T) {
	for _, c := range []struct {
		profile *harnessv1.ProfileState
		percent uint32
		chars   string
	}{
		{&harnessv1.ProfileState{TotalRuns: 60, ScoredRuns: 1, ScoreSum: 0.9}, 115, "at least 230 characters"},
		{&harnessv1.ProfileState{Problem: "a newer program wrote it"}, 85, "at least 170 characters"},
	} {
		in := first(begun(), qualitySpec(quality.Drafting), nothing()...)
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: repair.NeedProfile, Value: &harnessv1.Observation_Profile{Profile: c.profile}})
		out, err := repair.Decide(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.GetNeeds().GetJobs() {
			in.Observed = append(in.Observed, &harnessv1.Observation{Key: agent.KeyJob + r.GetKey(), Value: &harnessv1.Observation_Job{Job: &harnessv1.JobState{Ended: true, Text: simple}}})
		}
		o := decide(t, in)
		if q := o.GetStep().GetSnapshot().GetQuality(); q.GetMultiplier() != c.percent || len(q.GetProfile()) != 32 {
			t.Errorf("%v", q)
		}
		if text := content.Text(o.GetAppended()[0].GetContent()); !strings.Contains(text, c.chars) {
			t.Errorf("the system prompt has no %q: %s", c.chars, text)
		}
		if reported := o.GetEvents()[1].GetQualityProfile().GetProblem(); reported != c.profile.GetProblem() {
			t.Errorf("reported %q", reported)
		}
	}
}
