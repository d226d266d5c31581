package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func printed(call string, offset uint64, text string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: 1, Attempt: 1, ToolOutput: &harnessv1.ToolOutput{CallId: call, Offset: offset, Text: text}}
}

func inlined(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

func result(call, tool, text string) *harnessv1.Event {
	return &harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{
		CallId: call, Tool: tool, Result: inlined(text), Duration: durationpb.New(time.Second),
	}}}
}

func TestOutputOfARunningCommandIsLive(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	command := called("run_command")
	command.TurnNumber = 1
	command.GetToolCall().Arguments = inlined(`{"command":"make test"}`)
	s.after(0, 1, begun(1))
	s.after(0, 2, command)
	screen := func() string {
		s.Tick()
		return strings.Join(s.terminal.All(), "\n")
	}
	s.Delta(printed("other", 0, "of another call\n"))
	s.Delta(printed("c1", 0, "one\ntwo\n"))
	if got := screen(); !strings.Contains(got, "make test") || !strings.Contains(got, "    ┊ one\n    ┊ two\n") || strings.Contains(got, "another") {
		t.Errorf("the screen is\n%s", got)
	}
	s.Delta(printed("c1", 4, "two\nthree\nfour\nfive\nsix\n 40 %\r 50 %\r\x1b[31m"+strings.Repeat("wide ", 40)))
	got := screen()
	if strings.Contains(got, "┊ two") || !strings.Contains(got, "    ┊ three\n    ┊ four\n    ┊ five\n    ┊ six\n    ┊ wide wide ") || strings.Contains(got, "%") || strings.Count(got, "wide") > 16 {
		t.Errorf("the screen is\n%s", got)
	}
	s.Delta(printed("c1", 900_000, "after a gap\n"))
	if got := screen(); !strings.Contains(got, "    ┊ after a gap\n") || strings.Contains(got, "six") {
		t.Errorf("the screen is\n%s", got)
	}
	s.after(0, 1, result("c1", "run_command", "one\ntwo"))
	s.Delta(printed("c1", 900_012, "late\n"))
	if got := screen(); strings.Contains(got, "┊") || strings.Contains(got, "late") || !strings.Contains(got, "✓ run_command make test") {
		t.Errorf("the screen is\n%s", got)
	}
	s.Close()
}

func TestOutputOfACommandIsNotInPlainText(t *testing.T) {
	var out strings.Builder
	for _, text := range []*Text{NewText(&out, Style{Terminal: true}, nil), NewText(&out, Style{}, nil)} {
		text.Delta(printed("c1", 0, "one\n"))
	}
	still := newLive(LiveConfig{Out: &out, Size: func() (int, int) { return 80, 24 }, Still: true})
	still.Event(called("run_command"))
	still.Delta(printed("c1", 0, "one\n"))
	still.Tick()
	if strings.Contains(out.String(), "one") {
		t.Errorf("%q", out.String())
	}
}

func TestOutputIsALineOfJSON(t *testing.T) {
	var out, diag strings.Builder
	NewLines(&out, &diag).Delta(printed("c1", 7, "a\x00b\n"))
	want := `{"type":"tool.output","turn_number":1,"call_id":"c1","offset":7,"text":"a\u0000b\n"}` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWritesShowWhatTheyChange(t *testing.T) {
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprintf("line %d", i))
	}
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"an edit":             {"edit_file", `{"path":"a.go","old":"a\nb\nc\nold\nd\ne\nf","new":"a\nb\nc\nnew 1\n\tnew 2\nd\ne\nf"}`, "      b|      c|    - old|    + new 1|    +     new 2|      d|      e"},
		"an edit of one line": {"edit_file", `{"path":"a.go","old":"x := 1","new":"x := 2"}`, "    - x := 1|    + x := 2"},
		"lines that go":       {"edit_file", `{"path":"a.go","old":"a\nb\n","new":"a\n"}`, "      a|    - b"},
		"a new file":          {"write_file", `{"path":"a.go","content":"one\ntwo\n"}`, "    + one|    + two"},
		"a long file":         {"write_file", `{"path":"a.go","content":"` + strings.Join(long, `\n`) + `"}`, "    + " + strings.Join(long[:11], "|    + ") + "|    … 29 more lines"},
		"control sequences":   {"write_file", `{"path":"a","content":"\u001b[2Jx"}`, "    + \ufffd[2Jx"},
		"an empty file":       {"write_file", `{"path":"a","content":""}`, ""},
		"no such call":        {"edit_file", `{"path":`, ""},
		"another tool":        {"run_command", `{"old":"a","new":"b"}`, ""},
	} {
		if got := strings.Join((Style{UTF8: true}).changeLines(c.tool, c.arguments, 60), "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := (Style{}).changeLines("write_file", `{"content":"`+strings.Repeat("x", 100)+`"}`, 40); len(got) != 1 || len(got[0]) != 40 || !strings.HasSuffix(got[0], "...") {
		t.Errorf("%q", got)
	}
}

func TestAWriteOnTheTerminalHasItsChange(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	edit := called("edit_file")
	edit.TurnNumber = 1
	edit.GetToolCall().Arguments = inlined(`{"path":"till.go","old":"i < 1","new":"i < 2"}`)
	s.after(0, 1, begun(1))
	s.after(0, 2, edit)
	s.after(0, 1, result("c1", "edit_file", "Edited till.go."))
	s.Tick()
	if got := strings.Join(s.terminal.All(), "\n"); !strings.Contains(got, "✓ edit_file") || !strings.Contains(got, "\n    - i < 1\n    + i < 2\n") {
		t.Errorf("the screen is\n%s", got)
	}
	s.Close()
}
