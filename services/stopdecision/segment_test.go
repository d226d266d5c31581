package stopdecision_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// TestEarlierArtifactsAreDeliveredAndNotJudged: a segment needs its own.
func TestEarlierArtifactsAreDeliveredAndNotJudged(t *testing.T) {
	j := qualityRun(t, quality.Drafting)
	j.artifacts("document", "document")
	j.s.WorkItemLedger.Artifacts[0].Earlier, j.s.WorkItemLedger.Artifacts[1].Earlier = true, true
	o := j.decide()
	if c := o.GetEvents()[0].GetQualityContract(); verdict(o) != "repair quality_retry" || c.GetPassed() || c.GetArtifactCounts()["document"] != 0 || len(c.GetIssues()) != 2 {
		t.Fatalf("%s: %v", verdict(o), c)
	}
	if !strings.Contains(j.asked[0].GetPrompt(), "no artifacts") {
		t.Errorf("the verifier reads %s", j.asked[0].GetPrompt())
	}
	j.next(o, 2)
	j.s.WorkItemLedger.Artifacts[0].Earlier = false // replaced
	o = j.decide()
	if verdict(o) != "DONE agent_done true" || len(o.GetStep().GetResult().GetDeliverables()) != 2 {
		t.Errorf("%s: %v", verdict(o), o.GetStep().GetResult())
	}
}

// TestCostShare: the share of judging in the cost of the segment, in hundredths.
func TestCostShare(t *testing.T) {
	for _, c := range []struct {
		all, before, judging uint64
		want                 *uint32
	}{
		{0, 0, 0, nil}, {1000, 1000, 0, nil}, {1000, 0, 0, proto.Uint32(0)}, {1000, 0, 45, proto.Uint32(5)}, {1000, 0, 44, proto.Uint32(4)}, {1000, 800, 50, proto.Uint32(25)},
	} {
		j := qualityRun(t, quality.Chat)
		j.s.Quality.Usage = &harnessv1.Usage{CostMicroUsd: c.judging}
		j.s.Spent = &harnessv1.Spent{Usage: &harnessv1.Usage{CostMicroUsd: c.all}, UsageBeforeSegment: &harnessv1.Usage{CostMicroUsd: c.before}}
		j.verifier = silent
		v := j.decide().GetStep().GetResult().GetQuality()
		if (v.CostShare == nil) != (c.want == nil) || v.GetCostShare() != deref(c.want) {
			t.Errorf("%v: %v", c, v)
		}
	}
}

func deref(p *uint32) uint32 {
	if p == nil {
		return 0
	}
	return *p
}

// TestKindsHaveTheirPrompts: the verifiers and the healing prompt of an own kind have the texts that it names, before those of
// the namespace, and judge for its perspectives.
func TestKindsHaveTheirPrompts(t *testing.T) {
	j := qualityRun(t, "review")
	j.s.Quality.Level = quality.Complex
	j.s.Definition = &harnessv1.Definition{Kinds: []*harnessv1.WorkKind{{
		Name: "review", MinOutputChars: 10, Perspectives: []string{"security", "accuracy"},
		Prompts: map[string]string{"verifier_security": "Look for holes.", "healing": "Close the holes."},
	}}}
	j.profile = &harnessv1.ProfileState{Prompts: []*harnessv1.Prompt{{Id: quality.PromptHealing, Text: "Start again."}, {Id: quality.PromptAccuracy, Text: "Be exact."}}}
	j.verifier, j.seen.Chars = scored(0.2), 3
	o := j.decide()
	if len(j.asked) != 2 || !strings.HasPrefix(j.asked[0].GetSystem(), "Look for holes.\n\n") || !strings.HasPrefix(j.asked[1].GetSystem(), "Be exact.\n\n") {
		t.Fatalf("asked %v", j.asked)
	}
	if p := j.asked[0].GetPromptUsed(); p.GetId() != "verifier_security" || p.GetDigest() != quality.PromptDigest("Look for holes.") {
		t.Errorf("used %v", p)
	}
	text := content.Text(o.GetAppended()[0].GetContent())
	if verdict(o) != "repair quality_retry" || !strings.HasSuffix(text, "Close the holes.") || !strings.Contains(text, "[security] thin") {
		t.Errorf("%s: %s", verdict(o), text)
	}
}
