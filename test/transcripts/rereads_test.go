package transcripts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// reader is an agent that reads files. When its window is full, all results but those of the
// last turn are cleared.
type reader struct {
	*driver
	window, size int // tokens of the window, and of a file
	passes       int
}

// newReader makes an agent that calls agent in each of its turns, which adds calls.
func newReader(t testing.TB, window, size, turns int, agent func(r *reader, turn int)) *reader {
	r := &reader{driver: newDriver(t), window: window, size: size}
	for n := 1; n <= turns; n++ {
		r.onTurn[uint32(n)] = append(r.onTurn[uint32(n)], func(*driver) {
			r.play("model")
			agent(r, n)
		})
	}
	r.compact = r.clear
	return r
}

// read adds a call that reads a file.
func (r *reader) read(file int) {
	r.play(fmt.Sprintf(`  r%d-%d:read_file {"path":"f%d"}`, len(r.log), len(r.results["read_file"]), file))
	r.results["read_file"] = append(r.results["read_file"], result{text: fmt.Sprintf("file %d %s", file, strings.Repeat("word", r.size))})
}

// readBack adds a call that reads the first result with a file again.
func (r *reader) readBack(file int) {
	at := slices.IndexFunc(r.conversation.Messages, func(m *harnessv1.Message) bool {
		return m.GetToolName() == "read_file" && strings.HasPrefix(content.Text(m.GetContent()), fmt.Sprintf("file %d ", file))
	})
	r.play(fmt.Sprintf(`  b%d-%d:read_artifact {"ref":"m%d"}`, len(r.log), file, at+1))
}

// clear clears results if the window is full.
func (r *reader) clear(s *harnessv1.Snapshot) {
	var x view.Index
	x.Add(&r.conversation)
	rules := view.NewRules(s.GetCompactionPlan(), &x)
	used, through := 0, uint64(0)
	for i := range x.Entries {
		e := &x.Entries[i]
		used += int(rules.Shown(e))
		if e.Turn < s.GetTurnCount() && e.IsResult() && rules.Unchanged(e.ID) {
			through = e.ID
		}
	}
	if used <= r.window || through == 0 {
		return
	}
	s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: view.Renderer, Watermarks: []*harnessv1.Watermark{{
		Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: through,
	}}}
	runstate.OwnActivity(s).Compactions++
	progress.Compacted(s.GetProgressTracker(), s.GetDoomLoop())
	r.passes++
}

// told returns the turns in which the agent is told that its material does not fit.
func (r *reader) told() []uint32 {
	var turns []uint32
	for _, rec := range r.log {
		for _, e := range rec.GetEvents() {
			if e.GetGuidanceInjected().GetKind() == "too_large" {
				turns = append(turns, e.GetTurnNumber())
			}
		}
	}
	return turns
}

func (r *reader) run(settings string) *harnessv1.Snapshot {
	r.play("start " + settings + "Go")
	r.rest()
	return r.snapshot()
}

// TestRereadingEnds plays agents that read three files again and again, of which the window
// holds two.
func TestRereadingEnds(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings string
		agent    func(r *reader, turn int)
		kind     string
		told     string
		turns    uint32
	}{
		// The passes before turns 3 and 4 follow new reads, those before 5, 6 and 7 do not.
		{"a file a turn", "", func(r *reader, turn int) { r.read(turn % 3) }, "stalled", "[7]", 9},
		{"a file a turn, and loops are not watched", "doom=off ", func(r *reader, turn int) { r.read(turn % 3) }, "stalled", "[7]", 9},
		{"read back", "", func(r *reader, turn int) {
			if turn <= 3 {
				r.read(turn)
			} else {
				r.readBack(turn%3 + 1)
			}
		}, "stalled", "[10]", 12},
		{"all in each turn", "", func(r *reader, _ int) {
			for file := range 3 {
				r.read(file)
			}
		}, "doom_loop", "[6]", 10},
		{"one file, which is shown all the time", "", func(r *reader, _ int) { r.read(0) }, "doom_loop", "[6]", 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReader(t, 2500, 1000, 100, c.agent)
			s := r.run("max_turns=100 " + c.settings)
			if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED || s.GetStopReason().GetKind() != c.kind || s.GetTurnCount() != c.turns || fmt.Sprint(r.told()) != c.told {
				t.Errorf("ended %s after %d turns, told %v; want %s after %d, told %s", s.GetStopReason().GetKind(), s.GetTurnCount(), r.told(), c.kind, c.turns, c.told)
			}
		})
	}
}

// TestEveryRereadingEnds: whatever an agent reads again, and whatever its window holds, it
// ends, and is told at most once.
func TestEveryRereadingEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		files, parallel := rapid.IntRange(1, 9).Draw(rt, "files"), rapid.IntRange(1, 4).Draw(rt, "parallel")
		window, settings := rapid.IntRange(500, 8000).Draw(rt, "window"), rapid.SampledFrom([]string{"", "doom=off "}).Draw(rt, "settings")
		back := rapid.Bool().Draw(rt, "back")
		next := 0
		r := newReader(t, window, 1000, 150, func(r *reader, turn int) {
			for range parallel {
				if back && next >= files {
					r.readBack(next % files)
				} else {
					r.read(next % files)
				}
				next++
			}
		})
		s := r.run("max_turns=150 tool_calls=1000 " + settings)
		if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED || s.GetTurnCount() > 80 || len(r.told()) > 1 {
			rt.Fatalf("ended %s after %d turns and %d passes, told %v: %v", s.GetStopReason().GetKind(), s.GetTurnCount(), r.passes, r.told(), s.GetProgressTracker())
		}
	})
}

// TestHealthyAgentsAreLeftAlone plays agents that read again what was taken away, and do
// something new.
func TestHealthyAgentsAreLeftAlone(t *testing.T) {
	for name, agent := range map[string]func() func(r *reader, turn int){
		"one file after each pass, with something new": func() func(r *reader, turn int) {
			passes := 0
			return func(r *reader, turn int) {
				r.read(turn)
				if r.passes > passes {
					passes = r.passes
					r.read(1)
				}
			}
		},
		"three files after each pass, a turn each": func() func(r *reader, turn int) {
			passes, left := 0, 0
			return func(r *reader, turn int) {
				if left == 0 && r.passes > passes {
					left = 3
				}
				if passes = r.passes; left > 0 {
					r.read(left)
					left--
					return
				}
				r.read(100 + turn)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, 14_000, 1000, 150, agent())
			s := r.run("max_turns=150 tool_calls=1000 ")
			if s.GetStopReason().GetKind() != "max_turns" || len(r.told()) > 0 || r.passes < 10 {
				t.Errorf("ended %s after %d turns and %d passes, told %v", s.GetStopReason().GetKind(), s.GetTurnCount(), r.passes, r.told())
			}
		})
	}
}

// TestToldAgentGoesOn: an agent that does something new once it is told is not stalled.
func TestToldAgentGoesOn(t *testing.T) {
	r := newReader(t, 2500, 1000, 100, func(r *reader, turn int) {
		if len(r.told()) > 0 {
			r.read(turn)
		} else {
			r.read(turn % 3)
		}
	})
	if s := r.run("max_turns=100 "); s.GetStopReason().GetKind() != "max_turns" || len(r.told()) != 1 {
		t.Errorf("ended %s after %d turns, told %v", s.GetStopReason().GetKind(), s.GetTurnCount(), r.told())
	}
}

// compacted makes a reader whose window is compacted as the service decides. The model
// reports what it is shown.
func compacted(t testing.TB, size, turns int, agent func(r *reader, turn int)) *reader {
	r := newReader(t, 0, size, turns, agent)
	r.compact = func(s *harnessv1.Snapshot) { r.passes = int(s.GetCompactionPlan().GetPasses()) }
	r.input = func(s *harnessv1.Snapshot) uint64 {
		var x view.Index
		x.Add(&r.conversation)
		rules, used := view.NewRules(s.GetCompactionPlan(), &x), uint64(500)
		for i := range x.Entries {
			used += uint64(rules.Shown(&x.Entries[i]))
		}
		return used
	}
	return r
}

// TestCompactionEndsRereading plays agents with a window of 16,000 tokens and files of 1,800:
// those whose files do not fit are told so, and end if they go on.
func TestCompactionEndsRereading(t *testing.T) {
	for _, c := range []struct {
		files, parallel int
		kind            string
		fits            bool
	}{
		{1, 1, "doom_loop", true}, {1, 3, "doom_loop", true}, {3, 1, "stalled", true}, {3, 3, "doom_loop", false}, {8, 1, "stalled", false}, {8, 3, "stalled", false},
		{12, 1, "stalled", false}, {12, 3, "stalled", false},
	} {
		next := 0
		r := compacted(t, 1800, 200, func(r *reader, _ int) {
			for range c.parallel {
				r.read(next % c.files)
				next++
			}
		})
		s := r.run("max_turns=200 tool_calls=1000 window=16000 ")
		told := r.told()
		if s.GetStatus() != harnessv1.RunStatus_RUN_STATUS_STALLED || s.GetStopReason().GetKind() != c.kind || s.GetTurnCount() > 40 || len(told) > 1 || (len(told) == 0) != c.fits {
			t.Errorf("%d files, %d a turn: %s after %d turns and %d passes, told %v", c.files, c.parallel, s.GetStopReason().GetKind(), s.GetTurnCount(), r.passes, told)
		}
		if c.kind == "stalled" && !c.fits && len(told) == 1 && s.GetTurnCount() != told[0]+2 {
			t.Errorf("%d files, %d a turn: ended after %d turns, told in turn %d", c.files, c.parallel, s.GetTurnCount(), told[0])
		}
	}
}

// TestCompactionLeavesHealthyAgentsAlone plays an agent that reads a file again after each
// pass, and goes on with others.
func TestCompactionLeavesHealthyAgentsAlone(t *testing.T) {
	passes := 0
	r := compacted(t, 1800, 150, func(r *reader, turn int) {
		if r.passes > passes {
			passes = r.passes
			r.read(1)
			return
		}
		r.read(turn)
	})
	s := r.run("max_turns=150 tool_calls=1000 window=16000 ")
	if s.GetStopReason().GetKind() != "max_turns" || len(r.told()) > 0 || r.passes < 10 {
		t.Errorf("ended %s after %d turns and %d passes, told %v: %s", s.GetStopReason().GetKind(), s.GetTurnCount(), r.passes, r.told(), s.GetStopReason().GetMessage())
	}
}
