package tree_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// TestTheEndOfAChildCounts: a client that has a child work again after its end changes neither its
// result nor that it has ended; what it uses counts.
func TestTheEndOfAChildCounts(t *testing.T) {
	s := &harnessv1.Snapshot{Children: []*harnessv1.Child{{RunId: "a-1", CallId: "c", Want: harnessv1.ChildWant_CHILD_WANT_END, Order: 2, Background: true}}}
	report := func(version uint64, status harnessv1.RunStatus, answer string, tokens uint64) *harnessv1.Child {
		return tree.Take(s, &harnessv1.ChildReport{
			RunId: "a-1", Version: version, Order: 2, Status: status, Answer: content.Inline(answer), Usage: &harnessv1.Usage{InputTokens: tokens},
		})
	}
	report(5, harnessv1.RunStatus_RUN_STATUS_DONE, "found", 10)
	for _, later := range []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.RunStatus_RUN_STATUS_FAILED} {
		c := report(s.GetChildren()[0].GetReport().GetVersion()+1, later, "else", 30)
		if !tree.Ended(c) || c.GetReport().GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE || c.GetReport().GetAnswer().GetInline() != "found" {
			t.Errorf("after %v: %v", later, c.GetReport())
		}
	}
	if used := s.GetSpent().GetUsage().GetInputTokens(); used != 30 {
		t.Errorf("%d tokens count, want 30", used)
	}
	if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_END) {
		t.Error("the parent waits for a child that has ended")
	}
}

// TestTheSummaryIsNoAnswer unless the run has written no text, however long it is.
func TestTheSummaryIsNoAnswer(t *testing.T) {
	summary := "I looked at all of it, and this is a long report about how I did so."
	for _, c := range []struct{ answer, want string }{
		{"It is in a.go.", "It is in a.go."},
		{"", summary},
		{" \n", summary},
	} {
		s := &harnessv1.Snapshot{Summary: content.Inline(summary), Turn: &harnessv1.TurnState{CalledWorkComplete: true}}
		if c.answer != "" {
			s.Answer = content.Inline(c.answer)
		}
		if got := content.Text(tree.AnswerOf(s)); got != c.want {
			t.Errorf("%q is given as %q", c.answer, got)
		}
	}
	long := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 9000}}}
	if got := tree.AnswerOf(&harnessv1.Snapshot{Answer: long, Summary: content.Inline(summary)}); got != long {
		t.Errorf("a long answer is given as %v", got)
	}
}

// TestExpects: a parent expects a report of a child that works, or that has an order to confirm.
func TestExpects(t *testing.T) {
	for name, c := range map[string]struct {
		order    uint32
		status   harnessv1.RunStatus
		kind     string
		expected bool
	}{
		"idle": {2, parked, "approval", false}, "ordered since": {3, parked, "approval", true}, "waits for a time": {2, parked, "wait", true}, "ended": {3, done, "agent_done", false},
	} {
		s := &harnessv1.Snapshot{Children: []*harnessv1.Child{{RunId: "a-1", Want: work, Order: c.order, Report: &harnessv1.ChildReport{
			Version: 5, Order: 2, Status: c.status, Reason: &harnessv1.StopReason{Kind: c.kind},
		}}}}
		if got := tree.Expects(s, &harnessv1.ChildReport{RunId: "a-1", Version: 6}); got != c.expected {
			t.Errorf("%s: %v", name, got)
		}
	}
	if tree.Expects(&harnessv1.Snapshot{}, &harnessv1.ChildReport{RunId: "a-1"}) {
		t.Error("a report of a foreign run is expected")
	}
}
