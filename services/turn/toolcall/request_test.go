package toolcall_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// TestRequestIsTotal: each disposition, with and without a review, has exactly one carrier, and one that
// waits has its kind.
func TestRequestIsTotal(t *testing.T) {
	want := map[harnessv1.CallDisposition]string{
		harnessv1.CallDisposition_CALL_DISPOSITION_UNSPECIFIED: "invalid",
		harnessv1.CallDisposition_CALL_DISPOSITION_RUN:         "tool host",
		harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:     "harness work_complete",
		harnessv1.CallDisposition_CALL_DISPOSITION_ASK:         runstate.KindApproval,
		harnessv1.CallDisposition_CALL_DISPOSITION_INVALID:     "invalid",
		harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:      "denied",
		harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT:      runstate.KindClientTool,
		harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION:    runstate.KindQuestion,
		harnessv1.CallDisposition_CALL_DISPOSITION_WAIT:        runstate.KindWait,
		harnessv1.CallDisposition_CALL_DISPOSITION_AGENT:       runstate.KindAgent,
	}
	for number, name := range harnessv1.CallDisposition_name {
		for _, review := range []bool{false, true} {
			c := &harnessv1.PreparedCall{
				CallId: "c", Tool: "work_complete", Disposition: harnessv1.CallDisposition(number), Review: review,
				Message: "why", SandboxHosts: []string{"a.example"}, Writes: true,
			}
			got := ""
			switch by := toolcall.Request(c, content.Inline("{}"), 3).(type) {
			case toolcall.Call:
				got = "tool host"
				if by.ID != "c" || by.Tool != "work_complete" || content.Text(by.Arguments) != "{}" || !slices.Equal(by.Hosts, c.GetSandboxHosts()) {
					t.Errorf("%s: %+v", name, by)
				}
			case toolcall.Harness:
				got = fmt.Sprint("harness ", by.Tool.Spec.GetName())
				if by.Arguments != "{}" {
					t.Errorf("%s: %+v", name, by)
				}
			case toolcall.PendingCall:
				got = by.GetKind()
				if by.GetCallId() != "c" || by.GetTurnNumber() != 3 || by.GetWhy() != "why" || content.Text(by.GetArguments()) != "{}" || !by.GetWrites() || by.GetDeadline() != nil {
					t.Errorf("%s: %v", name, by.PendingCall)
				}
			case toolcall.Refusal:
				got = map[bool]string{true: "denied", false: "invalid"}[by.Denied]
			}
			if expected, known := want[harnessv1.CallDisposition(number)]; review && got != runstate.KindReview || !review && (!known || got != expected) {
				t.Errorf("%s, review %v: %q, want %q", name, review, got, expected)
			}
			if refused := got == "denied" || got == "invalid"; !review && refused == toolcall.Accepted(c) && number != 0 {
				t.Errorf("%s: accepted %v", name, toolcall.Accepted(c))
			}
		}
	}
}
