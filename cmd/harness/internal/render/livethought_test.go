package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// reasoned is a response with a reasoning for people and its tokens.
func reasoned(text, reasoning string, tokens uint64) *harnessv1.Event {
	e := responded(text, 0, 1, 1, 0)
	e.GetModelResponse().Reasoning = inline(reasoning)
	e.GetModelResponse().Usage.ReasoningTokens = tokens
	return e
}

// rest returns the final lines below the heading of the turn.
func (s *stage) rest(t *testing.T) string {
	t.Helper()
	s.Close()
	if fault := s.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
	all := s.terminal.All()
	return strings.Join(all[slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, "turn 1/50") })+1:], "\n")
}

func TestReasoningIsAboveTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		deltas   []*harnessv1.Delta
		response *harnessv1.Event
		want     string
	}{
		"streamed":                       {[]*harnessv1.Delta{thought(1, 1, 1, 0, "h"), thought(1, 1, 1, 1, "m"), piece(1, 1, 1, 0, "Yes.")}, reasoned("Yes.", "hm", 9), "┊ hm\n\nYes."},
		"committed":                      {nil, reasoned("Yes.", "hm", 9), "┊ hm\n\nYes."},
		"without text":                   {[]*harnessv1.Delta{thought(1, 1, 1, 0, "hm")}, reasoned("", "hm", 9), "┊ hm"},
		"the rest":                       {[]*harnessv1.Delta{thought(1, 1, 1, 0, "h")}, reasoned("Yes.", "hm", 9), "┊ hm\n\nYes."},
		"one lost":                       {[]*harnessv1.Delta{thought(1, 1, 1, 0, "h"), piece(1, 1, 1, 0, "Y")}, reasoned("Yes.", "hm", 9), "┊ h\n\nYes."},
		"all lost":                       {[]*harnessv1.Delta{piece(1, 1, 1, 0, "Y")}, reasoned("Yes.", "hm", 9), "Yes."},
		"joined otherwise":               {[]*harnessv1.Delta{thought(1, 1, 1, 0, "ab"), piece(1, 1, 1, 0, "Y")}, reasoned("Yes.", "a\n\nb", 9), "┊ ab\n\nYes."},
		"joined otherwise, without text": {[]*harnessv1.Delta{thought(1, 1, 1, 0, "ab")}, reasoned("", "a\n\nb", 9), "┊ ab"},
		"in between": {
			[]*harnessv1.Delta{thought(1, 1, 1, 0, "one"), piece(1, 1, 1, 0, "First."), thought(1, 1, 1, 3, "two"), piece(1, 1, 1, 6, "Second.")},
			reasoned("First.Second.", "one\n\ntwo", 9), "┊ one\n\nFirst.\n\n┊ two\n\nSecond.",
		},
		"another try": {
			[]*harnessv1.Delta{thought(1, 1, 1, 0, "void"), thought(1, 1, 2, 0, "hm"), piece(1, 1, 2, 0, "Yes.")},
			reasoned("Yes.", "hm", 9), "┊ hm\n\nYes.",
		},
		"another try that does not reason": {
			[]*harnessv1.Delta{thought(1, 1, 1, 0, "void"), piece(1, 1, 2, 0, "Yes.")}, reasoned("Yes.", "", 0), "Yes.",
		},
		"another try after text": {
			[]*harnessv1.Delta{piece(1, 1, 1, 0, "void"), thought(1, 1, 2, 0, "hm"), piece(1, 1, 2, 0, "Yes.")},
			reasoned("Yes.", "hm", 9), "┊ hm\n\nYes.",
		},
		"not for people":           {nil, reasoned("Yes.", "", 1234), "┊ thought for 1,234 tokens\n\nYes."},
		"not for people, streamed": {[]*harnessv1.Delta{piece(1, 1, 1, 0, "Y")}, reasoned("Yes.", "", 1234), "Yes."},
		"none":                     {nil, reasoned("Yes.", "", 0), "Yes."},
	} {
		s := newStage(80, 24, Style{UTF8: true})
		s.after(0, 1, begun(1))
		for _, d := range c.deltas {
			s.Delta(d)
			s.Tick()
		}
		s.after(0, 1, c.response)
		if got := s.rest(t); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestLongReasoningIsShort(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	var all strings.Builder
	for i := range 40 {
		line := fmt.Sprintf("%d is a line.\n\n", i)
		s.Delta(thought(1, 1, 1, all.Len(), line))
		all.WriteString(line)
		s.Tick()
		if got := strings.Count(strings.Join(s.terminal.Screen(), "\n"), "┊"); got > maxThought+2 { // and two in the gauge
			t.Fatalf("after line %d, %d lines are live", i, got)
		}
	}
	live := strings.Join(s.terminal.Screen(), "\n")
	if !strings.Contains(live, "┊ 39 is a line.") || strings.Contains(live, "┊ 20 ") || !strings.Contains(live, "thinking") {
		t.Errorf("while it is written:\n%s", live)
	}
	s.Delta(piece(1, 1, 1, 0, "Yes."))
	s.Tick()
	if live := strings.Join(s.terminal.Screen(), "\n"); !strings.Contains(live, "writing") {
		t.Errorf("while the text is written:\n%s", live)
	}
	if got, want := s.rest(t), "┊ 0 is a line.\n┊\n┊ 1 is a line.\n┊\n┊ 2 is a line.\n┊ … 74 more lines\n\nYes."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Blank lines at the end of what stays are left out.
func TestReasoningOfBlankLines(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	s.Delta(thought(1, 1, 1, 0, "```\na"+strings.Repeat("\n", 20)+"b\n```\n"))
	if got, want := s.rest(t), "┊   a\n┊ … 20 more lines"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReasoningLeavesRoom(t *testing.T) {
	s := newStage(30, 7, Style{UTF8: true})
	s.after(0, 1, begun(1))
	s.Delta(thought(1, 1, 1, 0, strings.Repeat("many words ", 50)))
	s.Tick()
	if got := strings.Join(s.terminal.Screen(), "\n"); !strings.Contains(got, "turn 1/50  thinking") || !strings.Contains(got, "┊ words many") {
		t.Errorf("the screen is\n%s", got)
	}
	s.Close()
	if fault := s.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
}

// Reasoning is dim as a whole: its own marks have no colours.
func TestReasoningIsDim(t *testing.T) {
	for colour, want := range map[bool]string{true: "\x1b[2m┊ Reading a file\x1b[0m", false: "┊ **Reading** a `file`"} {
		var out strings.Builder
		l := newLive(LiveConfig{Out: &out, Style: Style{UTF8: true, Colour: colour}, Size: func() (int, int) { return 80, 24 }})
		l.Delta(thought(1, 1, 1, 0, "**Reading** a `file`"))
		e := reasoned("", "**Reading** a `file`", 9)
		e.TurnNumber = 1
		l.Event(e)
		l.Close()
		if !strings.Contains(out.String(), want) {
			t.Errorf("colour %v: %q is not in %q", colour, want, out.String())
		}
	}
}

// Without a terminal a line reports how many tokens the model thought.
func TestReasoningIsForTerminals(t *testing.T) {
	var out strings.Builder
	l := newLive(LiveConfig{Out: &out, Style: Style{UTF8: true}, Size: func() (int, int) { return 80, 24 }, Still: true})
	l.Delta(thought(1, 1, 1, 0, "hm"))
	e := reasoned("Yes.", "hm", 9)
	e.TurnNumber = 1
	l.Event(e)
	l.Close()
	if got := out.String(); strings.Contains(got, "hm") || !strings.HasSuffix(got, "┊ thought for 9 tokens\n\nYes.\n") {
		t.Errorf("%q", got)
	}
}

func TestPlainReasoning(t *testing.T) {
	for name, c := range map[string]struct {
		style  Style
		deltas []*harnessv1.Delta
		want   string
	}{
		"on a terminal": {
			Style{UTF8: true, Terminal: true, Colour: true},
			[]*harnessv1.Delta{thought(1, 1, 1, 0, "one\ntw"), thought(1, 1, 1, 6, "o"), piece(1, 1, 1, 0, "Yes")},
			"\x1b[2m┊ \x1b[0m\x1b[2mone\x1b[0m\n\x1b[2m┊ \x1b[0m\x1b[2mtw\x1b[0m\x1b[2mo\x1b[0m\nYes.\n",
		},
		"without colours":   {Style{Terminal: true}, []*harnessv1.Delta{thought(1, 1, 1, 0, "one\ntwo"), piece(1, 1, 1, 0, "Yes")}, ": one\n: two\nYes.\n"},
		"committed":         {Style{Terminal: true}, nil, ": one\n: two\nYes.\n"},
		"between text":      {Style{Terminal: true}, []*harnessv1.Delta{piece(1, 1, 1, 0, "Y"), thought(1, 1, 1, 0, "one\n"), piece(1, 1, 1, 1, "es")}, "Y\n: one\nes.\n"},
		"not on a terminal": {Style{}, []*harnessv1.Delta{thought(1, 1, 1, 0, "one\ntwo"), piece(1, 1, 1, 0, "Yes")}, "Yes.\nthought for 9 tokens\n"},
	} {
		var out strings.Builder
		text := NewText(&out, c.style, nil)
		for _, d := range c.deltas {
			text.Delta(d)
		}
		e := reasoned("Yes.", "one\ntwo", 9)
		e.TurnNumber = 1
		text.Event(e)
		text.endText()
		before, got, _ := strings.Cut(out.String(), "turn 1")
		if got = strings.TrimPrefix(strings.TrimPrefix(got, "\x1b[0m"), "\n"); got != c.want || strings.TrimSuffix(before, "\x1b[1m") != "\n" {
			t.Errorf("%s: got %q, want %q", name, out.String(), c.want)
		}
	}
}

func TestLinesOfReasoning(t *testing.T) {
	var out, diag strings.Builder
	lines := NewLines(&out, &diag)
	both := thought(1, 1, 1, 3, "hm")
	both.Text = "Yes"
	lines.Delta(both)
	lines.Delta(thought(1, 1, 1, 5, "m"))
	lines.Delta(piece(1, 1, 1, 3, "."))
	want := `{"type":"reasoning.delta","turn_number":1,"attempt":1,"try":1,"offset":3,"text":"hm"}
{"type":"delta","turn_number":1,"attempt":1,"try":1,"offset":0,"text":"Yes"}
{"type":"reasoning.delta","turn_number":1,"attempt":1,"try":1,"offset":5,"text":"m"}
{"type":"delta","turn_number":1,"attempt":1,"try":1,"offset":3,"text":"."}
`
	if out.String() != want || diag.Len() > 0 {
		t.Errorf("got\n%s%s", out.String(), diag.String())
	}
}

func TestResultNamesReasoningAndCacheWrites(t *testing.T) {
	for want, u := range map[string]*harnessv1.Usage{
		"900 tokens in, 20 out":                                  {InputTokens: 900, OutputTokens: 20},
		"900 tokens in (40 to the cache), 20 out (12 reasoning)": {InputTokens: 900, OutputTokens: 20, ReasoningTokens: 12, CacheWriteTokens: 40},
	} {
		if got := (Style{}).ResultLines(&harnessv1.HarnessResult{Usage: u, Duration: durationpb.New(time.Second)})[1]; !strings.Contains(got, " - "+want+" - ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A request that is sent again in another form is no failed try.
func TestAdjustedRequestIsNoFailedTry(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Try: 1, Error: "400 use another address", Adjustment: "wire_chat"}}})
	got := strings.Join(s.terminal.Screen(), "\n")
	if !strings.Contains(got, "model: 400 use another address; its requests go to chat/completions from now on") || !strings.Contains(got, "thinking") || strings.Contains(got, "failed") {
		t.Errorf("the screen is\n%s", got)
	}
	s.Close()
}
