package runstate_test

import (
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestQuestionsAreDistinguishedFromCalls: only the harness can put one.
func TestQuestionsAreDistinguishedFromCalls(t *testing.T) {
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

// TestWantsOfHooksAreRecorded: a later reason replaces a former one, an empty one
// takes nothing back, and a long one is cut.
func TestWantsOfHooksAreRecorded(t *testing.T) {
	s := &harnessv1.Snapshot{}
	runstate.RecordWants(s, &harnessv1.HookState{SkipNext: "", Pause: "", Replan: ""})
	if s.GetHooks() != nil {
		t.Errorf("nothing is wanted: %v", s.GetHooks())
	}
	runstate.RecordWants(s, &harnessv1.HookState{SkipNext: "skip", Pause: "pause", Replan: "replan"})
	runstate.RecordWants(s, &harnessv1.HookState{SkipNext: "", Pause: "pause again", Replan: ""})
	if h := s.GetHooks(); h.GetSkipNext() != "skip" || h.GetPause() != "pause again" || h.GetReplan() != "replan" {
		t.Errorf("noted %v", h)
	}
	runstate.RecordWants(s, &harnessv1.HookState{SkipNext: strings.Repeat("x", 10_000)})
	if n := len(s.GetHooks().GetSkipNext()); n > 512 || n == 0 {
		t.Errorf("a reason of %d bytes", n)
	}
}

// TestUsageIsBounded: tools that are unknown, and those beyond the bound, share a name.
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
