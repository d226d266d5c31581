package mesh

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// withQuality turns judging on, with a kind of work and its sources.
func withQuality(kind string, sources ...*harnessv1.Source) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true)}
		s.Task = &harnessv1.Task{Kind: kind, Sources: sources}
	}
}

// healed is work that fails its first judgement and passes the second.
const healed = `turns:
  - {text: "Short.", calls: [{name: work_complete, arguments: {summary: done}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - when: {last_contains: "out"}
    text: "Nothing."
  - text: "Markets grow in spring, according to the report, because demand returns. Two figures support that, and both are named in the attachment of the report."
    calls: [{name: save_artifact, arguments: {kind: recommendation, title: Buy early, content: "Buy before spring, while prices are low.", citations: [{source: s1, quote: "prices  ARE low"}], data: {next_steps: [call the broker], priority: high}}}]
  - {text: "That is all that there is to say about it.", calls: [{name: work_complete, arguments: {summary: done}}]}
jobs:
  complexity: [{answer: {level: MEDIUM, reason: one question, subtask_count: 1}}]
  verify:
    - {answer: {passed: false, score: 0.2, issues: [thin], feedback: Say why.}}
    - {answer: {passed: true, score: 0.9, issues: [], feedback: Good.}}
`

// TestWorkIsJudgedAndHealed: an attempt that fails its contract and its verifier is tried again
// with what is missing; the second is accepted, scored and delivered.
func TestWorkIsJudgedAndHealed(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{name: "healed", script: strings.Replace(healed, "  - when: {last_contains: \"out\"}\n    text: \"Nothing.\"\n", "", 1), lines: 1, edit: withQuality("recommendation", &harnessv1.Source{Id: "s1", Path: "a.txt"})}
	_, entries := s.through(t.Context(), t, m, "healed")
	var got []string
	var verified []*harnessv1.QualityVerified
	var verdict *harnessv1.QualityVerdict
	for _, e := range events(entries) {
		switch {
		case e.GetQualityComplexity() != nil:
			got = append(got, "complexity "+e.GetQualityComplexity().GetLevel())
		case e.GetQualityContract() != nil:
			got = append(got, "contract")
		case e.GetQualityVerified() != nil:
			verified = append(verified, e.GetQualityVerified())
			got = append(got, "verified")
		case e.GetQualityScored() != nil:
			got = append(got, e.GetQualityScored().GetType())
		case e.GetQualityRetry() != nil:
			got = append(got, "retry "+e.GetQualityRetry().GetReason())
		case e.GetQualityProfile() != nil:
			got = append(got, fmt.Sprintf("profile %d%s", e.GetQualityProfile().GetTotalRuns(), e.GetQualityProfile().GetProblem()))
		case e.GetContextMetrics() != nil:
			got = append(got, "metrics")
		case e.GetSessionComplete() != nil:
			got = append(got, "end")
		}
	}
	want := "complexity MEDIUM, contract, verified, rec_qs, retry Contract failed — retrying with healing prompt, contract, verified, rec_qs, profile 1, metrics, end"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if len(verified) != 2 || verified[0].GetScore() != 0.2 || verified[1].GetScore() != 0.9 {
		t.Errorf("verified: %v", verified)
	}
	for _, e := range entries {
		if r := e.Record.GetStep().GetResult(); r != nil {
			verdict = r.GetQuality()
			if len(r.GetDeliverables()) != 1 || r.GetDeliverables()[0].GetKind() != "recommendation" {
				t.Errorf("deliverables: %v", r.GetDeliverables())
			}
		}
	}
	if verdict.GetAttempts() != 2 || verdict.GetDelivered() != 2 || !verdict.GetContractPassed() || verdict.GetVerifierScore() != 0.9 {
		t.Errorf("verdict: %v", verdict)
	}
}

// TestJudgeIsDown: without an answer of a judge the run ends as without one.
func TestJudgeIsDown(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{name: "down", script: `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - {text: "The folder has two files, and both of them are text that somebody wrote by hand.", calls: [{name: work_complete, arguments: {summary: done}}]}
`, lines: 1, edit: withQuality("chat")}
	_, entries := s.through(t.Context(), t, m, "down")
	fallbacks := 0
	for _, e := range events(entries) {
		if v := e.GetQualityVerified(); v != nil && strings.HasPrefix(v.GetFeedback(), "[is_fallback]") && !v.GetPassed() && v.GetScore() == 0 {
			fallbacks++
		}
		if c := e.GetQualityComplexity(); c != nil && strings.HasPrefix(c.GetReason(), "[is_fallback]") {
			fallbacks++
		}
		if e.GetQualityRetry() != nil {
			t.Errorf("a judge that is down caused %v", e)
		}
	}
	if fallbacks != 2 {
		t.Errorf("%d fallbacks", fallbacks)
	}
}

func events(entries []runlog.Entry) []*harnessv1.Event {
	var all []*harnessv1.Event
	for _, e := range entries {
		all = append(all, e.Record.GetEvents()...)
	}
	return all
}
