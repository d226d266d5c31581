package progress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// call is a call in a test. Its tool represents the tool and the arguments.
type call struct{ tool, result string }

func recorded(calls ...call) *harnessv1.DoomLoop {
	d := &harnessv1.DoomLoop{}
	for _, c := range calls {
		record(d, c)
	}
	return d
}

func record(d *harnessv1.DoomLoop, c call) {
	strict, loose := progress.Signature(c.tool, "{}", c.result)
	progress.RecordCall(d, c.tool, strict, loose)
}

// reference decides by the definition, without the ring, whether calls end in a
// loop: for each length, the last length × times calls are cut into times equal
// blocks.
func reference(calls []call) (found, strict bool, length int) {
	blocks := func(length, times int, same func(a, b call) bool) bool {
		if length*times > len(calls) {
			return false
		}
		tail := calls[len(calls)-length*times:]
		for block := 1; block < times; block++ {
			if !slices.EqualFunc(tail[:length], tail[block*length:(block+1)*length], same) {
				return false
			}
		}
		return true
	}
	all := func(a, b call) bool { return a == b }
	tools := func(a, b call) bool { return a.tool == b.tool }
	for length := 1; length <= 5; length++ {
		if length == 1 && blocks(1, 3, all) || length > 1 && blocks(length, 2, all) {
			return true, true, length
		}
	}
	for length := 1; length <= 5; length++ {
		if length == 1 && blocks(1, 5, tools) || length > 1 && blocks(length, 3, tools) {
			return true, false, length
		}
	}
	return false, false, 0
}

func TestDetectFollowsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) call {
			return call{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tool"), rapid.SampledFrom([]string{"1", "1", "2"}).Draw(t, "result")}
		})
		calls := rapid.SliceOfN(one, 0, 12).Draw(t, "before")
		cycle := rapid.SliceOfN(one, 1, 6).Draw(t, "cycle")
		for range rapid.IntRange(0, 4).Draw(t, "times") {
			for _, c := range cycle {
				if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
					c.result = "3"
				}
				calls = append(calls, c)
			}
		}
		calls = append(calls, rapid.SliceOfN(one, 0, 2).Draw(t, "after")...)
		found, strict, length := reference(calls)
		got := progress.Detect(recorded(calls...))
		if (got != nil) != found {
			t.Fatalf("%v: got %+v, want a loop: %v", calls, got, found)
		}
		if found && (got.Strict != strict || got.Length != length || len(got.Tools) != length) {
			t.Fatalf("%v: got %+v, want strict %v, length %d", calls, got, strict, length)
		}
	})
}

func TestEveryCycleIsDetected(t *testing.T) {
	for length := 1; length <= 6; length++ {
		for repeats := 1; repeats <= 6; repeats++ {
			for _, strict := range []bool{true, false} {
				t.Run(fmt.Sprintf("length %d, %d times, strict %v", length, repeats, strict), func(t *testing.T) {
					need := map[bool]int{true: 2, false: 3}[strict]
					if length == 1 {
						need = map[bool]int{true: 3, false: 5}[strict]
					}
					d := recorded(call{"before", "x"})
					for n := range repeats {
						for i := range length {
							result := "same"
							if !strict {
								result = fmt.Sprint(n, i)
							}
							record(d, call{fmt.Sprint("tool", i), result})
						}
					}
					l := progress.Detect(d)
					want := length <= 5 && repeats >= need
					if (l != nil) != want {
						t.Fatalf("got %+v, want a loop: %v", l, want)
					}
					if l == nil {
						return
					}
					// 30 calls are remembered.
					if l.Strict != strict || l.Length != length || l.Repeats != min(repeats, 30/length) {
						t.Fatalf("got %+v", l)
					}
					for i, name := range l.Tools {
						if name != fmt.Sprint("tool", i) {
							t.Fatalf("tools %q are not in their order", l.Tools)
						}
					}
					record(d, call{"another", "x"})
					if l := progress.Detect(d); l != nil {
						t.Fatalf("a loop that the agent has left is found: %+v", l)
					}
				})
			}
		}
	}
}

func TestKeptCallsAreLimited(t *testing.T) {
	d := &harnessv1.DoomLoop{}
	for i := range 100 {
		record(d, call{strings.Repeat("ü", 20) + fmt.Sprint(i), "x"})
	}
	if len(d.GetStrict()) != 30 || len(d.GetLoose()) != 30 || strings.Count(d.GetTools(), "\n") != 5 {
		t.Fatalf("remembers %d, %d and %d calls", len(d.GetStrict()), len(d.GetLoose()), strings.Count(d.GetTools(), "\n"))
	}
	if got := strings.Split(d.GetTools(), "\n")[4]; got != strings.Repeat("ü", 16) {
		t.Fatalf("the name is %q", got)
	}
	if _, err := proto.Marshal(recorded(call{"\xff\xfe", "x"})); err != nil {
		t.Fatalf("what a model makes of a name cannot be stored: %v", err)
	}
}

// turn records calls and assesses them.
func turn(d *harnessv1.DoomLoop, cfg *harnessv1.DoomLoopConfig, calls ...call) progress.Finding {
	for _, c := range calls {
		record(d, c)
	}
	return progress.Assess(d, cfg, len(calls))
}

func TestEqualCallsAreCorrectedThreeTimesAndEndTheRun(t *testing.T) {
	d, same := &harnessv1.DoomLoop{}, call{"read", "same"}
	want := []string{"", "", "correction 1", "correction 2", "correction 3, last", "end"}
	for i, want := range want {
		if got := verdict(turn(d, nil, same)); got != want {
			t.Fatalf("after turn %d: %q, want %q", i+1, got, want)
		}
	}
}

func verdict(f progress.Finding) string {
	var s string
	switch {
	case f.End:
		s = "end"
	case f.Correct:
		s = fmt.Sprintf("correction %d", f.Correction)
		if f.Loop.Last {
			s += ", last"
		}
	case f.Loop != nil:
		s = "seen"
	}
	return s
}

func TestAssess(t *testing.T) {
	a, b, c := call{"a", "1"}, call{"b", "1"}, call{"c", "1"}
	maximum := func(n uint32) *harnessv1.DoomLoopConfig {
		return &harnessv1.DoomLoopConfig{MaxCorrections: &n}
	}
	type turns [][]call
	for name, test := range map[string]struct {
		cfg   *harnessv1.DoomLoopConfig
		turns turns
		want  []string
	}{
		"three equal calls in one turn":     {nil, turns{{a, a, a}}, []string{"correction 1"}},
		"a cycle of two in one turn":        {nil, turns{{a, b, a, b}}, []string{"correction 1"}},
		"a loop that is left in the turn":   {nil, turns{{a, a, a, a, b}}, []string{""}},
		"left and taken up again":           {nil, turns{{a, a, a}, {b}, {a, a, a}}, []string{"correction 1", "", "correction 1"}},
		"from one loop into another":        {nil, turns{{a, a, a}, {b, b, b}, {c, c, c}, {b, b, b}}, []string{"correction 1", "correction 2", "correction 3, last", "end"}},
		"a silent turn changes nothing":     {nil, turns{{a, a, a}, {}, {a}}, []string{"correction 1", "", "correction 2"}},
		"one correction":                    {maximum(1), turns{{a, a, a}, {a}}, []string{"correction 1, last", "end"}},
		"no correction":                     {maximum(0), turns{{a, a, a}}, []string{"end"}},
		"five corrections":                  {maximum(5), turns{{a, a, a}, {a}, {a}, {a}, {a}, {a}}, []string{"correction 1", "correction 2", "correction 3", "correction 4", "correction 5, last", "end"}},
		"it ends again if it is not ended":  {maximum(0), turns{{a, a, a}, {a}}, []string{"end", "end"}},
		"switched off":                      {&harnessv1.DoomLoopConfig{Enabled: new(bool)}, turns{{a, a, a}, {a}, {a}, {a}}, []string{"", "", "", ""}},
		"a strict loop that results break":  {nil, turns{{a, a, a}, {call{"a", "2"}}}, []string{"correction 1", ""}},
		"a strict loop that becomes looser": {nil, turns{{a, a, a}, {call{"a", "2"}}, {call{"a", "3"}}}, []string{"correction 1", "", "correction 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &harnessv1.DoomLoop{}
			for i, calls := range test.turns {
				if got := verdict(turn(d, test.cfg, calls...)); got != test.want[i] {
					t.Fatalf("after turn %d: %q, want %q", i+1, got, test.want[i])
				}
			}
		})
	}
}

func TestPollingIsCorrectedOnceInTenCallsAndNeverEnds(t *testing.T) {
	for perTurn := 1; perTurn <= 4; perTurn++ {
		t.Run(fmt.Sprintf("%d calls a turn", perTurn), func(t *testing.T) {
			d, calls, corrected := &harnessv1.DoomLoop{}, 0, []int(nil)
			for range 60 {
				var poll []call
				for range perTurn {
					calls++
					poll = append(poll, call{"status", fmt.Sprint(calls)})
				}
				f := turn(d, nil, poll...)
				if f.End || (f.Loop != nil && f.Loop.Strict) {
					t.Fatalf("after %d calls: %+v", calls, f)
				}
				if f.Correct {
					corrected = append(corrected, calls)
				}
			}
			first := (5 + perTurn - 1) / perTurn * perTurn
			if len(corrected) == 0 || corrected[0] != first {
				t.Fatalf("corrected after calls %v, want the first after call %d", corrected, first)
			}
			for i := 1; i < len(corrected); i++ {
				gap := corrected[i] - corrected[i-1]
				if gap < 10 || gap >= 10+perTurn {
					t.Fatalf("corrected after calls %v", corrected)
				}
			}
		})
	}
}

func TestAssessEndsOnlyAfterAllCorrections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, given := &harnessv1.DoomLoop{}, 0
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			var calls []call
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				calls = append(calls, call{
					rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "tool"),
					rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(t, "result"),
				})
			}
			f := turn(d, nil, calls...)
			strict := f.Loop != nil && f.Loop.Strict
			switch {
			case len(calls) == 0:
				if f.Loop != nil || f.Correct || f.End {
					t.Fatalf("a turn without calls gave %+v", f)
				}
			case strict && given == 3:
				if !f.End || f.Correct {
					t.Fatalf("after three corrections: %+v", f)
				}
			case strict:
				given++
				if f.End || !f.Correct || int(f.Correction) != given {
					t.Fatalf("correction %d: %+v", given, f)
				}
			default:
				given = 0
				if f.End {
					t.Fatalf("a run ends without a strict loop: %+v", f)
				}
			}
		}
	})
}

func TestCorrectionTextNamesWhatRepeatsAndGetsFirmer(t *testing.T) {
	l := &progress.Loop{Strict: true, Length: 2, Repeats: 3, Tools: []string{"read_file", "run_command"}}
	first, second := progress.CorrectionText(l, 1), progress.CorrectionText(l, 2)
	last := *l
	last.Last = true
	texts := []string{first, second, progress.CorrectionText(&last, 3)}
	for i, text := range texts {
		for _, want := range []string{"read_file, run_command", "3 times"} {
			if !strings.Contains(text, want) {
				t.Errorf("correction %d lacks %q: %s", i+1, want, text)
			}
		}
		if ends := strings.Contains(text, "the run ends"); ends != (i == 2) {
			t.Errorf("correction %d: announces the end of the run: %v", i+1, ends)
		}
	}
	if first == second {
		t.Error("the second correction is the first")
	}
	loose := progress.CorrectionText(&progress.Loop{Length: 1, Repeats: 5, Tools: []string{"status"}}, 1)
	if !strings.Contains(loose, "status 5 times") || strings.Contains(loose, "the run ends") || strings.Contains(loose, "same results") {
		t.Errorf("loose: %s", loose)
	}
	long := strings.Repeat("n", 32)
	longest := &progress.Loop{Strict: true, Length: 5, Repeats: 6, Last: true, Tools: []string{long, long, long, long, long}}
	for n := range uint32(4) {
		if text := progress.CorrectionText(longest, n); len(text) > 1024 {
			t.Errorf("correction %d has %d bytes", n, len(text))
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	var calls []call
	for i := range 30 {
		calls = append(calls, call{"same", fmt.Sprint(i % 7)}) // the longest search: a cycle that is too long
	}
	d := recorded(calls...)
	for b.Loop() {
		progress.Detect(d)
	}
}
