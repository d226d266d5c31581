package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// reportWork adds a turn whose response of 700 tokens reports finished work.
func (a *agent) reportWork() {
	a.s.TurnCount++
	id := fmt.Sprintf("c%d", a.s.GetTurnCount())
	response := &harnessv1.Message{
		Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("All is done. " + strings.Repeat("Really. ", 300)),
		ToolCalls: []*harnessv1.ToolCall{{Id: id, Name: "work_complete", Arguments: content.Inline(fmt.Sprintf(`{"summary":"report %d"}`, a.s.GetTurnCount()))}},
	}
	result := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "work_complete", Content: content.Inline("Recorded.")}
	mark.Completion(response)
	mark.Completion(result)
	a.add(700, response)
	a.add(10, result)
	a.add(30, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline("It is not done.")})
}

// TestRejectedReports of finished work do not fill the window. The last one before the user
// has sent further work lasts.
func TestRejectedReports(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	run := func(turns int, turn func()) {
		t.Helper()
		for range turns {
			turn()
			if step := a.step().GetOutcome().GetStep(); step.GetTo() != workflow.Turn {
				t.Fatalf("turn %d: %v", a.s.GetTurnCount(), step.GetTurnComplete())
			}
			for _, job := range a.requested {
				a.summaries[job.GetKey()] = &harnessv1.SummaryState{Ended: true, Summary: &harnessv1.SummaryRef{
					Key: job.GetKey(), ThroughMessage: job.GetThroughMessage(), Former: a.s.GetCompactionPlan().GetSummary().GetKey(), Tokens: 100,
				}}
			}
		}
	}
	run(2, a.reportWork)
	a.add(10, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Now the rest.")})
	run(40, a.reportWork)
	var v view.View
	shown := ""
	for _, item := range v.Update(&a.c, a.s.GetCompactionPlan(), &harnessv1.StructuredSummary{}) {
		for _, c := range item.Message.GetToolCalls() {
			shown += content.Text(c.GetArguments())
		}
	}
	for report, want := range map[string]bool{"report 1": false, "report 2": true, "report 30": false, "report 42": true} {
		if strings.Contains(shown, `"`+report+`"`) != want {
			t.Errorf("%s is shown: %t\n%s", report, !want, shown)
		}
	}
}
