package judgement

import (
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// loopsAnswered answers the pending calls of a run each time it parks, until it has ended.
func loopsAnswered(r *live.Run, answer func(*harnessv1.PendingCall) *harnessv1.SendInputRequest) *live.Transcript {
	r.T.Helper()
	s := r.Wait()
	for s.Result.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED {
		for _, p := range s.Result.GetPending() {
			stopSend(r, answer(p))
		}
		next := r.WaitAfter(stopVersion(s))
		next.Events = append(s.Events, next.Events...)
		s = next
	}
	return s
}

// A call that has to be approved each time is in a loop like any other.
func TestLoopOfApprovedCalls(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Calls(stopShell("echo same"))), func(spec *harnessv1.RunSpec) { spec.Config.Tools = nil })
	s := loopsAnswered(r, func(p *harnessv1.PendingCall) *harnessv1.SendInputRequest {
		return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
			CallId: p.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
		}}}
	})
	s.Want("STALLED doom_loop")
	if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{3, 4, 5}) || s.Result.GetTurnCount() != 6 {
		t.Errorf("corrected after %v, %d turns", got, s.Result.GetTurnCount())
	}
}

// A call that is not approved, again and again, too.
func TestLoopOfRefusedCalls(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Calls(stopShell("echo same"))), func(spec *harnessv1.RunSpec) { spec.Config.Tools = nil })
	s := loopsAnswered(r, func(p *harnessv1.PendingCall) *harnessv1.SendInputRequest {
		return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
			CallId: p.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, Reason: "no",
		}}}
	})
	s.Want("STALLED doom_loop")
	if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{3, 4, 5}) || s.Result.GetTurnCount() != 6 {
		t.Errorf("corrected after %v, %d turns", got, s.Result.GetTurnCount())
	}
}

// A client's tool that answers the same each time too, and a question to the user.
func TestLoopOfCallsWithAnswersFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]modeltest.Call{"client tool": live.Call("look_up", live.Args{"word": "mesh"}), "question": live.Call("ask_user", live.Args{"question": "Which?"})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Start(t, live.Replies(live.Calls(c)), func(spec *harnessv1.RunSpec) {
				spec.ClientTools = []*harnessv1.ToolSpec{{
					Name: "look_up", Description: "Look a word up.", ParametersSchema: `{"type":"object","properties":{"word":{"type":"string"}}}`,
					Annotations: &harnessv1.ToolAnnotations{Reads: true},
				}}
			})
			s := loopsAnswered(r, func(p *harnessv1.PendingCall) *harnessv1.SendInputRequest {
				return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
					CallId: p.GetCallId(), Result: content.Inline("the same as before"),
				}}}
			})
			s.Want("STALLED doom_loop")
			if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{3, 4, 5}) || s.Result.GetTurnCount() != 6 {
				t.Errorf("corrected after %v, %d turns", got, s.Result.GetTurnCount())
			}
		})
	}
}
