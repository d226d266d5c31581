package stopdecision_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// judgement is a run whose work is judged.
type judgement struct {
	t        *testing.T
	s        *harnessv1.Snapshot
	turn     *harnessv1.TurnComplete
	seen     *harnessv1.OutputSeen
	verifier func(*harnessv1.JobRequest) *harnessv1.JobState
	stop     bool // an interrupt arrived
	// profile is observed after the segment was counted, and before the verifiers are called.
	profile *harnessv1.ProfileState
	counted *harnessv1.ProfileChange

	asked []*harnessv1.JobRequest
	keys  []string // of all observations
}

// qualityRun returns a run of a kind that considers itself done in turn 4 of 10, with the answer of its first attempt.
func qualityRun(t *testing.T, kind string) *judgement {
	s := at(4)
	s.Config = runstate.Resolve(&harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: "openai:small"}}, 0)
	s.FirstSequence, s.Segment = 3, 2
	s.Quality = &harnessv1.QualityState{
		Kind: kind, Level: quality.Medium, Multiplier: 100, Attempt: 1, Iteration: 1, AttemptFirstMessage: 2, StartTime: timestamppb.New(noon.Add(-90 * 1e9)),
		AttemptChars: 700, Marked: true, Results: &harnessv1.ToolResultFigures{Chars: 9, Calls: 1, LargestTool: "read_file", LargestChars: 9, ByTool: map[string]uint32{"read_file": 1}},
	}
	s.Answer, s.Summary = content.Inline("answer 1"), content.Inline("summary 1")
	return &judgement{
		t: t, s: s, turn: &harnessv1.TurnComplete{TurnNumber: 4, AgentDone: true, CalledWorkComplete: true},
		seen: &harnessv1.OutputSeen{Goal: "the goal", Text: "the output", Chars: 700, Document: &harnessv1.DocumentFigures{}}, verifier: scored(0.9),
	}
}

// scored answers with a score; passed is true from 0.7 on.
func scored(score float64) func(*harnessv1.JobRequest) *harnessv1.JobState {
	return func(*harnessv1.JobRequest) *harnessv1.JobState {
		return &harnessv1.JobState{
			Ended: true, Usage: &harnessv1.Usage{InputTokens: 100, OutputTokens: 10, CostMicroUsd: 5},
			Text: fmt.Sprintf(`{"passed":%t,"score":%v,"issues":["thin"],"feedback":"Say more."}`, score >= 0.7, score),
		}
	}
}

// silent answers nothing.
func silent(*harnessv1.JobRequest) *harnessv1.JobState {
	return &harnessv1.JobState{Ended: true, Error: "overloaded"}
}

// decide makes the observations that the decision needs until it has an outcome.
func (j *judgement) decide() *harnessv1.Outcome {
	j.t.Helper()
	in := &harnessv1.StepInput{Now: timestamppb.New(noon), Step: &harnessv1.Step{Snapshot: j.s, Message: &harnessv1.Step_TurnComplete{TurnComplete: j.turn}}}
	if j.stop {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: stopdecision.KeyStop, Value: &harnessv1.Observation_StopAsked{StopAsked: true}})
	}
	j.asked, j.keys = nil, nil
	for range 5 {
		before := proto.CloneOf(in)
		out, err := stopdecision.Decide(in)
		if err != nil {
			j.t.Fatal(err)
		}
		if !proto.Equal(in, before) {
			j.t.Fatal("the input was changed")
		}
		if o := out.GetOutcome(); o != nil {
			if err := runstate.CheckPhases(j.s, o.GetStep()); err != nil {
				j.t.Fatal(err)
			}
			in.Observed = o.GetStep().GetObserved() // the stored observations are enough to decide again
			if again, err := stopdecision.Decide(in); err != nil || !proto.Equal(out, again) {
				j.t.Fatalf("decided again from what was observed: %v, %v; want %v", again, err, out)
			}
			return o
		}
		if out.GetNeeds() == nil {
			j.t.Fatalf("got %v", out)
		}
		in.Observed = append(in.Observed, j.observe(out.GetNeeds())...)
	}
	j.t.Fatal("needs more and more")
	return nil
}

func (j *judgement) observe(needs *harnessv1.Needs) []*harnessv1.Observation {
	var seen []*harnessv1.Observation
	for _, key := range needs.GetKeys() {
		j.keys = append(j.keys, key)
		switch key {
		case stopdecision.KeyOutput:
			seen = append(seen, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Output{Output: j.seen}})
		case stopdecision.KeyProfile, stopdecision.KeyCalibration:
			seen = append(seen, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Profile{Profile: j.profile}})
			if key == stopdecision.KeyProfile {
				j.counted = needs.GetProfile()
			}
		case stopdecision.KeyQuotes:
			seen = append(seen, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Quotes{Quotes: &harnessv1.QuotesSeen{}}})
		}
	}
	for _, r := range needs.GetJobs() {
		j.asked = append(j.asked, r)
		seen = append(seen, &harnessv1.Observation{Key: agent.KeyJob + r.GetKey(), Value: &harnessv1.Observation_Job{Job: j.verifier(r)}})
	}
	if len(seen) != len(needs.GetKeys()) {
		j.t.Fatalf("needs %v", needs)
	}
	return seen
}

// next lets the run try again, with another answer and output.
func (j *judgement) next(o *harnessv1.Outcome, n int) {
	j.t.Helper()
	if got := verdict(o); got != "repair quality_retry" {
		j.t.Fatalf("attempt %d: got %s", n-1, got)
	}
	j.again(o, n)
}

// again has the agent consider itself done after another turn.
func (j *judgement) again(o *harnessv1.Outcome, n int) {
	j.s = proto.CloneOf(o.GetStep().GetSnapshot())
	j.s.Phase, j.s.TurnCount = harnessv1.Phase_PHASE_REFLECTING, j.s.GetTurnCount()+1
	j.s.Turn, j.turn.TurnNumber = &harnessv1.TurnState{Number: j.s.GetTurnCount()}, j.s.GetTurnCount()
	j.s.Answer, j.s.Summary = content.Inline(fmt.Sprintf("answer %d", n)), content.Inline(fmt.Sprintf("summary %d", n))
	j.seen = proto.CloneOf(j.seen)
	j.seen.Text = fmt.Sprintf("output %d", n)
}

func (j *judgement) artifacts(kinds ...string) {
	j.s.WorkItemLedger = &harnessv1.WorkItemLedger{Attempts: j.s.GetWorkItemLedger().GetAttempts()}
	for i, kind := range kinds {
		j.s.WorkItemLedger.Artifacts = append(j.s.WorkItemLedger.Artifacts, &harnessv1.Artifact{
			Id: fmt.Sprintf("a%d", i+1), Kind: kind, Title: "secret title", Content: content.Inline("secret " + content.Text(j.s.GetAnswer())), Chars: 20,
		})
	}
}

func eventNames(o *harnessv1.Outcome) string {
	var all []string
	for _, e := range o.GetEvents() {
		r := e.ProtoReflect()
		all = append(all, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()))
	}
	return strings.Join(all, " ")
}

func delivered(o *harnessv1.Outcome) string {
	s := o.GetStep().GetSnapshot()
	text := content.Text(s.GetAnswer()) + ", " + content.Text(s.GetSummary())
	for _, a := range s.GetWorkItemLedger().GetArtifacts() {
		text += ", " + content.Text(a.GetContent())
	}
	return text
}
