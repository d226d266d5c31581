package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// Loops are detected within one segment: the next message of the user restarts
// the detection.
func TestLoopDoesNotReachIntoTheNextSegment(t *testing.T) {
	t.Parallel()
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 2 || n == 5 {
			return live.Calls(stopDone(fmt.Sprint("done ", n)))
		}
		return live.Calls(stopRead("a.txt")) // two in each segment, three turns without a loop
	}
	first := live.Play(t, m, loopsABC(t))
	first.Want("DONE agent_done accepted")
	stopSay(first.Run, "Again, please.")
	second := first.WaitAfter(stopVersion(first))
	second.Want("DONE agent_done accepted")
	if got := loopsSeen(second); len(got) != 0 || second.Result.GetTurnCount() != 6 {
		t.Errorf("%d turns, loops %v", second.Result.GetTurnCount(), got)
	}
	stopStable(t, second)
}

// A run that ended for a loop reopens with the next message, and detects
// loops again.
func TestLoopThatEndedARunIsForgottenWithTheNextMessage(t *testing.T) {
	t.Parallel()
	first := live.Play(t, loopsReads("a"), loopsABC(t))
	first.Want("STALLED doom_loop")
	stopSay(first.Run, "Go on.")
	second := first.WaitAfter(stopVersion(first))
	second.Want("STALLED doom_loop")
	if got := loopsTurns(second, "strict"); !slices.Equal(got, []uint32{9, 10, 11}) || second.Result.GetTurnCount() != 12 {
		t.Errorf("corrected after %v, %d turns", got, second.Result.GetTurnCount())
	}
	stopStable(t, second)
}

// The result of a run that was ended for a loop, or as stalled, has the coverage of its
// end, though no gate ran.
func TestLoopEndShowsTheCoverage(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*harnessv1.RunSpec){"STALLED doom_loop": loopsStallOff, "STALLED stalled": loopsOff} {
		t.Run(strings.Fields(name)[1], func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(live.Calls(stopWrite("one.md", "1")), live.Calls(stopRead("a.txt"))), loopsABC(t), edit, stopWanted("one.md", "two.md"))
			s.Want(name)
			if c := s.Result.GetCoverage(); c.GetMet() != 1 || c.GetTotal() != 2 || !slices.Equal(c.GetUnmet(), []string{"two.md"}) {
				t.Errorf("coverage %v", c)
			}
		})
	}
}
