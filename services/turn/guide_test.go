package turn_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// itemized is a run before turn 8 with two open work items, which the model saw in turn 7.
func itemized() *harnessv1.Snapshot {
	s := snapshot()
	s.TurnCount, s.ToldTurn = 7, 7
	s.Config.Guidance.Enabled, s.Config.Guidance.Jit = proto.Bool(true), proto.Bool(true)
	s.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{
		{Id: "w1", Title: "Read the parser", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING},
		{Id: "w2", Title: "Fix the scanner", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS},
	}}
	s.ItemsShown, s.ItemsShownTurn = workitem.ShownHash(s.GetWorkItemLedger()), 7
	s.Activity = &harnessv1.Activity{Reads: 3, Writes: 1, Explores: 1}
	return s
}

// TestGuidanceAfterACompaction: the turn after it shows the work items in full, once, and
// asks the agent to continue.
func TestGuidanceAfterACompaction(t *testing.T) {
	compacted := func(s *harnessv1.Snapshot) {
		s.CompactionPlan = &harnessv1.CompactionPlan{Passes: 1, LastPassTurn: 7}
		s.Activity.Compactions = 1
	}
	for _, c := range []struct {
		name     string
		settings func(*harnessv1.Snapshot)
		full     bool // the items are shown in full
		line     bool // or as a line
		told     bool // post_compaction_guidance
	}{
		{"without a compaction", func(*harnessv1.Snapshot) {}, false, true, false},
		{"after a compaction", compacted, true, false, true},
		{"after a former one", func(s *harnessv1.Snapshot) { compacted(s); s.CompactionPlan.LastPassTurn = 6 }, false, true, true},
		{"with a plan and no pass", func(s *harnessv1.Snapshot) { compacted(s); s.CompactionPlan.Passes = 0 }, false, true, true},
		{"told before", func(s *harnessv1.Snapshot) {
			compacted(s)
			s.Jit = &harnessv1.JitState{Fired: []string{"post_compaction_guidance"}}
		}, true, false, false},
		{"of the same turn", func(s *harnessv1.Snapshot) { compacted(s); s.ToldTurn = 8 }, true, false, false},
		{"of the same turn, shown in it", func(s *harnessv1.Snapshot) { compacted(s); s.ToldTurn, s.ItemsShownTurn = 8, 8 }, false, false, false},
		{"without guidance", func(s *harnessv1.Snapshot) { compacted(s); s.Config.Guidance.Enabled = proto.Bool(false) }, false, false, true},
		{"without work items", func(s *harnessv1.Snapshot) { compacted(s); s.Config.WorkItems.Enabled = proto.Bool(false) }, false, false, true},
		{"with all items done", func(s *harnessv1.Snapshot) {
			compacted(s)
			for _, i := range s.GetWorkItemLedger().GetItems() {
				i.Status = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE
			}
		}, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := itemized()
			c.settings(s)
			w := newWorker(t, s)
			w.response = response(reads)
			after := w.mustEnd().GetStep().GetSnapshot()
			var full, line bool
			var told string
			for _, m := range w.journal[0].GetAppended() {
				text := content.Text(m.GetContent())
				full = full || strings.Contains(text, "Read the parser") && strings.Contains(text, "Fix the scanner")
				line = line || strings.Contains(text, "2 of 2 work items remain")
				if strings.Contains(text, "Keep to what was decided") {
					told = text
				}
			}
			if full != c.full || line != c.line || (told != "") != c.told {
				t.Errorf("shown in full %v, as a line %v; told %q", full, line, told)
			}
			if c.told && c.full && !strings.Contains(told, "continue with work item w2 (Fix the scanner)") {
				t.Errorf("told %q", told)
			}
			if c.full && after.GetItemsShownTurn() != 8 {
				t.Errorf("the items were shown in turn %d", after.GetItemsShownTurn())
			}
		})
	}
}

// TestRulesSeeTheWindow as the compaction before the turn left it.
func TestRulesSeeTheWindow(t *testing.T) {
	s := itemized()
	s.TokenBudget = &harnessv1.TokenBudget{UsedTokens: 700, MaxInputTokens: 1000}
	s.Definition = &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Id: "window", When: "context_used > 600", Text: "{{ context_used }} of {{ context_max }}"}}}
	w := newWorker(t, s)
	w.mustEnd()
	for _, m := range w.journal[0].GetAppended() {
		if strings.Contains(content.Text(m.GetContent()), "700 of 1000") {
			return
		}
	}
	t.Errorf("told %v", w.journal[0].GetAppended())
}
