package stopdecision_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/marktest"
)

// TestRejectionsAndCorrectionsHaveTopics: a later one of the same kind replaces the former,
// and one of another kind does not. Nor does a rejection replace the plan.
func TestRejectionsAndCorrectionsHaveTopics(t *testing.T) {
	for want, c := range map[string]situation{
		"stop:contract_not_satisfied":        {done: true, called: true, contract: "unmet"},
		"stop:work_items_incomplete":         {done: true, called: true, items: "open"},
		"stop:agent_stop_hook_blocked":       {done: true, called: true, hook: "block"},
		"stop:work_complete_not_called":      {done: true},
		"stop:work_complete_required_strict": {done: true, policy: "strict", retries: "used"},
		"doom_loop":                          {loop: "strict 0"},
		"":                                   {done: true, called: true, replan: true},
	} {
		on := outcome(t, c, nil)
		if m := on.GetAppended(); len(m) != 1 || m[0].GetTopic() != want {
			t.Errorf("%+v: appended %v, want the topic %q", c, m, want)
		}
		off := outcome(t, c, func(in *harnessv1.StepInput) { marktest.Off(in.GetStep().GetSnapshot()) })
		if found := marktest.In(off); len(found) > 0 {
			t.Errorf("%+v: without compaction there are %v", c, found)
		}
	}
}
