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

// thought is a delta of reasoning as a turn publishes it: with the offset of the text
// that it has written so far.
func thought(turn, attempt, try uint32, offset, text uint64, reasoning string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: text, ReasoningOffset: offset, Reasoning: reasoning}
}

func both(offset uint64, reasoning string, text uint64, written string) *harnessv1.Delta {
	d := thought(1, 1, 1, offset, text, reasoning)
	d.Text = written
	return d
}

// pieces returns a delivered delta with its reasoning in parentheses.
func pieces(d *harnessv1.Delta) string {
	if d.GetReasoning() == "" {
		return d.GetText()
	}
	return "(" + d.GetReasoning() + ")" + d.GetText()
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

func printed(call string, offset uint64, text string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: 1, Attempt: 1, ToolOutput: &harnessv1.ToolOutput{CallId: call, Offset: offset, Text: text}}
}

func starts(calls ...string) *harnessv1.Record {
	return &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{
		ToolsStarted: &harnessv1.ToolsStarted{CallIds: calls}}}}}
}

func finishes(call string) *harnessv1.Record {
	return &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{
		ToolFinished: &harnessv1.ToolFinished{CallId: call}}}}}
}

// Output of a command is delivered between the records that start and end its call.
func TestSpliceOutput(t *testing.T) {
	for name, c := range map[string]struct {
		joined   bool
		arrivals []any
		want     string
	}{
		"in order":                  {false, []any{claimed(1, 1), responded(), starts("a"), printed("a", 0, "x"), printed("a", 9, "y"), finishes("a")}, "|||xy|"},
		"before the record":         {false, []any{claimed(1, 1), printed("a", 0, "x"), printed("b", 0, "z"), starts("a"), printed("a", 1, "y"), starts("b")}, "||xy|z"},
		"after the result":          {false, []any{starts("a"), printed("a", 0, "x"), finishes("a"), printed("a", 1, "y")}, "|x|"},
		"of an earlier turn":        {false, []any{starts("a"), printed("b", 0, "x"), handed(), claimed(2, 1), starts("b")}, "||||"},
		"a watcher that joins":      {true, []any{printed("a", 500, "x"), finishes("b"), printed("a", 501, "y"), finishes("a"), printed("a", 502, "z")}, "x|y|"},
		"next to what models write": {false, []any{claimed(1, 1), delta(1, 1, 1, 0, "ab"), responded(), starts("a"), printed("a", 0, "x"), finishes("a"), delta(1, 1, 1, 2, "c")}, "|ab||x|"},
	} {
		s := NewSplice(map[bool]uint64{true: 7}[c.joined])
		got := ""
		show := func(d *harnessv1.Delta) { got += d.GetText() + d.GetToolOutput().GetText() }
		for _, a := range c.arrivals {
			switch a := a.(type) {
			case *harnessv1.Record:
				got += "|"
				for _, d := range s.Record(runlog.Entry{Record: a}) {
					show(d)
				}
			case *harnessv1.Delta:
				show(s.Delta(a))
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSpliceAlerts: an alert is delivered once, between the record that claims its turn and the
// one with the response, also after a loss of text; a watcher that joins gets that of the record.
func TestSpliceAlerts(t *testing.T) {
	alert := func(turn, attempt, try uint32, issue string) *harnessv1.Delta {
		return &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: 9, Alert: &harnessv1.QualityAlert{Issue: issue}}
	}
	for name, c := range map[string]struct {
		after    uint64
		arrivals []any
		want     string
	}{
		"in order":            {0, []any{claimed(1, 1), delta(1, 1, 1, 0, "ab"), alert(1, 1, 1, "!"), delta(1, 1, 1, 2, "c"), responded()}, "|ab!c|"},
		"before the claim":    {0, []any{alert(1, 1, 1, "!"), claimed(1, 1)}, "|!"},
		"after the response":  {0, []any{claimed(1, 1), responded(), alert(1, 1, 1, "!")}, "||"},
		"after a loss":        {0, []any{claimed(1, 1), delta(1, 1, 1, 5, "x"), alert(1, 1, 1, "!")}, "|!"},
		"of a new try":        {0, []any{claimed(1, 1), delta(1, 1, 1, 0, "a"), alert(1, 1, 2, "!"), delta(1, 1, 1, 1, "x"), alert(1, 1, 1, "?"), delta(1, 1, 2, 0, "b")}, "|a!b"},
		"of an old worker":    {0, []any{claimed(1, 1), claimed(1, 2), alert(1, 1, 1, "?"), alert(1, 2, 1, "!")}, "||!"},
		"joined":              {7, []any{alert(1, 1, 1, "?"), responded()}, "|"},
		"joined at the claim": {7, []any{claimed(1, 1), alert(1, 1, 1, "!"), responded()}, "|!|"},
	} {
		s := NewSplice(c.after)
		got := ""
		show := func(d *harnessv1.Delta) { got += d.GetText() + d.GetAlert().GetIssue() }
		for _, a := range c.arrivals {
			switch a := a.(type) {
			case *harnessv1.Record:
				got += "|"
				for _, d := range s.Record(runlog.Entry{Record: a}) {
					show(d)
				}
			case *harnessv1.Delta:
				show(s.Delta(a))
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
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
		"reasoning and text":      {[]any{claimed(1, 1), thought(1, 1, 1, 0, 0, "hm"), delta(1, 1, 1, 0, "ab"), thought(1, 1, 1, 2, 2, "m"), delta(1, 1, 1, 2, "c"), responded()}, "|(hm)ab(m)c|"},
		"both in one":             {[]any{claimed(1, 1), both(0, "hm", 0, "ab"), both(2, "m", 2, "c")}, "|(hm)ab(m)c"},
		"both, reasoning lost":    {[]any{claimed(1, 1), both(0, "hm", 0, "ab"), both(9, "x", 2, "c"), both(10, "x", 3, "d")}, "|(hm)abcd"},
		"both, text lost":         {[]any{claimed(1, 1), both(0, "hm", 0, "ab"), both(2, "m", 9, "x"), both(3, "m", 10, "x")}, "|(hm)ab(m)(m)"},
		"reasoning lost":          {[]any{claimed(1, 1), thought(1, 1, 1, 0, 0, "h"), thought(1, 1, 1, 2, 0, "m"), delta(1, 1, 1, 0, "a"), thought(1, 1, 1, 3, 1, "x"), delta(1, 1, 1, 1, "b")}, "|(h)ab"},
		"text lost":               {[]any{claimed(1, 1), delta(1, 1, 1, 0, "a"), delta(1, 1, 1, 2, "c"), thought(1, 1, 1, 0, 3, "hm"), delta(1, 1, 1, 3, "d"), thought(1, 1, 1, 2, 4, "m")}, "|a(hm)(m)"},
		"reasoning twice":         {[]any{claimed(1, 1), thought(1, 1, 1, 0, 0, "h"), thought(1, 1, 1, 0, 0, "h"), thought(1, 1, 1, 1, 0, "m")}, "|(h)(m)"},
		"next try reasons":        {[]any{claimed(1, 1), thought(1, 1, 1, 0, 0, "h"), delta(1, 1, 1, 0, "a"), thought(1, 1, 2, 0, 0, "m"), delta(1, 1, 2, 0, "b")}, "|(h)a(m)b"},
		"reasoning early":         {[]any{handed(), thought(1, 1, 1, 0, 0, "h"), claimed(1, 1), thought(1, 1, 1, 1, 0, "m")}, "||(h)(m)"},
		"joined while it reasons": {[]any{thought(4, 1, 1, 5, 0, "x"), delta(4, 1, 1, 0, "a"), thought(4, 1, 1, 6, 1, "y"), delta(4, 1, 1, 1, "b")}, "ab"},
		"joined while it writes":  {[]any{delta(4, 1, 1, 5, "x"), thought(4, 1, 1, 0, 6, "h"), delta(4, 1, 1, 6, "y"), thought(4, 1, 1, 1, 7, "m")}, "(h)(m)"},
	} {
		var s Splice
		got := ""
		for n, a := range c.arrivals {
			switch a := a.(type) {
			case *harnessv1.Delta:
				got += pieces(s.Delta(a))
			case *harnessv1.Record:
				got += "|"
				for _, d := range s.Record(entry(uint64(n+1), a)) {
					got += pieces(d)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestSplicePrefix: in whatever order records and deltas arrive, the delivered text and
// reasoning of a try are prefixes of them, and nothing of a turn follows its response.
func TestSplicePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Splice
		type try struct{ turn, attempt, try uint32 }
		shown, thought := map[try]uint64{}, map[try]uint64{}
		var current try
		done := uint32(0)
		show := func(d *harnessv1.Delta) {
			k := try{d.GetTurnNumber(), d.GetAttempt(), d.GetTry()}
			if k != current {
				current = k
				shown[k], thought[k] = 0, 0
			}
			if d.GetOffset() != shown[k] || d.GetReasoningOffset() != thought[k] {
				t.Fatalf("%v: offsets %d, %d are shown after %d, %d bytes", k, d.GetOffset(), d.GetReasoningOffset(), shown[k], thought[k])
			}
			shown[k] += uint64(len(d.GetText()))
			thought[k] += uint64(len(d.GetReasoning()))
			if d.GetText() == "" && d.GetReasoning() == "" {
				t.Fatalf("%v: nothing is shown", k)
			}
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
				place := rapid.Uint64Range(0, 3)
				d := delta(small.Draw(t, "turn"), small.Draw(t, "attempt"), small.Draw(t, "try"), place.Draw(t, "offset"), rapid.StringN(0, 1, 1).Draw(t, "text"))
				d.ReasoningOffset, d.Reasoning = place.Draw(t, "reasoning_offset"), rapid.StringN(0, 1, 1).Draw(t, "reasoning")
				if d = s.Delta(d); d != nil {
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
	if s.Delta(early) != nil {
		t.Error("text is shown before its turn")
	}
	claim := runlog.Entry{Record: &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
		Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1, Attempt: 1}},
	}}}}
	if released := s.Record(claim); len(released) != 1 {
		t.Errorf("the claim released %v", released)
	}
	if on := NewSplice(7); on.Delta(early) == nil {
		t.Error("a watcher that continues is not shown the text of the turn it is in")
	}
}
