package transcripts

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// judges are the models of a story that classify, plan and judge, and the profiles of its runs.
type judges struct {
	answers  map[string][]string // by purpose; one that begins with "! " is an error
	cycle    map[string][]string // by purpose, again and again, once the others are used up
	down     string              // why no model answers; empty: they do
	ended    map[string]*harnessv1.JobState
	requests map[string]*harnessv1.JobRequest
	profiles *profile.Profiles
}

func newJudges() judges {
	return judges{
		answers: map[string][]string{}, cycle: map[string][]string{}, ended: map[string]*harnessv1.JobState{}, requests: map[string]*harnessv1.JobRequest{},
		profiles: profile.New(profile.Config{Values: &values{}}),
	}
}

// values are the values of one run.
type values struct {
	data     map[runlog.ValueKey][]byte
	revision map[runlog.ValueKey]uint64
}

func (v *values) Value(_ context.Context, key runlog.ValueKey) ([]byte, uint64, error) {
	return v.data[key], v.revision[key], nil
}

func (v *values) PutValue(_ context.Context, key runlog.ValueKey, data []byte, revision uint64) (uint64, error) {
	if v.data == nil {
		v.data, v.revision = map[runlog.ValueKey][]byte{}, map[runlog.ValueKey]uint64{}
	}
	if v.revision[key] != revision {
		return 0, runlog.ErrFenced
	}
	v.data[key], v.revision[key] = data, revision+1
	return revision + 1, nil
}

// job returns how a job ended. A job has one result, however often it is asked for.
func (d *driver) job(r *harnessv1.JobRequest) *harnessv1.JobState {
	d.t.Helper()
	if before := d.judges.requests[r.GetKey()]; before != nil {
		if !proto.Equal(before, r) {
			d.t.Fatalf("two requests have the key %s:\n%v\n%v", r.GetKey(), before, r)
		}
		return proto.CloneOf(d.judges.ended[r.GetKey()])
	}
	state := &harnessv1.JobState{Ended: true, Model: r.GetModel(), Asked: timestamppb.New(d.now())}
	queued := d.judges.answers[r.GetPurpose()]
	if all := d.judges.cycle[r.GetPurpose()]; len(queued) == 0 && len(all) > 0 {
		n := len(d.judges.ended) % len(all)
		queued = all[n : n+1]
	}
	switch {
	case d.judges.down != "":
		state.Error = d.judges.down
	case len(queued) == 0:
		d.t.Fatalf("the script has no answer to %q", r.GetPurpose())
	default:
		d.judges.answers[r.GetPurpose()] = queued[1:]
		var failed bool
		if state.Text, failed = strings.CutPrefix(queued[0], "! "); failed {
			state.Text, state.Error = "", state.Text
		} else {
			state.Usage = &harnessv1.Usage{InputTokens: 200, OutputTokens: 20, CostMicroUsd: 7}
		}
	}
	d.judges.ended[r.GetKey()], d.judges.requests[r.GetKey()] = state, proto.CloneOf(r)
	return proto.CloneOf(state)
}

// observeWork returns what a decision observes about judged work; nil for another key.
func (d *driver) observeWork(step *harnessv1.Step, needs *harnessv1.Needs, key string) *harnessv1.Observation {
	d.t.Helper()
	for _, r := range needs.GetJobs() {
		if key == "job:"+r.GetKey() {
			return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Job{Job: d.job(r)}}
		}
	}
	switch key {
	case "output":
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Output{Output: d.output(step.GetSnapshot())}}
	case "quotes":
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Quotes{Quotes: d.quotes(step.GetSnapshot())}}
	}
	if needs.GetProfile() == nil {
		return nil
	}
	o, err := d.judges.profiles.Observe(d.t.Context(), "default", needs.GetProfile())
	if err != nil {
		d.t.Fatal(err)
	}
	o.Key = key
	return o
}

// output returns what an attempt has produced: the texts of the agent, and where they are short
// the summary and the artifacts.
func (d *driver) output(s *harnessv1.Snapshot) *harnessv1.OutputSeen {
	var parts, saved []string
	for _, m := range d.conversation.Messages {
		if text := content.Text(m.GetContent()); m.GetId() >= s.GetQuality().GetAttemptFirstMessage() && m.GetRole() == harnessv1.Role_ROLE_ASSISTANT && text != "" {
			parts = append(parts, text)
		}
	}
	for _, a := range quality.Current(s.GetWorkItemLedger().GetArtifacts()) {
		saved = append(saved, content.Text(a.GetContent()))
	}
	text := strings.Join(parts, "\n\n")
	if utf8.RuneCountInString(text) < 200 {
		text = strings.Join(append(append(parts, content.Text(s.GetSummary())), saved...), "\n\n")
	}
	goal := s.GetGoalPreview()
	if s.GetGoal() != nil {
		goal = content.Text(s.GetGoal())
	}
	return &harnessv1.OutputSeen{
		Text: text, Chars: uint64(utf8.RuneCountInString(text)), Marked: quality.HasMarker(text + "\n" + strings.Join(saved, "\n")),
		Document: quality.Figures(text), Goal: goal, Answer: quality.AnswerFigures(content.Text(s.GetAnswer())),
	}
}

// quotes looks up the quotes of the artifacts in the sources, which all say "the sources agree".
func (d *driver) quotes(s *harnessv1.Snapshot) *harnessv1.QuotesSeen {
	seen := &harnessv1.QuotesSeen{}
	for _, src := range s.GetTask().GetSources() {
		seen.Read = append(seen.Read, src.GetId())
	}
	for _, a := range quality.Current(s.GetWorkItemLedger().GetArtifacts()) {
		for _, c := range a.GetCitations() {
			seen.Quotes = append(seen.Quotes, &harnessv1.QuoteSeen{
				Artifact: a.GetId(), Source: c.GetSource(), Found: quality.QuotedIn(quality.Fold("In the end the sources agree."), c.GetQuote()), Count: 1,
			})
		}
	}
	return seen
}

// renderWork renders what a decision has observed about judged work, which no event repeats.
func renderWork(step *harnessv1.Step) string {
	var b strings.Builder
	for _, o := range step.GetObserved() {
		switch {
		case o.GetJob() != nil:
			answer := o.GetJob().GetText()
			if o.GetJob().GetError() != "" {
				answer = "! " + o.GetJob().GetError()
			}
			fmt.Fprintf(&b, "   ? a judge answers %s\n", quoted(answer, 160))
		case o.GetOutput() != nil:
			fmt.Fprintf(&b, "   ? the output has %d characters: %s\n", o.GetOutput().GetChars(), quoted(o.GetOutput().GetText(), 80))
		case o.GetProfile() != nil:
			fmt.Fprintf(&b, "   ? the profile has %d segments\n", o.GetProfile().GetTotalRuns())
		}
	}
	return b.String()
}
