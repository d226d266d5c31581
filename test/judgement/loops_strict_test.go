package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// One equal call a turn is corrected after turns three, four and five, each time with
// the next request, and ends the run after turn six.
func TestLoopOfEqualCallsIsCorrectedThreeTimesThenEnds(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReads("a"), loopsABC(t))
	s.Want("STALLED doom_loop")
	if s.Result.GetTurnCount() != 6 || len(s.Requests) != 6 {
		t.Errorf("%d turns, %d requests", s.Result.GetTurnCount(), len(s.Requests))
	}
	stopSame(t, "loops", loopsSeen(s), "3 strict 1×3 correction 1", "4 strict 1×4 correction 2", "5 strict 1×5 correction 3", "6 strict 1×6 correction 0")
	corrections := loopsCorrections(s)
	if len(corrections) != 3 {
		t.Errorf("corrections %v", corrections)
	}
	for turn := uint32(3); turn <= 5; turn++ {
		said := corrections[turn]
		stopTold(t, s, int(turn), said, "read_file", fmt.Sprintf("%d times", turn))
		if !strings.Contains(said, "nother") && !strings.Contains(said, "different") {
			t.Errorf("the correction after turn %d does not ask for another approach: %s", turn, said)
		}
		if got := strings.Count(s.Text(5), said); got != 1 {
			t.Errorf("the correction after turn %d is %d times in the last request", turn, got)
		}
		if m := stopLast(s, int(turn)); m.Role != "user" {
			t.Errorf("request %d ends with a message of %s", turn+1, m.Role)
		}
	}
	if corrections[3] == corrections[4] || corrections[4] == corrections[5] {
		t.Error("the corrections do not grow firmer")
	}
	if len(s.Names("stall.detected")) != 0 {
		t.Error("a stall was seen too")
	}
	if state := s.State(); state.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED || state.GetPhase() != harnessv1.Phase_PHASE_DONE || state.GetDoomLoop().GetCorrections() != 3 {
		t.Errorf("the state is %s, %s, with %d corrections", state.GetStatus(), state.GetPhase(), state.GetDoomLoop().GetCorrections())
	}
	stopStable(t, s)
}

// A cycle of two to five calls is found once it was seen twice, and ends the run three
// corrections later. It is no stall meanwhile, though nothing moves.
func TestLoopOfACycleIsFoundAfterItsSecondTime(t *testing.T) {
	t.Parallel()
	for length := uint32(2); length <= 5; length++ {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, loopsReads("abcde"[:length]), loopsABC(t))
			s.Want("STALLED doom_loop")
			first := 2 * length
			if s.Result.GetTurnCount() != first+3 {
				t.Errorf("%d turns, want %d", s.Result.GetTurnCount(), first+3)
			}
			if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{first, first + 1, first + 2}) {
				t.Errorf("corrected after %v", got)
			}
			if got := loopsSeen(s)[0]; got != fmt.Sprintf("%d strict %d×2 correction 1", first, length) {
				t.Errorf("seen first: %s", got)
			}
			stopTold(t, s, int(first), loopsCorrections(s)[first], fmt.Sprintf("cycle of %d", length), "read_file")
		})
	}
}

// Two equal calls in a row, or a cycle seen once, is no loop.
func TestLoopIsNotSeenTooEarly(t *testing.T) {
	t.Parallel()
	for name, letters := range map[string]string{"two equal": "aa", "three of a cycle": "aba", "cycle of five and four more": "abcdeabcd", "again after others": "aabaacaa"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, loopsReadsOnce(letters), loopsABC(t), loopsStallOff)
			s.Want("DONE agent_done accepted")
			if got := loopsSeen(s); len(got) != 0 {
				t.Errorf("seen %v", got)
			}
		})
	}
}

// Three equal calls in one response are a loop after that turn; calls are counted, not
// turns.
func TestLoopWithinOneResponse(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopRead("a.txt"), stopRead("a.txt"), stopRead("a.txt"))), loopsABC(t))
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s), "1 strict 1×3 correction 1")
	stopTold(t, s, 1, loopsCorrections(s)[1], "3 times")
}

// The same pair of calls in each response is a cycle of two after the second turn.
func TestLoopOfPairs(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(stopRead("a.txt"), stopRead("b.txt"))), loopsABC(t))
	s.Want("STALLED doom_loop")
	if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{2, 3, 4}) || s.Result.GetTurnCount() != 5 {
		t.Errorf("corrected after %v, %d turns", got, s.Result.GetTurnCount())
	}
}

// The calls of a response count in the order in which the model made them, not in that in
// which they ended in parallel.
func TestLoopOfParallelCalls(t *testing.T) {
	t.Parallel()
	var all []modeltest.Call
	for _, l := range strings.Split("abcde", "") {
		all = append(all, stopRead(l+".txt"))
	}
	s := live.Play(t, live.Replies(live.Calls(all...)), loopsABC(t))
	s.Want("STALLED doom_loop")
	stopSame(t, "loops", loopsSeen(s), "2 strict 5×2 correction 1", "3 strict 5×3 correction 2", "4 strict 5×4 correction 3", "5 strict 5×5 correction 0")
}

// Arguments are compared by their meaning: the order of an object's keys and spaces do
// not count, the order of an array does.
func TestLoopComparesArgumentsByMeaning(t *testing.T) {
	t.Parallel()
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		raw := func(arguments string) modeltest.Reply {
			return live.Calls(modeltest.Call{Name: "read_file", Arguments: arguments})
		}
		s := live.Play(t, stopOnce(raw(`{"path":"a.txt","limit":1}`), raw(`{"limit":1,"path":"a.txt"}`), raw(`{ "limit" : 1,
			"path" : "a.txt" }`)), loopsABC(t))
		s.Want("DONE agent_done accepted")
		stopSame(t, "loops", loopsSeen(s), "3 strict 1×3 correction 1")
	})
	t.Run("arrays", func(t *testing.T) {
		t.Parallel()
		of := func(list ...int) modeltest.Reply {
			return live.Calls(live.Call("no_such_tool", live.Args{"list": list}))
		}
		s := live.Play(t, stopOnce(of(1, 2, 3), of(2, 1, 3), of(3, 2, 1)), loopsStallOff)
		s.Want("DONE agent_done accepted")
		stopSame(t, "loops", loopsSeen(s))
	})
}

// Calls that fail, that are refused, that cannot be read, or that the harness answers
// itself count like any other.
func TestLoopOfCallsThatNeverRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]modeltest.Call{
		"unknown tool": live.Call("no_such_tool", live.Args{"x": 1}),
		"no file":      stopRead("gone.txt"),
		"unreadable":   {Name: "read_file", Arguments: `{"path": "a`},
		"denied":       stopShell("echo no"),
		"own tool":     live.Call("work_item_list", live.Args{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(live.Calls(c)), stopItems, func(spec *harnessv1.RunSpec) {
				spec.Agent.Tools = []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}}
			})
			s.Want("STALLED doom_loop")
			if s.Result.GetTurnCount() != 6 {
				t.Errorf("%d turns", s.Result.GetTurnCount())
			}
			stopTold(t, s, 3, c.Name)
		})
	}
}

// An agent that leaves its loop is not corrected for it again, and the count restarts
// with the next one.
func TestLoopThatTheAgentLeaves(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReadsOnce("aaaaabcdaaaaa"), loopsABC(t))
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s),
		"3 strict 1×3 correction 1", "4 strict 1×4 correction 2", "5 strict 1×5 correction 3",
		"11 strict 1×3 correction 1", "12 strict 1×4 correction 2", "13 strict 1×5 correction 3")
	if s.Result.GetTurnCount() != 14 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	if got := s.State().GetDoomLoop().GetCorrections(); got != 0 {
		t.Errorf("the state counts %d corrections of a loop that is over", got)
	}
	stopStable(t, s)
}

// A correction that works immediately is the only one.
func TestLoopThatIsLeftAtTheFirstCorrection(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReadsOnce("aaab"), loopsABC(t))
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s), "3 strict 1×3 correction 1")
}

// The same call whose result changes each time is no strict loop.
func TestLoopIsNotStrictWhenResultsChange(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopShell("echo x >> n; wc -l < n")), live.Calls(stopShell("echo x >> n; wc -l < n")),
		live.Calls(stopShell("echo x >> n; wc -l < n")), live.Calls(stopShell("echo x >> n; wc -l < n"))))
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s))
}

// The number of corrections can be set.
func TestLoopNumberOfCorrections(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]uint32{"none": 0, "one": 1, "five": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, loopsReads("a"), loopsABC(t), func(spec *harnessv1.RunSpec) {
				spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{MaxCorrections: proto.Uint32(most)}
			})
			s.Want("STALLED doom_loop")
			if s.Result.GetTurnCount() != most+3 || len(loopsCorrections(s)) != int(most) {
				t.Errorf("%d turns, corrections %v", s.Result.GetTurnCount(), loopsCorrections(s))
			}
		})
	}
}

// Switched off, loops leave no trace.
func TestLoopDetectionOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReads("a"), loopsABC(t), loopsOff, loopsStallOff, stopMaxTurns(12))
	s.Want("DONE max_turns")
	if len(loopsSeen(s))+len(loopsCorrections(s))+len(s.Names("stall.detected")) != 0 {
		t.Errorf("%v", s.Names())
	}
	if s.State().GetDoomLoop() != nil {
		t.Errorf("the state remembers %v", s.State().GetDoomLoop())
	}
}

// A stop that is claimed again and again in the same words, and rejected, is a loop as
// well: the next request has both, and the run ends after turn six.
func TestLoopOfRejectedStops(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()), stopHooks(stopBlock("true", "run the linter first")))
	s.Want("STALLED doom_loop")
	if s.Result.GetTurnCount() != 6 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	for n := 1; n <= 5; n++ {
		stopTold(t, s, n, "run the linter first")
	}
	for n := 3; n <= 5; n++ {
		stopTold(t, s, n, loopsCorrections(s)[uint32(n)], "work_complete")
	}
	stopSame(t, "rejections", stopRejected(s), "1 agent_stop_hook_blocked 1", "2 agent_stop_hook_blocked 2",
		"3 agent_stop_hook_blocked 3", "4 agent_stop_hook_blocked 4", "5 agent_stop_hook_blocked 5")
	stopStable(t, s)
}
