package repair_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestAnswersFromOutsideAreCounted in the figures of the segment: of tools of clients, and of calls that
// were refused or not answered. A call whose end is unknown was counted by its turn.
func TestAnswersFromOutsideAreCounted(t *testing.T) {
	s := asking()
	s.Quality = &harnessv1.QualityState{Results: &harnessv1.ToolResultFigures{Chars: 3, Calls: 1, LargestTool: "grep", LargestChars: 3, ByTool: map[string]uint32{"grep": 1}}}
	client := s.GetPendingToolCalls()[0]
	client.CallId = "c"
	o, _ := answered(t, s, nil, result("c", "räin"))
	if got := o.GetStep().GetSnapshot().GetQuality().GetResults(); got.GetCalls() != 2 || got.GetChars() != 7 || got.GetLargestChars() != 4 ||
		got.GetLargestTool() != client.GetTool() || got.GetByTool()[client.GetTool()] != 1 {
		t.Errorf("counted %v", got)
	}
	s = waiting()
	s.Quality = &harnessv1.QualityState{}
	o, _ = answered(t, s, nil, approve("a", deny), cancel())
	if got := o.GetStep().GetSnapshot().GetQuality().GetResults(); got.GetByTool()["run_command"] != 2 || got.GetChars() == 0 {
		t.Errorf("refused and cancelled: %v", got)
	}
	s = running()
	s.Quality = &harnessv1.QualityState{}
	s.PendingToolCalls = []*harnessv1.PendingCall{{CallId: "u", Tool: "run_command", TurnNumber: 2, Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN}}
	o, _ = answered(t, s, nil)
	if got := o.GetStep().GetSnapshot().GetQuality().GetResults(); got.GetCalls() != 0 || len(o.GetAppended()) == 0 {
		t.Errorf("unknown: %v after %v", got, o.GetAppended())
	}
}
