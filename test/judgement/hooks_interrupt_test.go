package judgement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestHooksThatHangDoNotHoldUpAnInterrupt: at every topic of a turn and at the stop, a
// run whose hook does not answer is interrupted immediately and continues after a resume.
func TestHooksThatHangDoNotHoldUpAnInterrupt(t *testing.T) {
	t.Parallel()
	for _, topic := range []harnessv1.HookTopic{hooksBeforeStep, hooksBeforeCall, hooksAfterCall, hooksOnError, hooksAfterStep, hooksAgentStop} {
		t.Run(hooksTopic(topic), func(t *testing.T) {
			t.Parallel()
			hooksHang(t, topic)
		})
	}
}

// TestHooksThatHangWhileAPlanIsMadeDoNotHoldUpAnInterrupt: nor do those that repair asks.
func TestHooksThatHangWhileAPlanIsMadeDoNotHoldUpAnInterrupt(t *testing.T) {
	t.Parallel()
	hooksHang(t, hooksBeforePlan)
}

// hooksHang interrupts a run whose hook does not answer, and resumes it.
func hooksHang(t *testing.T, topic harnessv1.HookTopic) {
	t.Helper()
	ctx, release := context.WithCancel(t.Context())
	called := make(chan struct{}, 64)
	service := hooksServe(t, func(hooksCall) (*harnessv1.HookVerdict, error) {
		called <- struct{}{}
		<-ctx.Done()
		return nil, nil
	})
	t.Cleanup(release)
	h := &harnessv1.Hook{Topic: topic, Grpc: service.addr, Timeout: durationpb.New(5 * time.Minute)}
	r := live.Start(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"), hooksRead("missing.txt"))), hooksSet(h))
	select {
	case <-called:
	case <-time.After(live.Limit):
		t.Fatalf("the hook was not called: %v", r.State())
	}
	if _, err := live.Gateway(t).InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.ID, Reason: "wait"}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("PARKED interrupted")
	release()
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
	phasesWhole(t, end.Wait())
}

// TestHooksOfAClientThatAttachesLater: a client that attaches with answers_hooks is called from
// then on.
func TestHooksOfAClientThatAttachesLater(t *testing.T) {
	t.Parallel()
	s := live.Play(t, hooksScript(live.Calls(live.Call("ask_client", live.Args{})), live.Calls(hooksWrite("a.txt", "A"))), phasesClientTool,
		hooksSet(&harnessv1.Hook{Id: "guard", Topic: hooksBeforeCall, Tools: []string{"write_file"}, Callback: true}))
	s.Want("PARKED client_tool")
	stream, err := live.Gateway(t).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &hooksStream{Run: s.Run, stream: stream, receipts: make(chan *harnessv1.InputReceipt, 64), answer: func(hooksCall) (*harnessv1.HookVerdict, error) {
		return hooksVerdict(hooksDeny, "the client that attached says no"), nil
	}}
	c.send(&harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: s.ID, AfterVersion: hooksVersion(s), AnswersHooks: true}}})
	if first, err := stream.Recv(); err != nil || first.GetUpdate().GetAttached() == nil {
		t.Fatalf("the stream begins with %v, %v", first, err)
	}
	go c.receive()
	hooksGive(s.Run, "call_1_0", "an answer", false)
	end := s.WaitAfter(hooksVersion(s))
	end.Want("DONE agent_done accepted")
	if len(hooksErrors(end)) != 0 || end.Exists("a.txt") {
		t.Errorf("failures %q; a.txt is there: %v", hooksErrors(end), end.Exists("a.txt"))
	}
	hooksTold(t, end, 2, "the client that attached says no")
}

// TestHooksOfAClientThatSaysItFailedFail: its error is in the event, and counts by the
// policy.
func TestHooksOfAClientThatSaysItFailedFail(t *testing.T) {
	t.Parallel()
	c := hooksDrive(t, hooksScript(live.Calls(hooksWrite("a.txt", "A"))), func(hooksCall) (*harnessv1.HookVerdict, error) {
		return nil, errors.New("the window of the client is gone")
	}, hooksSet(&harnessv1.Hook{Id: "guard", Topic: hooksBeforeCall, Tools: []string{"write_file"}, Callback: true}))
	s := c.Wait()
	s.Want("DONE agent_done accepted")
	hooksSame(t, "failures", hooksErrors(s), "guard before_tool_call closed")
	hooksTold(t, s, 1, "the window of the client is gone")
	if s.Exists("a.txt") {
		t.Error("the call ran")
	}
}

// TestHooksOverManyTurnsLeaveThePrefixAsItWas: hooks that deny, replace, add, block,
// skip, review and replan turns over a long run: each request
// begins with the one before it.
func TestHooksOverManyTurnsLeaveThePrefixAsItWas(t *testing.T) {
	t.Parallel()
	service := hooksServe(t, func(h hooksCall) (*harnessv1.HookVerdict, error) {
		turn := h.GetTurnNumber()
		switch {
		case h.GetTopic() == hooksBeforeCall && turn%5 == 0:
			return hooksVerdict(hooksDeny, fmt.Sprintf("no in turn %d", turn)), nil
		case h.GetTopic() == hooksBeforeCall && turn%7 == 0:
			return hooksInstead("arguments", live.Args{"command": fmt.Sprintf("echo other in turn %d", turn)}), nil
		case h.GetTopic() == hooksAfterCall && turn%3 == 0:
			v := hooksInstead("result", fmt.Sprintf("other result in turn %d", turn))
			v.Context = fmt.Sprintf("added in turn %d", turn)
			return v, nil
		case h.GetTopic() == hooksAfterStep && turn == 8:
			return hooksVerdict(hooksSkip, "rest a turn"), nil
		case h.GetTopic() == hooksAfterStep && turn == 12:
			return hooksVerdict(hooksPause, "look"), nil
		case h.GetTopic() == hooksAfterStep && turn == 14:
			return hooksVerdict(hooksReplan, "plan anew"), nil
		case h.GetTopic() == hooksAgentStop && turn < 24:
			return hooksVerdict(hooksBlock, fmt.Sprintf("not done in turn %d", turn)), nil
		}
		return nil, nil
	})
	s := live.Play(t, hooksScript(hooksLong(20)...), hooksSet(service.at("s", hooksBeforeCall, hooksAfterCall, hooksAfterStep, hooksAgentStop)...))
	s.Want("PARKED review")
	end := hooksResume(s, nil)
	end.Want("DONE agent_done accepted")
	hooksStable(t, end)
	last := end.Text(len(end.Requests) - 1)
	for _, words := range []string{"no in turn 5", "no in turn 10", "other in turn 7", "other result in turn 3", "added in turn 3", "plan anew", "not done in turn 22"} {
		if n := strings.Count(last, words); n != 1 {
			t.Errorf("the model reads %q %d times", words, n)
		}
	}
}
