package render

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestCallersAreNamed in what they have decided, unless they are the user of this machine.
func TestCallersAreNamed(t *testing.T) {
	for caller, named := range map[string]bool{"nina": true, "anonymous": true, "local": false, "": false} {
		for line, e := range map[string]*harnessv1.Event{
			"run_command denied": {Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
				Tool: "run_command", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "why", Caller: caller,
			}}},
			"interrupted": {Event: &harnessv1.Event_RunInterrupted{RunInterrupted: &harnessv1.RunInterrupted{Reason: "why", Caller: caller}}},
			"cancelled":   {Event: &harnessv1.Event_RunCancelled{RunCancelled: &harnessv1.RunCancelled{Reason: "why", Caller: caller}}},
		} {
			var out strings.Builder
			NewText(&out, Style{}, nil).Event(e)
			want := line + ": why"
			if named {
				want = line + " by " + caller + ": why"
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q, want %q", out.String(), want)
			}
		}
	}
}
