package stopdecision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// blocking has agent_stop block, or not any more.
func (j *judgement) blocking(blocks bool) {
	j.s.Definition = nil
	if blocks {
		j.s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
			Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: "because",
		}}}
	}
}

// afterBlock lets a run that agent_stop has blocked try again.
func (j *judgement) afterBlock(o *harnessv1.Outcome, n int) {
	j.t.Helper()
	if got := verdict(o); got != "repair agent_stop_hook_blocked" {
		j.t.Fatalf("attempt %d: got %s", n-1, got)
	}
	j.again(o, n)
}

// TestSnapshotStaysSmall: the state has at most 16 KiB after five attempts with long answers, long
// issues and 200 artifacts, as it is stored, and any number of attempts keeps it there. A worker
// that reads it from there delivers the best.
func TestSnapshotStaysSmall(t *testing.T) {
	for _, c := range []struct {
		name                 string
		attempts, iterations int
	}{{"five attempts", 5, 1}, {"all attempts of all iterations", 10, 5}} {
		t.Run(c.name, func(t *testing.T) {
			j := qualityRun(t, quality.FullPipeline)
			j.s.Config.Quality.Iterations, j.s.MaxTurns = proto.Uint32(uint32(c.iterations)), 100
			j.s.Config.Quality.Retry = &harnessv1.QualityRetryConfig{MaxAttemptsSynthesis: proto.Uint32(uint32(c.attempts))}
			j.s.Config.Quality.RetryOnFallback = proto.Bool(true)
			kinds := slices.Repeat([]string{"insight", "recommendation", "document", "insight"}, 50)
			blobs := map[string][]byte{}
			put := func(data []byte) (*harnessv1.BlobRef, error) {
				ref := &harnessv1.BlobRef{Digest: content.Digest(data), Size: uint64(len(data))}
				blobs[ref.GetDigest()] = data
				return ref, nil
			}
			answer := func(n int) string { return fmt.Sprintf("answer %d %s", n, strings.Repeat("a", runlog.MaxInline-20)) }
			var o *harnessv1.Outcome
			made, largest := 0, 0
			for n := 1; n <= c.attempts*c.iterations; n++ {
				if n > 1 {
					j.next(o, n)
				}
				made = n
				j.artifacts(kinds...)
				j.s.Answer, j.s.Summary = content.Inline(answer(n)), content.Inline(strings.Repeat("s", runlog.MaxInline-20))
				score := 0.01
				if n == 2 {
					score = 0.02 // the best
				}
				j.verifier = func(*harnessv1.JobRequest) *harnessv1.JobState {
					issues := slices.Repeat([]string{`"` + strings.Repeat("i", 490) + `"`}, 10)
					return &harnessv1.JobState{Ended: true, Text: fmt.Sprintf(`{"passed":false,"score":%v,"issues":[%s],"feedback":"No."}`, score, strings.Join(issues, ","))}
				}
				j.s.Quality.Attempt = 1 // a severe gap does not end the attempts
				if n%c.attempts == 0 {
					j.s.Quality.Attempt = uint32(c.attempts)
				}
				o = j.decide()
				s := o.GetStep().GetSnapshot()
				if err := runstate.Pack(s, put); err != nil {
					t.Fatal(err)
				}
				largest = max(largest, proto.Size(s)-2*runlog.MaxInline) // without the answer and the summary of the run
				if err := runlog.SpillTo(t.Context(), s, 16<<10, func(_ context.Context, data []byte) (*harnessv1.BlobRef, error) { return put(data) }); err != nil {
					t.Fatal(err)
				}
				if size := proto.Size(s); size > 16<<10 {
					t.Fatalf("%d bytes after attempt %d", size, n)
				}
				if err := runstate.UnpackLedgers(s, func(ref *harnessv1.BlobRef) ([]byte, error) { return blobs[ref.GetDigest()], nil }); err != nil {
					t.Fatal(err)
				}
				if o.GetStep().GetTo() == runlog.End {
					break
				}
			}
			if largest > 8<<10 {
				t.Errorf("attempts have %d bytes in the snapshot", largest)
			}
			v := o.GetStep().GetResult().GetQuality()
			got := o.GetStep().GetSnapshot().GetAnswer()
			text := content.Text(got) + string(blobs[got.GetBlob().GetDigest()])
			if verdict(o) != "DONE agent_done false" || v.GetDelivered() != 2 || text != answer(2) || made < c.attempts {
				t.Errorf("%s after %d attempts delivers %.12s: %v", verdict(o), made, text, v)
			}
			if got := len(o.GetStep().GetResult().GetDeliverables()); got != 200 {
				t.Errorf("%d deliverables", got)
			}
		})
	}
}

// TestAcceptedWorkIsNotDegraded by an iteration after it that fails: the accepted one is delivered.
func TestAcceptedWorkIsNotDegraded(t *testing.T) {
	for _, c := range []struct {
		scores   []float64
		degraded bool
		accepted uint32
	}{
		{[]float64{0.9, 0.01, 0.01}, false, 1}, // chat has two attempts
		{[]float64{0.01, 0.01, 0.9}, false, 1},
		{[]float64{0.01, 0.01, 0.02, 0.02}, true, 0},
	} {
		j := qualityRun(t, quality.Chat)
		j.s.Config.Quality.Iterations, j.s.MaxTurns = proto.Uint32(2), 50
		var o *harnessv1.Outcome
		var degraded int
		for i, score := range c.scores {
			if i > 0 {
				if strings.Contains(eventNames(o), "quality_degraded") {
					t.Fatalf("%v: degraded before the end", c.scores)
				}
				j.next(o, i+1)
			}
			j.seen.Chars = 700
			if score < 0.1 {
				j.seen.Chars = 3 // the contract fails
			}
			j.verifier = scored(score)
			o = j.decide()
			degraded += strings.Count(eventNames(o), "quality_degraded")
		}
		v := o.GetStep().GetResult().GetQuality()
		if (degraded == 1) != c.degraded || v.GetDegraded() != c.degraded || verdict(o) != fmt.Sprintf("DONE agent_done %t", !c.degraded) {
			t.Errorf("%v: %s, %d times degraded, %v", c.scores, verdict(o), degraded, v)
		}
		if e := iterated(o); len(e) != 1 || e[0].GetAcceptedCount() != c.accepted || e[0].GetIterations() != 2 {
			t.Errorf("%v: %v", c.scores, e)
		}
	}
}

// TestFailedPassIsNotCalledAccepted in the message that asks for the next one.
func TestFailedPassIsNotCalledAccepted(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Config.Quality.Iterations, j.s.Quality.Attempt, j.seen.Chars, j.verifier = proto.Uint32(2), 2, 3, scored(0.01)
	o := j.decide()
	if text := content.Text(o.GetAppended()[0].GetContent()); !strings.Contains(text, "No attempt was good enough yet: this is pass 2 of 2") {
		t.Errorf("the model reads %s", text)
	}
}

func iterated(o *harnessv1.Outcome) (all []*harnessv1.QualityIterated) {
	for _, e := range o.GetEvents() {
		if e.GetQualityIterated() != nil {
			all = append(all, e.GetQualityIterated())
		}
	}
	return all
}

// TestBestOutlivesABlock: work that agent_stop sends back is delivered if what follows is worse.
func TestBestOutlivesABlock(t *testing.T) {
	for _, c := range []struct {
		name  string
		score float64
		chars uint64
		want  string
		best  uint32
	}{
		{"worse", 0.0, 3, "answer 1, summary 1, secret answer 1", 1}, {"as good", 0.9, 700, "answer 2, summary 2, secret answer 2", 2},
		{"better", 0.95, 700, "answer 2, summary 2, secret answer 2", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := qualityRun(t, quality.Drafting)
			j.s.Config.Quality.Iterations = proto.Uint32(1)
			j.artifacts("document")
			j.blocking(true)
			o := j.decide()
			j.afterBlock(o, 2)
			j.artifacts("document")
			j.blocking(false)
			j.s.Quality.Attempt = 3 // the last
			j.seen.Chars, j.verifier = c.chars, scored(c.score)
			o = j.decide()
			if v := o.GetStep().GetResult().GetQuality(); delivered(o) != c.want || v.GetDelivered() != c.best || v.GetAttempts() != 2 || v.GetDegraded() ||
				verdict(o) != "DONE agent_done true" || strings.Contains(eventNames(o), "quality_degraded") {
				t.Errorf("%s delivers %s: %v", verdict(o), delivered(o), v)
			}
		})
	}
}

// TestNoneDeliveredIsBelowAnEarlierOne: whatever attempts, iterations, blocks and ends without the gates
// follow each other, the delivered attempt has the highest combined score, and its answer and artifacts.
func TestNoneDeliveredIsBelowAnEarlierOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := qualityRun(t, quality.Drafting)
		j.s.Config.Quality.Iterations, j.s.MaxTurns = proto.Uint32(rapid.Uint32Range(1, 5).Draw(r, "iterations")), 9
		var combined []float64
		var accepted, iterations int
		for n := 1; ; n++ {
			score := rapid.SampledFrom([]float64{0, 0.01, 0.3, 0.55, 0.7, 0.9, 1}).Draw(r, "score")
			kind := rapid.SampledFrom([]string{"document", "insight"}).Draw(r, "kind")
			j.artifacts(kind)
			j.blocking(rapid.Bool().Draw(r, "blocks"))
			j.verifier = scored(score)
			if j.s.GetTurnCount() >= j.s.GetMaxTurns() {
				score = 0 // it is not verified
			}
			combined = append(combined, quality.Combined(kind == "document", score))
			o := j.decide()
			iterations += len(iterated(o))
			for _, e := range iterated(o) {
				accepted = int(e.GetAcceptedCount())
			}
			if o.GetStep().GetTo() != runlog.End {
				if verdict(o) == "repair agent_stop_hook_blocked" {
					j.again(o, n+1)
				} else {
					j.next(o, n+1)
				}
				continue
			}
			best := slices.Max(combined)
			at := len(combined)
			for at > 0 && combined[at-1] != best {
				at--
			}
			v := o.GetStep().GetResult().GetQuality()
			if v.GetCombined() != best || v.GetDelivered() != uint32(at) || delivered(o) != fmt.Sprintf("answer %d, summary %d, secret answer %d", at, at, at) {
				r.Fatalf("of %v %s is delivered: %v", combined, delivered(o), v)
			}
			if limit := int(j.s.GetConfig().GetQuality().GetIterations()); iterations != min(limit-1, 1) || accepted > limit {
				r.Fatalf("iterations reported %d times, %d accepted of %d", iterations, accepted, limit)
			}
			return
		}
	})
}

// TestIterationsAreReportedOnce: a run whose turns are used up between iterations reports them too, and
// one that agent_stop sends back reports them at its end.
func TestIterationsAreReportedOnce(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Config.Quality.Iterations, j.s.MaxTurns = proto.Uint32(3), 5
	o := j.decide()
	j.next(o, 2)
	o = j.decide()
	if e := iterated(o); verdict(o) != "DONE max_turns false" || len(e) != 1 || e[0].GetIterations() != 2 || e[0].GetAcceptedCount() != 1 || e[0].GetBestScore() != 0.95 {
		t.Errorf("%s: %v", verdict(o), e)
	}
	if !strings.HasSuffix(eventNames(o), "quality_contract quality_iterated context_metrics session_complete") || delivered(o) != "answer 1, summary 1" {
		t.Errorf("%s delivers %s", eventNames(o), delivered(o))
	}

	j = qualityRun(t, quality.Chat)
	j.s.Config.Quality.Iterations, j.s.Quality.Iteration = proto.Uint32(2), 2
	j.blocking(true)
	o = j.decide()
	if len(iterated(o)) > 0 {
		t.Errorf("reported before the end: %s", eventNames(o))
	}
	j.afterBlock(o, 2)
	j.blocking(false)
	o = j.decide()
	if e := iterated(o); verdict(o) != "DONE agent_done true" || len(e) != 1 || e[0].GetAcceptedCount() != 1 {
		t.Errorf("%s: %v", verdict(o), e)
	}

	j = qualityRun(t, quality.Chat)
	j.s.Config.Quality.Iterations, j.s.Answer, j.s.MaxTurns = proto.Uint32(2), nil, 4
	if o := j.decide(); len(iterated(o)) > 0 {
		t.Errorf("without an attempt: %s", eventNames(o))
	}
}

// TestWorkAfterABlockIsJudged without its gates too: the end of the run is not that of the accepted attempt. An end
// that only waited for sub-agents is.
func TestWorkAfterABlockIsJudged(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.blocking(true)
	j.afterBlock(j.decide(), 2)
	j.s.MaxTurns = j.s.GetTurnCount()
	o := j.decide()
	if v := o.GetStep().GetResult().GetQuality(); verdict(o) != "DONE max_turns false" || delivered(o) != "answer 1, summary 1" || v.GetAttempts() != 2 || v.GetDelivered() != 1 {
		t.Errorf("%s delivers %s: %v", verdict(o), delivered(o), v)
	}

	j = qualityRun(t, quality.Chat)
	j.s.Quality.Attempts = []*harnessv1.QualityAttempt{{Number: 1, Combined: 0.95}}
	j.s.Quality.Verdict = &harnessv1.QualityVerdict{Attempts: 1, Delivered: 1, Combined: 0.95}
	j.turn = &harnessv1.TurnComplete{TurnNumber: 4, Finish: &harnessv1.Finish{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Input: harnessv1.PhaseInput_PHASE_INPUT_COMPLETE, Kind: "agent_done", Accepted: true,
	}}
	if o := j.decide(); verdict(o) != "DONE agent_done true" || eventNames(o) != "context_metrics session_complete" {
		t.Errorf("%s: %s", verdict(o), eventNames(o))
	}
}

// TestAttemptsOfOlderPrograms are delivered, which kept the answer in the attempt and the artifacts of all attempts.
func TestAttemptsOfOlderPrograms(t *testing.T) {
	old := func(n uint32, combined float64) (*harnessv1.QualityAttempt, *harnessv1.AttemptArtifacts) {
		text := fmt.Sprintf("old %d", n)
		return &harnessv1.QualityAttempt{
				Number: n, Combined: combined, Score: 0.9, ContractPassed: true, Verified: true, Answer: content.Inline(text), Summary: content.Inline(text), Issues: []string{text},
				Scores: []*harnessv1.QualityScored{{Type: text}},
			}, &harnessv1.AttemptArtifacts{
				Attempt: n, Artifacts: []*harnessv1.Artifact{{Id: "a1", Kind: "document", Content: content.Inline(text)}},
			}
	}
	j := qualityRun(t, quality.Drafting)
	j.artifacts("document")
	for n, combined := range []float64{0.5, 0.97, 0.6} {
		a, kept := old(uint32(n+1), combined)
		j.s.Quality.Attempts, j.s.WorkItemLedger.Attempts = append(j.s.Quality.Attempts, a), append(j.s.WorkItemLedger.Attempts, kept)
	}
	o := j.decide()
	if v := o.GetStep().GetResult().GetQuality(); delivered(o) != "old 2, old 2, old 2" || v.GetDelivered() != 2 || v.GetScores()[0].GetType() != "old 2" {
		t.Errorf("%s: %v", delivered(o), v)
	}
	j.verifier = scored(1)
	o = j.decide()
	if v := o.GetStep().GetResult().GetQuality(); v.GetDelivered() != 4 || o.GetStep().GetSnapshot().GetQuality().GetAttempts()[1].GetAnswer() != nil {
		t.Errorf("%s: %v", delivered(o), v)
	}

	j = qualityRun(t, quality.Drafting) // sent back by a later gate: what it would deliver is lost
	j.artifacts("document")
	a, _ := old(1, 0.99)
	a.Answer, a.Summary, a.Scores = nil, nil, nil
	j.s.Quality.Attempts, j.s.Quality.Verdict = []*harnessv1.QualityAttempt{a}, &harnessv1.QualityVerdict{}
	if o := j.decide(); delivered(o) != "answer 1, summary 1, secret answer 1" {
		t.Errorf("%s", delivered(o))
	}
}
