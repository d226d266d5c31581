package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// A command whose output differs only in how long it took is in a loop all the same: it
// is corrected after the fifth time, at most once in ten calls, and never ended.
func TestLoopOfACommandThatPrintsItsDuration(t *testing.T) {
	t.Parallel()
	timed := stopShell("echo x >> n; echo FAIL; echo took $(wc -l < n) ms")
	s := live.Play(t, live.Replies(live.Calls(timed)), stopMaxTurns(31))
	s.Want("DONE max_turns")
	if got := loopsTurns(s, "loose"); !slices.Equal(got, []uint32{5, 15, 25}) {
		t.Errorf("corrected after %v", got)
	}
	if len(loopsTurns(s, "strict")) != 0 || len(s.Names("stall.detected")) != 0 {
		t.Errorf("%v", loopsSeen(s))
	}
	for _, turn := range []uint32{5, 15, 25} {
		said := loopsCorrections(s)[turn]
		stopTold(t, s, int(turn), said, "run_command", "times")
		if !strings.Contains(said, "nother") {
			t.Errorf("the correction does not ask for another approach: %s", said)
		}
	}
	if got := loopsSeen(s)[0]; got != "5 loose 1×5 correction 1" {
		t.Errorf("seen first: %s", got)
	}
	if got := len(loopsCorrections(s)); got != 3 {
		t.Errorf("corrected %d times", got)
	}
	stopStable(t, s)
}

// A poll whose answers change for fifteen turns is healthy: it continues to its end.
func TestLoopOfAHealthyPollIsNeverStopped(t *testing.T) {
	t.Parallel()
	var r *live.Run
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 15 {
			return live.Done()
		}
		r.Write("status.txt", fmt.Sprintf("%d of 15 jobs are done", n+1))
		return live.Calls(stopRead("status.txt"))
	}
	r = live.Prepare(t, m)
	s := stopPlay(r)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 16 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	if got := loopsTurns(s, "loose"); !slices.Equal(got, []uint32{5, 15}) || len(loopsTurns(s, "strict")) != 0 || len(s.Names("stall.detected")) != 0 {
		t.Errorf("seen %v", loopsSeen(s))
	}
	stopTold(t, s, 15, "15 of 15 jobs")
}

// A cycle whose results change is found once it was seen three times.
func TestLoopOfALooseCycle(t *testing.T) {
	t.Parallel()
	a, b := stopShell("echo a >> n; wc -l < n"), stopShell("echo b >> n; wc -l < n")
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		switch {
		case n == 12:
			return live.Done()
		case n%2 == 0:
			return live.Calls(a)
		}
		return live.Calls(b)
	}
	s := live.Play(t, m)
	s.Want("DONE agent_done accepted")
	stopSame(t, "loops", loopsSeen(s), "6 loose 2×3 correction 1")
	stopTold(t, s, 6, loopsCorrections(s)[6], "run_command", "cycle of 2")
}

// Four equal calls with changing results are no loop yet, nor is a cycle seen twice.
func TestLoopThatIsLooseIsNotSeenTooEarly(t *testing.T) {
	t.Parallel()
	count := func(word string) modeltest.Reply { return live.Calls(stopShell("echo " + word + " >> n; wc -l < n")) }
	t.Run("equal", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, stopOnce(count("a"), count("a"), count("a"), count("a"), count("b"), count("a"), count("a"), count("a"), count("a")))
		s.Want("DONE agent_done accepted")
		stopSame(t, "loops", loopsSeen(s))
	})
	t.Run("cycle", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, stopOnce(count("a"), count("b"), count("a"), count("b"), count("a")))
		s.Want("DONE agent_done accepted")
		stopSame(t, "loops", loopsSeen(s))
	})
}

// A poll whose answers stop changing becomes a strict loop and is ended as one.
func TestLoopOfAPollThatHangs(t *testing.T) {
	t.Parallel()
	var r *live.Run
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		r.Write("status.txt", fmt.Sprintf("%d of 15 jobs are done", min(n+1, 8)))
		return live.Calls(stopRead("status.txt"))
	}
	r = live.Prepare(t, m)
	s := stopPlay(r)
	s.Want("STALLED doom_loop")
	if got := loopsTurns(s, "strict"); !slices.Equal(got, []uint32{10, 11, 12}) || s.Result.GetTurnCount() != 13 {
		t.Errorf("corrected after %v, %d turns", got, s.Result.GetTurnCount())
	}
}
