package runstate_test

import (
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestQuestionsOfAContractAreToldFromCalls: only the harness can put one.
func TestQuestionsOfAContractAreToldFromCalls(t *testing.T) {
	first, second := runstate.ContractCallID("colour", 7), runstate.ContractCallID("colour", 12)
	if first == second || !runstate.IsReservedCallID(first) || runstate.IsReservedCallID("call_1") {
		t.Errorf("the calls are %q and %q", first, second)
	}
	for _, c := range []struct {
		call *harnessv1.PendingCall
		want string
	}{
		{&harnessv1.PendingCall{CallId: first, Tool: runstate.ContractQuestion, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS}, "colour"},
		{&harnessv1.PendingCall{CallId: first, Tool: runstate.ContractQuestion, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT}, ""},
		{&harnessv1.PendingCall{CallId: first, Tool: "ask_user", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS}, ""},
		{&harnessv1.PendingCall{CallId: "contract:", Tool: runstate.ContractQuestion, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS}, ""},
		{nil, ""},
	} {
		if got, ok := runstate.QuestionOf(c.call); got != c.want || ok != (c.want != "") {
			t.Errorf("%v puts %q, %v", c.call, got, ok)
		}
	}
}

// TestWhatHooksWantIsNoted: a later reason takes the place of a former one, an empty one
// takes nothing back, and a long one is cut.
func TestWhatHooksWantIsNoted(t *testing.T) {
	s := &harnessv1.Snapshot{}
	runstate.NoteHook(s, "", "", "")
	if s.GetHooks() != nil {
		t.Errorf("nothing is wanted: %v", s.GetHooks())
	}
	runstate.NoteHook(s, "skip", "pause", "replan")
	runstate.NoteHook(s, "", "pause again", "")
	if h := s.GetHooks(); h.GetSkipNext() != "skip" || h.GetPause() != "pause again" || h.GetReplan() != "replan" {
		t.Errorf("noted %v", h)
	}
	runstate.NoteHook(s, strings.Repeat("x", 10_000), "", "")
	if n := len(s.GetHooks().GetSkipNext()); n > 512 || n == 0 {
		t.Errorf("a reason of %d bytes", n)
	}
}

// TestUsageIsBounded: tools that are not offered, and those beyond the bound, share a name.
func TestUsageIsBounded(t *testing.T) {
	s := &harnessv1.Snapshot{}
	for i := range 300 {
		runstate.CountToolUse(s, fmt.Sprintf("t%d", i), true)
		runstate.CountToolUse(s, "t0", true)
	}
	runstate.CountToolUse(s, "made up", false)
	calls, used := uint32(0), map[string]uint32{}
	for _, u := range s.GetToolUsage() {
		calls += u.GetCalls()
		used[u.GetTool()] = u.GetCalls()
	}
	if len(s.GetToolUsage()) != 128 || calls != 601 || used["t0"] != 301 || used["t126"] != 1 || used["other"] != 174 || used["made up"] != 0 {
		t.Errorf("%d tools, %d calls, other %d", len(s.GetToolUsage()), calls, used["other"])
	}
}
