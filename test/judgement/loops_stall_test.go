package judgement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The same reads over and over, with loop detection off, end the run as stalled
// after as many turns as the threshold says.
func TestLoopOffSameReadsStall(t *testing.T) {
	t.Parallel()
	for name, threshold := range map[string]uint32{"default": 3, "two": 2, "five": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edits := []func(*harnessv1.RunSpec){loopsABC(t), loopsOff}
			if name != "default" {
				edits = append(edits, loopsThreshold(threshold))
			}
			s := live.Play(t, loopsReads("a"), edits...)
			s.Want("STALLED stalled")
			if s.Result.GetTurnCount() != threshold {
				t.Errorf("%d turns", s.Result.GetTurnCount())
			}
			var seen []string
			for _, e := range s.Events {
				if d := e.GetStallDetected(); d != nil {
					seen = append(seen, fmt.Sprintf("%d: %d", e.GetTurnNumber(), d.GetTurns()))
				}
			}
			stopSame(t, "stalls", seen, fmt.Sprintf("%d: %d", threshold, threshold))
			if d := s.Result.GetReason().GetDetails(); d.GetTurn() != threshold {
				t.Errorf("details %v", d)
			}
		})
	}
}

// What the agent says is no progress.
func TestLoopOffChatterIsNoProgress(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		r := live.Calls(stopRead("a.txt"))
		r.Text = fmt.Sprintf("Thought number %d: now I see it.", n)
		return r
	}, loopsABC(t), loopsOff)
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 3 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
}

// A cycle that is too long for a loop is a stall: six reads in a circle end two turns
// after the sixth.
func TestLoopTooLongForOneIsAStall(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReads("abcdef"), loopsABC(t))
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 8 || len(s.Names("stall.detected")) != 1 || len(loopsSeen(s)) != 0 {
		t.Errorf("%d turns, loops %v", s.Result.GetTurnCount(), loopsSeen(s))
	}
	stopStable(t, s)
}

// While a correction is outstanding stalls are not detected, and the window restarts
// with the turn in which the loop is left.
func TestLoopCorrectionRestartsTheWindowOfTheStall(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReads("abcdddcab"), loopsABC(t))
	s.Want("STALLED stalled")
	stopSame(t, "loops", loopsSeen(s), "6 strict 1×3 correction 1")
	if s.Result.GetTurnCount() != 9 {
		t.Errorf("%d turns, want 9: three after the loop was left", s.Result.GetTurnCount())
	}
}

// Turns without calls are no turns of a stall, and do not end one either.
func TestLoopOffSilentTurnsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		if n%2 == 1 {
			return live.Message("thinking")
		}
		return live.Calls(stopRead("a.txt"))
	}, loopsABC(t), loopsOff)
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 5 {
		t.Errorf("%d turns, want 5: the third read", s.Result.GetTurnCount())
	}
}

// A result that is new is progress, also of the same call.
func TestLoopOffNewResultsAreProgress(t *testing.T) {
	t.Parallel()
	var r *live.Run
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 12 {
			return live.Done()
		}
		r.Write("log.txt", fmt.Sprintf("line %d", n/2)) // new every other turn
		return live.Calls(stopRead("log.txt"))
	}
	r = live.Prepare(t, m)
	s := stopPlay(r, loopsOff)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 13 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
}

// A result that was there before is none: two answers in turn are a stall, two turns
// after the second.
func TestLoopOffResultsThatComeAgainAreNoProgress(t *testing.T) {
	t.Parallel()
	var r *live.Run
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		r.Write("log.txt", fmt.Sprintf("line %d", n%2))
		return live.Calls(stopRead("log.txt"))
	}
	r = live.Prepare(t, m)
	s := stopPlay(r, loopsOff)
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 4 {
		t.Errorf("%d turns, want 4", s.Result.GetTurnCount())
	}
}

// Work items that change are progress until they are as they were before: an item that
// flips between two states is a stall, whatever the agent notes with it.
func TestLoopOffItemsThatFlipAreNoProgress(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		status := []string{"PENDING", "IN_PROGRESS"}[n%2]
		switch n {
		case 0:
			return live.Calls(live.Call("work_item_add", live.Args{"title": "One"}))
		default:
			return live.Calls(live.Call("work_item_update", live.Args{"id": "w1", "status": status, "notes": fmt.Sprint("note ", n)}))
		}
	}, stopItems, loopsOff, stopMaxTurns(14))
	s.Want("STALLED stalled")
	if n := s.Result.GetTurnCount(); n != 5 {
		t.Errorf("%d turns, want 5: two after the last result that was new", n)
	}
}

// Two items that flip in turns have more states together, but none of them is new for an
// item.
func TestLoopOffItemsThatFlipInTurnsAreNoProgress(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 0 {
			return live.Calls(live.Call("work_item_add", live.Args{"title": "One"}), live.Call("work_item_add", live.Args{"title": "Two"}))
		}
		status := []string{"PENDING", "IN_PROGRESS", "DONE"}[n/2%3]
		return live.Calls(live.Call("work_item_update", live.Args{"id": fmt.Sprint("w", n%2+1), "status": status}))
	}, stopItems, loopsOff, stopMaxTurns(40))
	s.Want("STALLED stalled")
}

// Items that advance are progress, one change a turn.
func TestLoopOffItemsThatAdvanceAreProgress(t *testing.T) {
	t.Parallel()
	var all []modeltest.Reply
	for n := 1; n <= 6; n++ {
		id := fmt.Sprint("w", n)
		all = append(all, live.Calls(live.Call("work_item_add", live.Args{"title": "Part"})),
			live.Calls(live.Call("work_item_update", live.Args{"id": id, "status": "IN_PROGRESS"})),
			live.Calls(live.Call("work_item_update", live.Args{"id": id, "status": "DONE"})))
	}
	s := live.Play(t, stopOnce(all...), stopItems, loopsOff)
	s.Want("DONE agent_done accepted")
}

// One file that is read with another limit each time is a stall, and one that is printed with
// another number too.
func TestLoopOffOtherNumbersAreNoProgress(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(n int) modeltest.Call{
		"limit":  func(n int) modeltest.Call { return live.Call("read_file", live.Args{"path": "a.txt", "limit": 10 + n}) },
		"lines":  func(n int) modeltest.Call { return stopShell(fmt.Sprintf("head -%d a.txt", 10+n)) },
		"remark": func(n int) modeltest.Call { return stopShell(fmt.Sprintf("cat a.txt # look %d", n)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply { return live.Calls(call(n)) }, loopsABC(t), stopMaxTurns(14))
			s.Want("STALLED stalled")
			if n := s.Result.GetTurnCount(); n != 3 {
				t.Errorf("%d turns", n)
			}
		})
	}
}

// What changes something is progress although its results are the same: other commands that
// print nothing, and other contents of one file.
func TestLoopOffOtherChangesAreProgress(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(n int) modeltest.Call{
		"silent commands": func(n int) modeltest.Call { return stopShell(fmt.Sprint("touch part ", n)) },
		"writes":          func(n int) modeltest.Call { return stopWrite("a.txt", fmt.Sprint("version ", n)) },
		"other files":     func(n int) modeltest.Call { return stopRead(fmt.Sprintf("part-%d.txt", n)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for n := range 9 {
				files[fmt.Sprintf("part-%d.txt", n)] = "the same in each file"
			}
			var all []modeltest.Reply
			for n := range 9 {
				all = append(all, live.Calls(call(n)))
			}
			s := live.Play(t, stopOnce(all...), stopFiles(t, files))
			s.Want("DONE agent_done accepted")
		})
	}
}

// The same calls without effect on an item are none.
func TestLoopOffItemsThatStayAreNoProgress(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(live.Call("work_item_add", live.Args{"title": "One"})),
		live.Calls(live.Call("work_item_update", live.Args{"id": "w1", "status": "IN_PROGRESS"})),
	), stopItems, loopsOff, stopMaxTurns(14))
	s.Want("STALLED stalled")
	if n := s.Result.GetTurnCount(); n != 4 && n != 5 { // the answer to a change of nothing may be another one
		t.Errorf("%d turns", n)
	}
}

// An artifact that changes is progress, unless it is as it was before.
func TestLoopOffArtifactsThatChangeAreProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		versions int
		want     string
	}{"new": {100, "DONE max_turns"}, "back and forth": {2, "STALLED stalled"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
				if n == 0 {
					return live.Calls(live.Call("work_item_add", live.Args{"title": "One"}))
				}
				return live.Calls(live.Call("work_item_set_artifact", live.Args{"id": "w1", "content": fmt.Sprint("version ", n%c.versions)}))
			}, stopItems, loopsOff, stopMaxTurns(14))
			s.Want(c.want)
		})
	}
}

// A contract of which more is met is progress, even before it is evaluated again: the
// same command with the same answer makes one file after the other.
func TestLoopOffCoverageThatGrowsIsProgress(t *testing.T) {
	t.Parallel()
	next := stopShell("for i in 1 2 3 4 5 6 7 8; do test -f out$i || { echo x > out$i; break; }; done")
	var all []modeltest.Reply
	for range 8 {
		all = append(all, live.Calls(next))
	}
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, stopOnce(all...), loopsOff, stopWanted("out1", "out2", "out3", "out4", "out5", "out6", "out7", "out8"))
		s.Want("DONE agent_done accepted")
		if c := s.Result.GetCoverage(); s.Result.GetTurnCount() != 9 || c.GetMet() != 8 {
			t.Errorf("%d turns, coverage %v", s.Result.GetTurnCount(), c)
		}
	})
	t.Run("none", func(t *testing.T) { // the same without a contract: the files do not count
		t.Parallel()
		s := live.Play(t, stopOnce(all...), loopsOff)
		s.Want("STALLED stalled")
		if s.Result.GetTurnCount() != 3 {
			t.Errorf("%d turns", s.Result.GetTurnCount())
		}
	})
	t.Run("other", func(t *testing.T) { // a contract that does not move
		t.Parallel()
		s := live.Play(t, stopOnce(all...), loopsOff, stopWanted("report.md"))
		s.Want("STALLED stalled")
		if c := s.Result.GetCoverage(); c.GetMet() != 0 || c.GetTotal() != 1 {
			t.Errorf("coverage %v", c)
		}
		if n := s.Result.GetTurnCount(); n != 3 {
			t.Errorf("%d turns", n)
		}
	})
}

// A stall that is switched off never ends a run and leaves no trace, while loops are
// still looked for.
func TestLoopOnStallOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, loopsReads("abcdef"), loopsABC(t), loopsStallOff, stopMaxTurns(20))
	s.Want("DONE max_turns")
	if len(s.Names("stall.detected", "doom_loop.detected")) != 0 {
		t.Errorf("%v", s.Names())
	}
	if p := s.State().GetProgressTracker(); len(p.GetFingerprints()) != 0 {
		t.Errorf("the state remembers %v", p)
	}
}

// The history that is kept is twice the threshold.
func TestLoopStateKeepsTwiceTheThreshold(t *testing.T) {
	t.Parallel()
	s := live.Play(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		return live.Calls(stopShell(fmt.Sprint("echo ", n)))
	}, stopMaxTurns(20))
	s.Want("DONE max_turns")
	state := s.State()
	if got := len(state.GetProgressTracker().GetFingerprints()); got != 6 {
		t.Errorf("%d fingerprints are kept, want 6", got)
	}
	if got := state.GetProgressTracker().GetDistinctOutcomes(); got != 20 {
		t.Errorf("%d outcomes are counted, want 20", got)
	}
	if got := len(state.GetDoomLoop().GetStrict()); got != 20 {
		t.Errorf("%d calls are remembered, want 20", got)
	}
}

// At most the last thirty calls are remembered, and an outcome from before them is still
// known: what comes again is no progress.
func TestLoopStateRemembersThirtyCalls(t *testing.T) {
	t.Parallel()
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		return live.Calls(stopShell(fmt.Sprint("echo ", n%35)))
	}
	s := live.Play(t, m, func(spec *harnessv1.RunSpec) { stopConfig(spec).MaxTurns = nil })
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 37 {
		t.Errorf("%d turns, want 37: two after the last outcome that was new", s.Result.GetTurnCount())
	}
	if got := len(s.State().GetDoomLoop().GetStrict()); got != 30 {
		t.Errorf("%d calls are remembered, want 30", got)
	}
	if got := s.State().GetProgressTracker().GetDistinctOutcomes(); got != 35 {
		t.Errorf("%d outcomes are counted, want 35", got)
	}
}

// A stall ends the run before the gates run: a stop that is rejected over and over
// with nothing done between is one too.
func TestLoopOffRejectedStopsStall(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()), loopsOff, stopHooks(stopBlock("true", "the tests fail")))
	s.Want("STALLED stalled")
	if s.Result.GetTurnCount() != 3 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	stopSame(t, "rejections", stopRejected(s), "1 agent_stop_hook_blocked 1", "2 agent_stop_hook_blocked 2")
	for n := 1; n <= 2; n++ {
		if !strings.Contains(s.Added(n), "the tests fail") {
			t.Errorf("request %d has no reason", n+1)
		}
	}
}

// What was seen in one segment is new in the next: reading the same files again for
// another message is progress.
func TestLoopOffTheNextSegmentRestartsTheStall(t *testing.T) {
	t.Parallel()
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		switch n % 4 {
		case 3:
			return live.Calls(stopDone("done"))
		}
		return live.Calls(stopRead(string("abc"[n%4]) + ".txt"))
	}
	first := live.Play(t, m, loopsABC(t), loopsOff)
	first.Want("DONE agent_done accepted")
	stopSay(first.Run, "Once more.")
	second := first.WaitAfter(stopVersion(first))
	second.Want("DONE agent_done accepted")
	if second.Result.GetTurnCount() != 8 {
		t.Errorf("%d turns", second.Result.GetTurnCount())
	}
}
