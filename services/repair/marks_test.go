package repair_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/test/kit/marktest"
)

// TestAnswersAreMarked as their calls say, by clients, people and repair.
func TestAnswersAreMarked(t *testing.T) {
	marks := &harnessv1.ResultMarks{
		Durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE, ExternalizeTokens: 500,
		Preserved: []*harnessv1.PreservedField{{Name: "town", Value: "Ulm"}, {Name: "sky"}},
	}
	for name, c := range map[string]struct {
		item *harnessv1.InboxItem
		want string
	}{
		"a result":  {result("c", `{"sky":"blue"}`), "town=Ulm sky=blue"},
		"a failure": {failure("c", "no such town"), "town=Ulm"},
		"a refusal": {approve("a", deny), "town=Ulm"},
		"an answer": {result("q", "sky: grey"), "town=Ulm sky=grey"},
		"a repair":  {interrupt(), "town=Ulm"},
	} {
		s := asking()
		for _, call := range s.GetPendingToolCalls() {
			call.Marks = proto.CloneOf(marks)
		}
		m := drain(t, s, c.item).GetAppended()[0]
		var fields []string
		for _, f := range m.GetPreserved() {
			fields = append(fields, f.GetName()+"="+f.GetValue())
		}
		if m.GetDurability() != marks.GetDurability() || m.GetExternalizeTokens() != 500 || strings.Join(fields, " ") != c.want {
			t.Errorf("%s is marked %v, want %s", name, m, c.want)
		}
	}
}

// TestGuidanceOfRepair: a plan, the question that an answer belongs to and a change of mode are
// kept, and a change of mode replaces the one before. Without compaction nothing is marked.
func TestGuidanceOfRepair(t *testing.T) {
	mode := func(s *harnessv1.Snapshot) *harnessv1.Outcome {
		return drain(t, s, &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}})
	}
	plan := func(s *harnessv1.Snapshot) *harnessv1.Outcome {
		s.Hooks = &harnessv1.HookState{Replan: "another way"}
		return drain(t, s)
	}
	question := func(s *harnessv1.Snapshot) *harnessv1.Outcome {
		id := runstate.ContractCallID("which", 1)
		s.PendingToolCalls = []*harnessv1.PendingCall{pending(id, runstate.ContractQuestion, runstate.KindQuestion, time.Hour)}
		s.PendingToolCalls[0].Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS
		return drain(t, s, result(id, "that one"))
	}
	for name, c := range map[string]struct {
		do    func(*harnessv1.Snapshot) *harnessv1.Outcome
		topic string
		kept  bool
	}{"mode": {mode, "mode", true}, "plan": {plan, "plan", true}, "question": {question, "", true}} {
		on, off := c.do(running()), c.do(marktest.Off(running()))
		if m := on.GetAppended(); len(m) == 0 || m[0].GetTopic() != c.topic || m[0].GetKept() != c.kept {
			t.Errorf("%s: appended %v", name, m)
		}
		if found := marktest.In(off); len(found) > 0 || off.GetAppended()[0].GetKept() {
			t.Errorf("%s without compaction: appended %v", name, off.GetAppended())
		}
	}
}
