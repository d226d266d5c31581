package judgement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// stopOneTry lets a model be tried once, and an outage be waited out for an hour.
func stopOneTry(spec *harnessv1.RunSpec) {
	spec.Config.Model = &harnessv1.ModelConfig{MaxTries: proto.Uint32(1), OutageRetry: durationpb.New(time.Hour)}
}

// A refused key or an unknown model ends the run; the turn that failed is not counted.
func TestStopProviderThatRefusesFailsTheRun(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(modeltest.Reply{Status: 401, ErrorMessage: "no such key"}), stopOneTry)
	s.Want("FAILED provider_error")
	if s.Result.GetTurnCount() != 0 || !strings.Contains(s.Result.GetReason().GetMessage(), "401") {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Result.GetReason())
	}
	if got := s.Names("session.complete"); len(got) != 1 {
		t.Errorf("session.complete %d times", len(got))
	}
}

// A request that is too long for the model leads to a compaction and another try, and the
// turn is not counted. Refused again, or with nothing to free, the run ends with a separate
// reason.
func TestStopExhaustedWindow(t *testing.T) {
	t.Parallel()
	long := modeltest.Reply{Status: 400, ErrorCode: "context_length_exceeded", ErrorMessage: "too long"}
	read := func(n int) modeltest.Reply {
		return live.Calls(live.Call("read_file", live.Args{"path": fmt.Sprintf("f%d.txt", n)}))
	}
	off := func(spec *harnessv1.RunSpec) {
		spec.Config.Context = &harnessv1.ContextConfig{Compaction: proto.Bool(false)}
	}
	for _, c := range []struct {
		name     string
		edit     func(*harnessv1.RunSpec)
		replies  []modeltest.Reply
		refusals int
		passes   int
		want     string
		turns    uint32
	}{
		{"refused once", nil, []modeltest.Reply{read(0), read(1), read(2), read(3), long, live.Done()}, 1, 1, "DONE agent_done accepted", 5},
		{"refused twice", nil, []modeltest.Reply{read(0), read(1), read(2), read(3), long, long, live.Done()}, 2, 1, "FAILED context_exhausted", 4},
		{"refused again after an answer", nil, []modeltest.Reply{read(0), read(1), read(2), read(3), long, read(4), read(5), read(6), long, live.Done()}, 2, 2, "DONE agent_done accepted", 8},
		{"nothing to free", nil, []modeltest.Reply{long, live.Done()}, 1, 0, "FAILED context_exhausted", 0},
		{"compaction switched off", off, []modeltest.Reply{read(0), read(1), read(2), read(3), long, live.Done()}, 1, 0, "FAILED context_exhausted", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(c.replies...))
			for n := range 7 {
				r.Write(fmt.Sprintf("f%d.txt", n), strings.Repeat(fmt.Sprintf("line of file %d\n", n), 500))
			}
			edits := []func(*harnessv1.RunSpec){stopOneTry}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			if _, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(edits...)}); err != nil {
				t.Fatal(err)
			}
			s := r.Wait()
			s.Want(c.want)
			refusals, passes := len(s.Names("model.retry")), len(s.Names("compaction.completed"))
			if refusals != c.refusals || passes != c.passes || s.Result.GetTurnCount() != c.turns {
				t.Errorf("%d refusals, %d compactions, %d turns", refusals, passes, s.Result.GetTurnCount())
			}
		})
	}
}

// A provider that is down parks the run with a timer and the turn is not counted, not
// even if it would be the last one. After a resume the same turn continues.
func TestStopOutageParksWithATimer(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(modeltest.Reply{Status: 503}, live.Done()), stopOneTry, stopMaxTurns(1))
	s := r.Wait()
	s.Want("PARKED provider_unavailable")
	if s.Result.GetTurnCount() != 0 || s.Result.GetWakeAt() == nil {
		t.Errorf("%d turns, wakes at %v", s.Result.GetTurnCount(), s.Result.GetWakeAt())
	}
	if _, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s = r.WaitAfter(stopVersion(s))
	s.Want("DONE max_turns")
	if s.Result.GetTurnCount() != 1 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
}

// stopHanging returns a model that signals its first request and then waits, except for requests
// beyond the first.
func stopHanging(t *testing.T, beyond modeltest.Reply) (live.Model, <-chan struct{}) {
	t.Helper()
	asked, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	return func(n int, _ *modeltest.Request) modeltest.Reply {
		if n > 0 {
			return beyond
		}
		close(asked)
		<-release
		return live.Message("too late")
	}, asked
}

func stopAwait(t *testing.T, asked <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	select {
	case <-asked:
	case <-ctx.Done():
		t.Fatal("the model was never asked")
	}
}

// A cancel in the middle of a turn ends the run as cancelled, also in its last turn.
func TestStopCancelWinsInTheLastTurn(t *testing.T) {
	t.Parallel()
	m, asked := stopHanging(t, live.Done())
	r := live.Start(t, m, stopMaxTurns(1))
	stopAwait(t, asked)
	if _, err := live.Gateway(t).CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: r.ID, Reason: "not needed any more"}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("CANCELLED cancelled")
	if !strings.Contains(s.Result.GetReason().GetMessage(), "not needed any more") || len(s.Names("run.cancelled")) != 1 {
		t.Errorf("%v, %v", s.Result.GetReason(), s.Names())
	}
}

// An interrupt in the middle of a turn parks the run; after a resume it continues and can
// be completed.
func TestStopInterruptParksAndResumeContinues(t *testing.T) {
	t.Parallel()
	m, asked := stopHanging(t, live.Done())
	r := live.Start(t, m)
	stopAwait(t, asked)
	if _, err := live.Gateway(t).InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("PARKED interrupted")
	if _, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s = r.WaitAfter(stopVersion(s))
	s.Want("DONE agent_done accepted")
}

// What is awaited from outside wins over max_turns, and over an agent that is done: the
// run parks, and is judged after the answer.
func TestStopAwaitedApprovalWinsOverMaxTurns(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Calls(stopShell("touch ran"), stopDone("s"))), stopMaxTurns(1), func(spec *harnessv1.RunSpec) { spec.Config.Tools = nil })
	s := r.Wait()
	s.Want("PARKED approval")
	if s.Exists("ran") || len(s.Result.GetPending()) != 1 {
		t.Fatalf("ran %t, pending %v", s.Exists("ran"), s.Result.GetPending())
	}
	stopSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
		CallId: s.Result.GetPending()[0].GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	}}})
	s = r.WaitAfter(stopVersion(s))
	s.Want("DONE max_turns")
	if !s.Exists("ran") || s.Result.GetTurnCount() != 1 {
		t.Errorf("ran %t, %d turns", s.Exists("ran"), s.Result.GetTurnCount())
	}
}

// The same with turns left: the agent called work_complete together with the call that was
// approved, so after the answer the work is done.
func TestStopDoneWithAnApprovalCountsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Calls(stopShell("touch ran"), stopDone("s"))), func(spec *harnessv1.RunSpec) { spec.Config.Tools = nil })
	s := r.Wait()
	s.Want("PARKED approval")
	stopSend(r, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
		CallId: s.Result.GetPending()[0].GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
	}}})
	s = r.WaitAfter(stopVersion(s))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || len(s.Requests) != 1 {
		t.Errorf("%d turns, %d requests", s.Result.GetTurnCount(), len(s.Requests))
	}
}

// An error of the turn wins over max_turns and over an agent that is done.
func TestStopTurnErrorWinsOverMaxTurns(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopDone("s"))), stopMaxTurns(1), stopHooks(&harnessv1.Hook{
		Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, Cel: "turn == 1",
		Action: harnessv1.HookAction_HOOK_ACTION_ABORT, Reason: "the disk is full",
	}))
	s.Want("FAILED failed")
	if !strings.Contains(s.Result.GetReason().GetMessage(), "the disk is full") {
		t.Errorf("%v", s.Result.GetReason())
	}
}

// max_turns wins over an agent that is done in that turn: not accepted, no gate asked.
func TestStopMaxTurnsWinsOverDone(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopRead("a.txt")), live.Calls(stopDone("s"))), stopMaxTurns(2),
		stopHooks(stopBlock("true", "never")), stopFiles(t, map[string]string{"a.txt": "a"}))
	s.Want("DONE max_turns")
	if s.Result.GetTurnCount() != 2 || len(s.Names("hook.result", "stop.rejected")) != 0 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
	d := s.Result.GetReason().GetDetails()
	if d.GetTurn() != 2 || !d.GetWorkCompleteCalled() {
		t.Errorf("details %v", d)
	}
	if s.State().GetAccepted() {
		t.Error("the state says accepted")
	}
}

// The coverage in the result of such a run is that of its end.
func TestStopMaxTurnsShowsTheCoverageOfTheEnd(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopWrite("one.txt", "1"), stopDone("s"))), stopMaxTurns(1), stopWanted("one.txt", "two.txt"))
	s.Want("DONE max_turns")
	c := s.Result.GetCoverage()
	if c.GetMet() != 1 || c.GetTotal() != 2 || !slices.Equal(c.GetUnmet(), []string{"two.txt"}) {
		t.Errorf("coverage %v", c)
	}
}

// max_turns wins over a loop and over a stall that would end the run in the same turn.
func TestStopMaxTurnsWinsOverLoopAndStall(t *testing.T) {
	t.Parallel()
	t.Run("loop", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, live.Replies(live.Calls(stopRead("a.txt"))), stopMaxTurns(6), stopFiles(t, map[string]string{"a.txt": "a"}))
		s.Want("DONE max_turns")
	})
	t.Run("stall", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, live.Replies(live.Calls(stopRead("a.txt"))), stopMaxTurns(3), loopsOff, stopFiles(t, map[string]string{"a.txt": "a"}))
		s.Want("DONE max_turns")
	})
}

// Where nothing matches the next turn follows, numbered on.
func TestStopNothingMatchesMeansTheNextTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopRead("a.txt")), live.Calls(stopRead("b.txt")), live.Calls(stopRead("c.txt"))))
	s.Want("DONE agent_done accepted")
	var started []uint32
	for _, e := range s.Events {
		if e.GetStepStart() != nil {
			started = append(started, e.GetTurnNumber())
		}
		if e.GetMaxTurns() != 50 {
			t.Errorf("max_turns = %d in an event", e.GetMaxTurns())
		}
	}
	if !slices.Equal(started, []uint32{1, 2, 3, 4}) || len(s.Requests) != 4 || len(s.Names("stop.rejected", "doom_loop.detected", "stall.detected")) != 0 {
		t.Errorf("turns %v, %d requests, %v", started, len(s.Requests), s.Names())
	}
}
