package quality

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// BenchmarkDecision reports the CPU of the stop decision about an attempt with 10 artifacts, with
// all of its rounds, compared with the decision about the same turn without judging.
func BenchmarkDecision(b *testing.B) {
	on, off := finished(true), finished(false)
	measure := func(s *harnessv1.Snapshot) time.Duration {
		start := cpu(b)
		for range b.N {
			decide(b, s)
		}
		return cpu(b) - start
	}
	with, without := measure(on), measure(off)
	n := float64(b.N) * 1000
	b.ReportMetric(float64(with.Nanoseconds())/n, "judged-µs/attempt")
	b.ReportMetric(float64(without.Nanoseconds())/n, "off-µs/attempt")
	b.ReportMetric(float64(with)/float64(without), "judged/off")
	b.ReportMetric(0, "ns/op")
}

func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// finished is a run whose agent considers itself done.
func finished(judged bool) *harnessv1.Snapshot {
	s := &harnessv1.Snapshot{
		Config:   runstate.Resolve(&harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{Enabled: proto.Bool(judged), Model: "openai:small"}}, 0),
		Workflow: workflow.Default(), Phase: harnessv1.Phase_PHASE_REFLECTING, Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, MaxTurns: 50, TurnCount: 4,
		Model: "openai:m", Segment: 1, FirstSequence: 3, Workspace: "/w", RunningSince: timestamppb.New(noon), ProgressTracker: &harnessv1.ProgressTracker{},
		Turn: &harnessv1.TurnState{Number: 4}, Answer: content.Inline(goodText), Summary: content.Inline("done"),
	}
	if !judged {
		return s
	}
	s.Quality = &harnessv1.QualityState{
		Kind: "synthesis", Level: quality.Medium, Multiplier: 100, Attempt: 1, Iteration: 1, AttemptFirstMessage: 2, StartTime: timestamppb.New(noon),
		AttemptChars: 700, Marked: true, Results: &harnessv1.ToolResultFigures{},
	}
	s.WorkItemLedger = &harnessv1.WorkItemLedger{}
	for n := range 10 {
		s.WorkItemLedger.Artifacts = append(s.WorkItemLedger.Artifacts, &harnessv1.Artifact{
			Id: fmt.Sprint("a", n), Kind: "insight", Title: "A fact", Content: content.Inline(goodText), Chars: 400,
			Citations: []*harnessv1.Citation{{Source: "s1", Quote: "Prices are low in winter."}},
		})
	}
	return s
}

// decide makes the observations that the decision needs until it has an outcome.
func decide(b *testing.B, s *harnessv1.Snapshot) {
	in := &harnessv1.StepInput{Now: timestamppb.New(noon), Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_TurnComplete{
		TurnComplete: &harnessv1.TurnComplete{TurnNumber: 4, AgentDone: true, CalledWorkComplete: true},
	}}}
	for {
		out, err := stopdecision.Decide(in)
		if err != nil {
			b.Fatal(err)
		}
		if o := out.GetOutcome(); o != nil {
			if !o.GetStep().GetResult().GetAccepted() {
				b.Fatalf("not accepted: %v", o.GetStep())
			}
			return
		}
		before := len(in.GetObserved())
		for _, key := range out.GetNeeds().GetKeys() {
			switch key {
			case stopdecision.KeyOutput:
				in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Output{Output: &harnessv1.OutputSeen{
					Goal: goal, Text: goodText, Chars: 700, Document: &harnessv1.DocumentFigures{},
				}}})
			case stopdecision.KeyProfile, stopdecision.KeyCalibration:
				in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Profile{Profile: &harnessv1.ProfileState{}}})
			case stopdecision.KeyQuotes:
				in.Observed = append(in.Observed, &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Quotes{Quotes: &harnessv1.QuotesSeen{}}})
			}
		}
		for _, r := range out.GetNeeds().GetJobs() {
			in.Observed = append(in.Observed, &harnessv1.Observation{Key: agent.KeyJob + r.GetKey(), Value: &harnessv1.Observation_Job{Job: &harnessv1.JobState{
				Ended: true, Usage: &harnessv1.Usage{InputTokens: 100}, Text: `{"passed":true,"score":0.9,"issues":[],"feedback":""}`,
			}}})
		}
		if len(in.GetObserved()) == before {
			b.Fatalf("needs %v", out.GetNeeds())
		}
	}
}
