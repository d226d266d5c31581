package judgement

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func waitCall(args live.Args) modeltest.Reply { return live.Calls(live.Call("wait", args)) }

// waitEvents are the kinds of events that a wait must not repeat.
func waitEvents(s *live.Transcript) int { return len(s.Names("tool.call", "step.start")) }

// A wait is one call of one turn, and its result names what ended it.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args live.Args
		want string // a regular expression: a busy machine may wait longer
	}{
		"time":    {live.Args{"seconds": 1}, `The time is over\n\[waited [1-9]\d* seconds\]`},
		"command": {live.Args{"command": "echo ready; test -f go"}, `The command succeeded\. Its output:\nready\n`},
		"file":    {live.Args{"path": "go"}, `The file go has appeared\n`},
		"deadline": {live.Args{"command": "echo no; exit 3", "deadline": 1},
			`The wait ended at its deadline: what it waits for has not happened\. The command last exited with 3\. Its output:\nno\n\[waited [1-9]\d* seconds\]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, stopOnce(waitCall(c.args)))
			parked := make(chan struct{})
			go func() { // the file appears after the first check
				defer close(parked)
				for t.Context().Err() == nil {
					if c.args["path"] == nil && c.args["command"] == nil {
						return
					}
					if got, err := live.Gateway(t).GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: r.ID}); err == nil && waitChecked(got) {
						_ = os.WriteFile(filepath.Join(r.Dir, "go"), nil, 0o600)
						return
					}
				}
			}()
			s := stopPlay(r)
			<-parked
			s.Want("DONE agent_done accepted")
			if s.Result.GetTurnCount() != 2 || len(s.Requests) != 2 || s.Result.GetToolCalls() != 2 {
				t.Errorf("%d turns, %d requests, %d calls", s.Result.GetTurnCount(), len(s.Requests), s.Result.GetToolCalls())
			}
			if got := stopAnswers(s, 1); len(got) != 1 || !regexp.MustCompile(c.want).MatchString(got[0]) {
				t.Errorf("the answer is %q, want %q", got, c.want)
			}
			if n := waitEvents(s); n > 5 {
				t.Errorf("%d calls and steps: %v", n, s.Names())
			}
		})
	}
}

// waitChecked reports whether a run is parked for a wait that was checked.
func waitChecked(r *harnessv1.GetRunResponse) bool {
	for _, p := range r.GetResult().GetPending() {
		if p.GetKind() == "wait" && p.GetWait().GetChecks() > 0 {
			return true
		}
	}
	return false
}

// A background command that ends, ends the wait for it; without it there is nothing to wait
// for.
func TestWaitForABackgroundCommand(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(
		live.Calls(live.Call("run_command", live.Args{"command": "sleep 1; exit 7", "background": true})),
		waitCall(live.Args{"background": "bg1"}),
		waitCall(live.Args{"background": "bg9"}),
	))
	s.Want("DONE agent_done accepted")
	stopTold(t, s, 2, "The background command bg1 has ended: exit code 7")
	stopTold(t, s, 3, "No background command bg9 is running")
}

// What cannot be waited for is refused with the reason.
func TestWaitRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args live.Args
		want string
	}{
		{live.Args{}, "exactly one thing to wait for"},
		{live.Args{"seconds": 1, "path": "a"}, "got 2"},
		{live.Args{"url": "https://example.com"}, "url"},
		{live.Args{"path": "../a"}, "inside the workspace"},
		{live.Args{"seconds": 86401}, "86400"},
		{live.Args{"seconds": 0}, "seconds"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, stopOnce(waitCall(c.args)))
			s.Want("DONE agent_done accepted")
			stopTold(t, s, 1, c.want)
		})
	}
}

// A command of a wait is under the policy of commands.
func TestWaitCommandIsUnderThePolicyOfCommands(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(waitCall(live.Args{"command": "true"})), func(spec *harnessv1.RunSpec) {
		spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}}
	})
	s.Want("DONE agent_done accepted")
	stopTold(t, s, 1, "not allowed")
	t.Run("asks once", func(t *testing.T) {
		t.Parallel()
		r := live.Start(t, stopOnce(waitCall(live.Args{"command": "test -e n || { echo > n; exit 1; }"})), func(spec *harnessv1.RunSpec) {
			spec.Config.Tools = nil
			spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}
		})
		asked := 0
		s := loopsAnswered(r, func(p *harnessv1.PendingCall) *harnessv1.SendInputRequest {
			asked++
			return &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
				CallId: p.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
			}}}
		})
		s.Want("DONE agent_done accepted")
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
	t.Run("plan mode", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, stopOnce(waitCall(live.Args{"command": "true"})), func(spec *harnessv1.RunSpec) { spec.Agent.Mode = "plan" })
		s.Want("DONE agent_done accepted")
		stopTold(t, s, 1, "plan")
	})
}

// waitParked waits until a run is parked for a wait.
func waitParked(r *live.Run) {
	r.T.Helper()
	for {
		got, err := live.Gateway(r.T).GetRun(r.T.Context(), &harnessv1.GetRunRequest{RunId: r.ID})
		if err != nil {
			r.T.Fatal(err)
		}
		if got.GetResult().GetReason().GetKind() == "wait" {
			return
		}
	}
}

// A message ends a wait, and is in the next request; an interrupt parks the run.
func TestWaitIsOverWithAMessage(t *testing.T) {
	t.Parallel()
	r := live.Start(t, stopOnce(waitCall(live.Args{"seconds": 86400})))
	waitParked(r)
	stopSay(r, "Stop waiting, please.")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	stopTold(t, s, 1, "a message of the user arrived", "Stop waiting, please.")
}

func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	r := live.Start(t, stopOnce(waitCall(live.Args{"command": "false"})))
	waitParked(r)
	if _, err := live.Gateway(t).InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("PARKED interrupted")
	if _, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	r.WaitAfter(stopVersion(s)).Want("DONE agent_done accepted")
}

// A budget of time runs on during a wait.
func TestWaitUsesTheTimeBudget(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := live.Play(t, stopOnce(waitCall(live.Args{"seconds": 600})), func(spec *harnessv1.RunSpec) {
		spec.Config.Budgets = stopSeconds(2)
	})
	s.Want("PARKED budget_exceeded:wall_clock")
	if took := time.Since(began); took < time.Second || took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// An agent that polls receives a message about wait before that counts as a loop, and is neither in a loop
// nor stalled if it waits between its polls, whatever they return.
func TestLoopOfAPollThatWaits(t *testing.T) {
	t.Parallel()
	poll := live.Calls(stopShell("echo in progress"))
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		switch {
		case n < 2 || n%2 == 1 && n < 8:
			return poll
		case n < 8:
			return waitCall(live.Args{"seconds": 5})
		}
		return live.Done()
	})
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s))
	stopTold(t, s, 2, "call wait")
	if strings.Count(s.Text(len(s.Requests)-1), "call wait.") != 1 {
		t.Error("the message comes again")
	}
}

// Switched off, the tool leaves no trace.
func TestWaitOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopShell("echo same")), live.Calls(stopShell("echo same"))), func(spec *harnessv1.RunSpec) {
		off := false
		if spec.Config.Tools == nil {
			spec.Config.Tools = &harnessv1.ToolConfig{}
		}
		spec.Config.Tools.Wait = &off
	})
	s.Want("DONE agent_done accepted")
	for n, r := range s.Requests {
		for _, tool := range r.Tools {
			if tool.Name == "wait" {
				t.Errorf("request %d has the tool", n+1)
			}
		}
		if strings.Contains(s.Text(n), "call wait") {
			t.Errorf("request %d names the tool", n+1)
		}
	}
}
