package stopdecision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestGoodWorkIsAccepted with its verdict in the result, and what judging has used is counted.
func TestGoodWorkIsAccepted(t *testing.T) {
	j := qualityRun(t, quality.Drafting)
	j.artifacts("document")
	o := j.decide()
	if verdict(o) != "DONE agent_done true" || eventNames(o) != "quality_contract quality_verified quality_scored context_metrics session_complete" {
		t.Fatalf("%s: %s", verdict(o), eventNames(o))
	}
	if c := o.GetEvents()[0].GetQualityContract(); !c.GetPassed() || c.GetAttempt() != 1 {
		t.Errorf("contract %v", c)
	}
	if v := o.GetEvents()[1].GetQualityVerified(); !v.GetPassed() || v.GetScore() != 0.9 || v.GetContrastive() || v.GetAttempt() != 1 || v.GetFeedback() != "Say more." {
		t.Errorf("verified %v", v)
	}
	if v := o.GetEvents()[2].GetQualityScored(); v.GetAttempt() != 1 {
		t.Errorf("scored %v", v)
	}
	if m := o.GetEvents()[3].GetContextMetrics(); m.GetTotalToolCalls() != 1 || m.GetCumulativeResultChars() != 9 || m.GetEstimatedToolResultTokens() != 3 ||
		m.GetLargestResult().GetTool() != "read_file" {
		t.Errorf("metrics %v", m)
	}
	v := o.GetStep().GetResult().GetQuality()
	if v.GetKind() != quality.Drafting || v.GetAttempts() != 1 || v.GetDelivered() != 1 || v.GetVerifierScore() != 0.9 || v.GetCombined() != 0.95 || !v.GetContractPassed() ||
		v.GetDegraded() ||
		len(v.GetScores()) != 1 || v.GetUsage().GetInputTokens() != 100 || v.GetIterations() != 1 {
		t.Errorf("the verdict is %v", v)
	}
	if v.GetDuration().AsDuration() != 90*time.Second || v.GetRepetitive() || v.IssueBits != nil {
		t.Errorf("the verdict is %v", v)
	}
	if u := o.GetStep().GetSnapshot().GetSpent().GetUsage(); u.GetInputTokens() != 100 || u.GetOutputTokens() != 10 {
		t.Errorf("spent %v", u)
	}
}

// TestWithoutQuality the decision asks for nothing and has nothing of it.
func TestWithoutQuality(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Quality = nil
	o := j.decide()
	if verdict(o) != "DONE agent_done true" || eventNames(o) != "session_complete" || len(j.keys) > 0 || o.GetStep().GetSnapshot().GetQuality() != nil ||
		o.GetStep().GetResult().GetQuality() != nil {
		t.Errorf("%s: %s after %v", verdict(o), eventNames(o), j.keys)
	}
}

// TestVerifierSeesLittle: the goal, the output and the counts of artifacts, under bounds.
func TestVerifierSeesLittle(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.artifacts("insight", "insight", "document")
	j.seen.Goal, j.seen.Text = strings.Repeat("g", 499)+"éXGOAL", strings.Repeat("o", 7999)+"éXOUTPUT"
	j.decide()
	if len(j.asked) != 1 {
		t.Fatalf("asked %d", len(j.asked))
	}
	r := j.asked[0]
	text := r.GetSystem() + r.GetPrompt()
	for _, want := range []string{strings.Repeat("g", 499) + "é\n", strings.Repeat("o", 7999) + "é\n", "2 insights, 1 document"} {
		if !strings.Contains(r.GetPrompt(), want) {
			t.Errorf("the verifier does not see %.20s", want)
		}
	}
	for _, never := range []string{"XGOAL", "XOUTPUT", "secret", "answer 1", "summary 1"} {
		if strings.Contains(text, never) {
			t.Errorf("the verifier sees %s", never)
		}
	}
	if r.GetPurpose() != quality.PurposeVerify || r.GetModel() != "openai:small" || r.GetTimeout().AsDuration() != 20*1e9 || r.GetMaxTries() != 2 {
		t.Errorf("asked %v", r)
	}
	if want := quality.JobKey(3, 2, 1, quality.PurposeVerify, r); r.GetKey() != want {
		t.Errorf("key %s, want %s", r.GetKey(), want)
	}
}

// TestRetry: a stop is rejected with the missing requirements, in the same segment, and the next
// attempt is counted and judged by itself.
func TestRetry(t *testing.T) {
	j := qualityRun(t, quality.Drafting)
	j.verifier = scored(0.4) // without a document: contract failed
	o := j.decide()
	if verdict(o) != "repair quality_retry" || !strings.HasPrefix(eventNames(o), "quality_contract quality_verified quality_scored quality_retry stop_rejected") {
		t.Fatalf("%s: %s", verdict(o), eventNames(o))
	}
	if r := o.GetEvents()[3].GetQualityRetry(); r.GetAttempt() != 2 || r.GetReason() != quality.ReasonContract || r.GetPreviousScore() != 0.2 {
		t.Errorf("retry %v", r)
	}
	text := content.Text(o.GetAppended()[0].GetContent())
	for _, want := range []string{"the goal", "Attempt 2 of 3", "Missing: ", "Quality: thin", "Say more."} {
		if !strings.Contains(text, want) {
			t.Errorf("the model reads %q, without %q", text, want)
		}
	}
	s := o.GetStep().GetSnapshot()
	q := s.GetQuality()
	if len(o.GetAppended()) != 1 || s.GetSegment() != 2 || q.GetAttempt() != 2 || q.GetAttemptFirstMessage() != s.GetMessageCount() ||
		q.GetAttemptChars() != 0 || q.GetMarked() || len(q.GetAttempts()) != 1 || q.GetVerdict() != nil {
		t.Errorf("the state is %v", q)
	}
	first := j.asked[0].GetKey()
	seen := j.seen
	j.next(o, 2)
	seen.Answer = &harnessv1.AnswerFigures{Words: 300, Distinct: 0.2, Bits: 5}
	j.seen, j.verifier = seen, scored(0.9) // the same output: the verifier judges again
	j.artifacts("document")
	o = j.decide()
	if verdict(o) != "DONE agent_done true" || j.asked[0].GetKey() == first || o.GetEvents()[0].GetQualityContract().GetAttempt() != 2 {
		t.Errorf("%s, contract %v", verdict(o), o.GetEvents()[0])
	}
	if v := o.GetStep().GetResult().GetQuality(); v.GetAttempts() != 2 || v.GetDelivered() != 2 || v.GetUsage().GetInputTokens() != 200 ||
		v.GetVariety().GetBits() != 5 || !v.GetRepetitive() {
		t.Errorf("the verdict is %v", v)
	}
}

// TestBestIsDelivered: the answer, summary and artifacts of an earlier attempt if it was better; the
// end is accepted only if that one has what its kind requires and the verifier accepts it.
func TestBestIsDelivered(t *testing.T) {
	for _, c := range []struct {
		name      string
		scores    []float64
		documents []string // artifacts of each attempt: d is a document, i an insight
		want      string
		delivered string
		best      uint32
	}{
		{"the first, with its contract", []float64{0.09, 0.02, 0.05}, []string{"d", "d", "d"}, "DONE agent_done false", "answer 1, summary 1, secret answer 1", 1},
		{"the second, without its contract", []float64{0.3, 0.6, 0.1}, []string{"i", "i", "i"}, "DONE agent_done false", "answer 2, summary 2, secret answer 2", 2},
		{"the last of equals", []float64{0.05, 0.05, 0.05}, []string{"d", "d", "d"}, "DONE agent_done false", "answer 3, summary 3, secret answer 3", 3},
		{"the first, which alone has its contract", []float64{0.05, 0.6, 0.7}, []string{"d", "i", "i"}, "DONE agent_done false", "answer 1, summary 1, secret answer 1", 1},
		{"the first, without artifacts", []float64{0.6, 0.55, 0.1}, []string{"", "i", "i"}, "DONE agent_done false", "answer 1, summary 1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := qualityRun(t, quality.Drafting)
			var o *harnessv1.Outcome
			for i, score := range c.scores {
				if i > 0 {
					j.next(o, i+1)
				}
				j.artifacts(map[string][]string{"d": {"document"}, "i": {"insight"}}[c.documents[i]]...)
				j.verifier = scored(score)
				j.seen.Answer = &harnessv1.AnswerFigures{Words: uint32(i + 1)}
				o = j.decide()
			}
			r, s := o.GetStep().GetResult(), o.GetStep().GetSnapshot()
			if r.GetQuality().GetVariety().GetWords() != c.best {
				t.Errorf("the variety is %v", r.GetQuality().GetVariety())
			}
			if verdict(o) != c.want || delivered(o) != c.delivered || r.GetQuality().GetDelivered() != c.best || !r.GetQuality().GetDegraded() {
				t.Errorf("%s: %s, %v", verdict(o), delivered(o), r.GetQuality())
			}
			if content.Text(r.GetAnswer()) != content.Text(s.GetAnswer()) || len(r.GetDeliverables()) != len(s.GetWorkItemLedger().GetArtifacts()) {
				t.Errorf("the result is %v", r)
			}
			if kept := s.GetWorkItemLedger().GetAttempts(); len(kept) != 1 || kept[0].GetAttempt() != c.best || s.GetQuality().GetAttempts()[0].GetAnswer() != nil {
				t.Error("what is not delivered is kept")
			}
			if !strings.HasSuffix(eventNames(o), "quality_contract quality_verified quality_scored quality_degraded context_metrics session_complete") {
				t.Fatalf("events %s", eventNames(o))
			}
			d := o.GetEvents()[len(o.GetEvents())-3].GetQualityDegraded()
			if d.GetAttemptsMade() != 3 || d.GetBestScore() != r.GetQuality().GetCombined() || d.GetWorkflowType() != quality.Drafting || !slices.Contains(d.GetIssues(), "thin") {
				t.Errorf("degraded %v", d)
			}
		})
	}
}

// TestFallback: a verifier that does not answer ends the attempts if the contract passed, whatever its score; a budget that
// is used up asks none.
func TestFallback(t *testing.T) {
	j := qualityRun(t, quality.Drafting)
	j.artifacts("document")
	j.verifier = silent
	o := j.decide()
	v := o.GetStep().GetResult().GetQuality()
	if verdict(o) != "DONE agent_done true" || v.VerifierScore != nil || v.GetDegraded() ||
		!strings.HasPrefix(o.GetEvents()[1].GetQualityVerified().GetFeedback(), quality.Fallback+"overloaded") {
		t.Errorf("%s with %v", verdict(o), o.GetEvents())
	}
	j.verifier = func(*harnessv1.JobRequest) *harnessv1.JobState {
		return &harnessv1.JobState{Ended: true, Text: "fine!"}
	}
	if o := j.decide(); verdict(o) != "DONE agent_done true" || o.GetStep().GetResult().GetQuality().VerifierScore != nil {
		t.Errorf("%s with %v", verdict(o), o.GetEvents())
	}
	j.s.Config.Quality.RetryOnFallback = proto.Bool(true)
	if got := verdict(j.decide()); got != "repair quality_retry" {
		t.Errorf("with retry_on_fallback: %s", got)
	}
	j.s.Config.Quality.RetryOnFallback = nil
	j.s.Config.Budgets, j.s.Spent = &harnessv1.Budgets{ToolCalls: proto.Uint32(1)}, &harnessv1.Spent{ToolCalls: 1}
	o = j.decide()
	if verdict(o) != "DONE agent_done true" || len(j.asked) > 0 || !strings.Contains(o.GetEvents()[1].GetQualityVerified().GetFeedback(), "budget") {
		t.Errorf("with a used-up budget: %s, asked %v", verdict(o), j.asked)
	}
}

// TestComplexWorkHasThreeVerifiers at the same time; the least score counts, and one that failed is left out.
func TestComplexWorkHasThreeVerifiers(t *testing.T) {
	for _, c := range []struct {
		kind, level string
		want        int
	}{{quality.Recommendation, quality.Complex, 3}, {quality.Recommendation, quality.Medium, 1}, {quality.Drafting, quality.Complex, 1}} {
		j := qualityRun(t, c.kind)
		j.artifacts("recommendation", "document")
		j.s.Quality.Level = c.level
		j.verifier = func(r *harnessv1.JobRequest) *harnessv1.JobState {
			switch {
			case strings.Contains(r.GetSystem(), ": accuracy."):
				return silent(r)
			case strings.Contains(r.GetSystem(), ": usefulness."):
				return scored(0.75)(r)
			}
			return scored(0.95)(r)
		}
		o := j.decide()
		v := o.GetEvents()[1].GetQualityVerified()
		if len(j.asked) != c.want || len(j.keys) != 2+c.want || v.GetContrastive() != (c.want == 3) {
			t.Errorf("%s %s: asked %d, verified %v", c.kind, c.level, len(j.asked), v)
		}
		if c.want == 3 && (v.GetScore() != 0.75 || !slices.Equal(v.GetIssues(), []string{"[is_fallback] accuracy", "[completeness] thin", "[usefulness] thin"})) {
			t.Errorf("verified %v", v)
		}
	}
}

// TestIterations: accepted work is improved on until the passes are used up or two did not beat the best; the best
// of all is delivered.
func TestIterations(t *testing.T) {
	for _, c := range []struct {
		limit    uint32
		scores   []float64
		best     uint32
		reported bool
	}{
		{1, []float64{0.9}, 1, false},
		{3, []float64{0.8, 0.95, 0.9}, 2, true},
		{5, []float64{0.95, 0.9, 0.8}, 1, true},
		{5, []float64{0.7, 0.9, 0.8, 0.75}, 2, true},
		{3, []float64{0.7, 0.8, 0.9}, 3, true},
	} {
		j := qualityRun(t, quality.Chat)
		j.s.Config.Quality.Iterations, j.s.MaxTurns = proto.Uint32(c.limit), 50
		var o *harnessv1.Outcome
		for i, score := range c.scores {
			if i > 0 {
				if told := content.Text(o.GetAppended()[0].GetContent()); !strings.Contains(told, fmt.Sprintf("pass %d of %d", i+1, c.limit)) ||
					strings.Contains(eventNames(o), "quality_retry quality") {
					t.Fatalf("pass %d: %s, %s", i+1, told, eventNames(o))
				}
				j.next(o, i+1)
			}
			j.verifier = scored(score)
			o = j.decide()
		}
		n := uint32(len(c.scores))
		if v := o.GetStep().GetResult().GetQuality(); verdict(o) != "DONE agent_done true" || v.GetDelivered() != c.best || v.GetIterations() != n ||
			delivered(o) != fmt.Sprintf("answer %d, summary %d", c.best, c.best) {
			t.Errorf("%v: %s, %s, %v", c.scores, verdict(o), delivered(o), v)
		}
		if !c.reported {
			if strings.Contains(eventNames(o), "quality_iterated") {
				t.Errorf("%v: events %s", c.scores, eventNames(o))
			}
			continue
		}
		if !strings.HasSuffix(eventNames(o), "quality_verified quality_iterated context_metrics session_complete") {
			t.Fatalf("%v: events %s", c.scores, eventNames(o))
		}
		e := o.GetEvents()[len(o.GetEvents())-3].GetQualityIterated()
		if e.GetIterations() != n || e.GetAcceptedCount() != n || e.GetTotalDurationMs() != 90_000 || e.GetBestScore() != quality.Combined(true, slices.Max(c.scores)) {
			t.Errorf("%v: %v", c.scores, e)
		}
	}
}

// TestEndsWithoutGates have the contract and the scores of an answer, and no verifier; without an answer, only the figures of the tools.
func TestEndsWithoutGates(t *testing.T) {
	j := qualityRun(t, quality.Drafting)
	j.s.MaxTurns = 4
	o := j.decide()
	v := o.GetStep().GetResult().GetQuality()
	if verdict(o) != "DONE max_turns false" || eventNames(o) != "quality_contract quality_scored context_metrics session_complete" || len(j.asked) > 0 || v == nil ||
		v.VerifierScore != nil ||
		v.GetContractPassed() || len(v.GetScores()) != 1 {
		t.Errorf("%s: %s, %v", verdict(o), eventNames(o), v)
	}
	for name, change := range map[string]func(*judgement){
		"no answer": func(j *judgement) { j.s.Answer = nil }, "stopped meanwhile": func(j *judgement) { j.stop = true },
	} {
		j := qualityRun(t, quality.Drafting)
		j.s.MaxTurns = 4
		change(j)
		if o := j.decide(); eventNames(o) != "context_metrics session_complete" || len(j.keys) > 0 || o.GetStep().GetTo() != runlog.End {
			t.Errorf("%s: %s after %v", name, eventNames(o), j.keys)
		}
	}
}

// TestLaterGatesJudgeAgain: work that a hook sends back after it was accepted is judged as new work.
func TestLaterGatesJudgeAgain(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{{
		Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: "because",
	}}}
	o := j.decide()
	if verdict(o) != "repair agent_stop_hook_blocked" || o.GetStep().GetSnapshot().GetQuality().GetVerdict() == nil {
		t.Fatalf("%s: %v", verdict(o), o.GetStep().GetSnapshot().GetQuality())
	}
	j.s = proto.CloneOf(o.GetStep().GetSnapshot())
	j.s.Phase, j.s.Definition, j.s.Answer, j.verifier = harnessv1.Phase_PHASE_REFLECTING, nil, content.Inline("answer 2"), scored(0.8)
	o = j.decide()
	if v := o.GetStep().GetResult().GetQuality(); verdict(o) != "DONE agent_done true" || v.GetAttempts() != 2 || v.GetCombined() != 0.95 ||
		content.Text(o.GetStep().GetResult().GetAnswer()) != "answer 1" {
		t.Errorf("%s: %v", verdict(o), v)
	}
}

// TestGatesBeforeQuality: work that is not complete is not judged.
func TestGatesBeforeQuality(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.s.Config.WorkItems.Enabled = proto.Bool(true)
	j.s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w1", Title: "One", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING}}}
	if o := j.decide(); verdict(o) != "repair work_items_incomplete" || len(j.keys) > 0 {
		t.Errorf("%s after %v", verdict(o), j.keys)
	}
}

// TestPromptsOfVerifiersAreReplaced by those that were observed, and the request records which.
func TestPromptsOfVerifiersAreReplaced(t *testing.T) {
	j := qualityRun(t, quality.Chat)
	j.decide()
	text, _ := quality.BuiltIn(quality.PromptVerifier)
	if r := j.asked[0]; r.GetPromptUsed().GetId() != quality.PromptVerifier || r.GetPromptUsed().GetDigest() != quality.PromptDigest(text) || !strings.HasPrefix(r.GetSystem(), text+"\n\n") {
		t.Errorf("built in: %v", r.GetPromptUsed())
	}
	j = qualityRun(t, quality.Chat)
	j.profile = &harnessv1.ProfileState{Prompts: []*harnessv1.Prompt{
		{Id: quality.PromptVerifier, Tier: "gold", Text: "Be strict.", Digest: "d"}, {Id: quality.PromptHealing, Text: "Start again."},
	}}
	j.verifier = scored(0.2)
	o := j.decide()
	if r := j.asked[0]; !strings.HasPrefix(r.GetSystem(), "Be strict.\n\n") || r.GetPromptUsed().GetTier() != "gold" || r.GetPromptUsed().GetDigest() != "d" {
		t.Errorf("set: %v %q", r.GetPromptUsed(), r.GetSystem())
	}
	if !strings.Contains(o.String(), "Start again.") {
		t.Errorf("healing: %v", o)
	}
}

// TestAcceptanceFollowsTheVerdict: a right answer of six characters is accepted immediately, work that is judged 0 never.
func TestAcceptanceFollowsTheVerdict(t *testing.T) {
	short := func(j *judgement) { j.seen.Chars = 6 }
	for _, c := range []struct {
		name, kind string
		change     func(j *judgement)
		verifier   func(*harnessv1.JobRequest) *harnessv1.JobState
		want       string
	}{
		{"a right answer of six characters", quality.Chat, short, scored(0.9), "DONE agent_done true"},
		{"a wrong one", quality.Chat, short, scored(0.3), "repair quality_retry"},
		{"one that was not judged", quality.Chat, short, silent, "repair quality_retry"},
		{"one without the document", quality.Chat, func(j *judgement) {
			short(j)
			j.s.Quality.Expected = &harnessv1.Expected{MinDocuments: proto.Uint32(1)}
		}, scored(0.9), "repair quality_retry"},
		{"a short text of another kind", quality.Drafting, short, scored(0.9), "repair quality_retry"},
		{"judged 0 in the last attempt", quality.Drafting, func(j *judgement) { j.s.Quality.Attempt = 3 }, scored(0), "DONE agent_done false"},
		{"low, though it is good enough", quality.Drafting, func(*judgement) {}, scored(0.4), "DONE agent_done false"},
		{"not low", quality.Drafting, func(*judgement) {}, scored(0.5), "DONE agent_done true"},
		{"not judged", quality.Drafting, func(*judgement) {}, silent, "DONE agent_done true"},
	} {
		j := qualityRun(t, c.kind)
		if c.kind == quality.Drafting {
			j.artifacts("document")
		}
		c.change(j)
		j.verifier = c.verifier
		o := j.decide()
		if verdict(o) != c.want || strings.HasSuffix(c.want, "true") && strings.Contains(eventNames(o), "quality_degraded") {
			t.Errorf("%s: %s, %s", c.name, verdict(o), eventNames(o))
		}
		q := o.GetStep().GetSnapshot().GetQuality()
		if last := q.GetAttempts()[0]; o.GetStep().GetTo() == runlog.End && (last.GetAccepted() != o.GetStep().GetSnapshot().GetAccepted() || last.GetAccepted() != q.GetAccepted()) {
			t.Errorf("%s: %v", c.name, q)
		}
	}
}
