package gateway

import (
	"testing"

	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func delta(turn, attempt, try uint32, offset uint64, text string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: offset, Text: text}
}

func claimed(turn, attempt uint32) *harnessv1.Record {
	return &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
		TurnStarted: &harnessv1.TurnStarted{TurnNumber: turn, Attempt: attempt}}}}}
}

func responded() *harnessv1.Record {
	return &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{
		ModelResponded: &harnessv1.ModelResponded{}}}}}
}

func handed() *harnessv1.Record {
	return &harnessv1.Record{Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: "turn"}}}
}

// TestSplice processes records and deltas in the order of arrival and compares the
// delivered text; a bar is a record.
func TestSplice(t *testing.T) {
	for name, c := range map[string]struct {
		arrivals []any
		want     string
	}{
		"in order":                {[]any{handed(), claimed(1, 1), delta(1, 1, 1, 0, "ab"), delta(1, 1, 1, 2, "c"), responded()}, "||abc|"},
		"after the response":      {[]any{claimed(1, 1), delta(1, 1, 1, 0, "ab"), responded(), delta(1, 1, 1, 2, "c")}, "|ab|"},
		"before the claim":        {[]any{handed(), delta(1, 1, 1, 0, "ab"), delta(1, 1, 1, 2, "c"), claimed(1, 1), delta(1, 1, 1, 3, "d")}, "||abcd"},
		"next turn's early":       {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(2, 1, 1, 0, "b"), responded(), handed(), claimed(2, 1)}, "|a|||b"},
		"one lost":                {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(1, 1, 1, 2, "c"), delta(1, 1, 1, 3, "d"), responded()}, "|a|"},
		"one twice":               {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(1, 1, 1, 0, "a"), delta(1, 1, 1, 1, "b")}, "|ab"},
		"next try":                {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(1, 1, 2, 0, "b"), delta(1, 1, 1, 1, "x"), delta(1, 1, 2, 1, "c")}, "|abc"},
		"takeover":                {[]any{claimed(1, 1), delta(1, 1, 3, 0, "a"), claimed(1, 2), delta(1, 1, 3, 1, "x"), delta(1, 2, 1, 0, "b")}, "|a|b"},
		"takeover seen late":      {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(1, 2, 1, 0, "b"), delta(1, 1, 1, 1, "c"), claimed(1, 2)}, "|ac|b"},
		"the same turn again":     {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), handed(), delta(1, 1, 1, 0, "b"), claimed(1, 1), delta(1, 1, 1, 1, "c")}, "|a||bc"},
		"no record, from start":   {[]any{delta(4, 2, 1, 0, "a"), delta(4, 2, 1, 1, "b"), responded(), delta(4, 2, 1, 2, "c")}, "ab|"},
		"no record, in between":   {[]any{delta(4, 2, 1, 7, "a"), delta(4, 2, 1, 8, "b"), delta(4, 2, 2, 0, "c"), delta(4, 2, 2, 1, "d"), responded()}, "cd|"},
		"no record, then another": {[]any{delta(4, 1, 3, 0, "a"), delta(4, 2, 1, 0, "b")}, "ab"},
		"joined after the end":    {[]any{responded(), delta(4, 1, 1, 5, "x"), handed(), claimed(5, 1), delta(5, 1, 1, 0, "a")}, "|||a"},
	} {
		var s Splice
		got := ""
		for n, a := range c.arrivals {
			switch a := a.(type) {
			case *harnessv1.Delta:
				if s.Delta(a) {
					got += a.GetText()
				}
			case *harnessv1.Record:
				got += "|"
				for _, d := range s.Record(entry(uint64(n+1), a)) {
					got += d.GetText()
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestSplicePrefix: in whatever order records and deltas arrive, the delivered text of a
// try is a prefix of it, and no text of a turn follows its response.
func TestSplicePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Splice
		type try struct{ turn, attempt, try uint32 }
		shown := map[try]uint64{}
		var current try
		done := uint32(0)
		show := func(d *harnessv1.Delta) {
			k := try{d.GetTurnNumber(), d.GetAttempt(), d.GetTry()}
			if k != current {
				current = k
				shown[k] = 0
			}
			if d.GetOffset() != shown[k] {
				t.Fatalf("%v: offset %d is shown after %d bytes", k, d.GetOffset(), shown[k])
			}
			shown[k] += uint64(len(d.GetText()))
			if d.GetTurnNumber() <= done {
				t.Fatalf("turn %d is shown after its response", d.GetTurnNumber())
			}
		}
		small := rapid.Uint32Range(1, 3)
		turn := uint32(0)
		for i := range rapid.IntRange(1, 60).Draw(t, "length") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				turn = max(turn, done+1)
				current = try{}
				for _, d := range s.Record(entry(uint64(i+1), claimed(turn, small.Draw(t, "attempt")))) {
					show(d)
				}
			case 1:
				if turn > done { // only a claimed turn gets a response
					s.Record(entry(uint64(i+1), responded()))
					done = turn
				}
			case 2:
				s.Record(entry(uint64(i+1), handed()))
				turn = done // claimed again before it continues
			default:
				d := delta(small.Draw(t, "turn"), small.Draw(t, "attempt"), small.Draw(t, "try"), uint64(rapid.IntRange(0, 3).Draw(t, "offset")), "x")
				if s.Delta(d) {
					show(d)
				}
			}
			if len(s.held) > maxHeld {
				t.Fatal("holds too much")
			}
		}
	})
}

// TestSpliceFromTheStart: a watcher from the start receives no text before the record
// that claims its turn, however late records arrive.
func TestSpliceFromTheStart(t *testing.T) {
	early := &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 1, Text: "hi"}
	s := NewSplice(0)
	if s.Delta(early) {
		t.Error("text is shown before its turn")
	}
	claim := runlog.Entry{Record: &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
		Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: 1}},
	}}}}
	if released := s.Record(claim); len(released) != 1 {
		t.Errorf("the claim released %v", released)
	}
	if on := NewSplice(7); !on.Delta(early) {
		t.Error("a watcher that continues is not shown the text of the turn it is in")
	}
}
