//go:build linux

package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/rendertest"
)

// seen is what current in the end on a terminal of 80 columns and 24 rows.
func seen(t *testing.T, written *harnesstest.Text) string { return seenAt(t, written, 80) }

// seenAt is seen on a terminal of another width.
func seenAt(t *testing.T, written *harnesstest.Text, columns int) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		written.Mu.Lock()
		got, changed := written.Buf.String(), written.Changed
		written.Mu.Unlock()
		terminal := rendertest.New(columns, 24)
		_, _ = terminal.Write([]byte(got))
		fault := terminal.Faults()
		if fault == "" {
			return strings.Join(terminal.All(), "\n")
		}
		select {
		case <-changed: // the last of it was not read yet
		case <-timeout:
			t.Fatalf("on the terminal: %s\n%q", fault, got)
		}
	}
}

func TestTheDemoOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	stale, recent := filepath.Join(temporary, "harness-demo-1"), filepath.Join(temporary, "harness-demo-2")
	for dir, age := range map[string]time.Duration{stale: 25 * time.Hour, recent: 23 * time.Hour} {
		if err := os.MkdirAll(filepath.Join(dir, "till"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := harnesstest.Capable(harnesstest.Program(t, "demo"))
	cmd.Env = append(cmd.Env, "GOCACHE="+strings.TrimSpace(string(cache)), "TMPDIR="+temporary) // the demo runs go test
	screen, _ := harnesstest.OnTerminal(t, cmd)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.Expect(t, "harness run --model openai:gpt-5 'Find", 1)
	// What it wrote is gone, and so is what an interrupted demo has left before.
	if left, _ := filepath.Glob(filepath.Join(temporary, "harness-demo-*")); len(left) != 1 || left[0] != recent {
		t.Errorf("left: %v", left)
	}
	written := screen.String()
	got := seen(t, screen)
	for _, want := range []string{
		"▌ run r-", "── turn 3/50 ─", "\nNow I want to see the failure with my own eyes.\n", "  ✗ run_command go test ./...", "  ✓ edit_file ",
		"✓ DONE: The agent completed the work.", "\nThe tests pass. There were two faults in Total (till.go):\n\n• the loop left out",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not there", want)
		}
	}
	for _, gone := range []string{"thinking", "░", "⠋"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is left", gone)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	if strings.Count(written, "\x1b[?2026h") < 5 || !strings.Contains(written, "thinking") {
		t.Error("nothing lived while it ran")
	}
}

func TestApprovalsBelowALiveRun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	inTurn(f, "c1", "c2")
	cmd := harnesstest.Capable(harnesstest.Program(t, "run", "--server", f.Address, "go"))
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	for i, answer := range []string{"y\n", "n not now\n"} {
		screen.Expect(t, "Allow it? [y] once  [a] for this run  [e] edit  [n] no: ", i+1)
		_, _ = keyboard.Write([]byte(answer))
	}
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.Expect(t, "DONE", 1)
	got := seen(t, screen)
	if !strings.Contains(got, "[n] no: y\n") || !strings.Contains(got, "[n] no: n not now\n") || !strings.Contains(got, "run_command allowed once") {
		t.Errorf("%s", got)
	}
	if len(f.Inputs) != 2 {
		t.Errorf("%d answers", len(f.Inputs))
	}
}

func TestControlCUnderALiveRunLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Behave(func(r *harnesstest.Run) {
		r.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(r *harnesstest.Run, id string, _ proto.Message) { r.Interrupted(id) })
	cmd := harnesstest.Capable(harnesstest.Program(t, "run", "--server", f.Address, "go"))
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "thinking", 1)
	_, _ = keyboard.Write([]byte{3})
	if code := harnesstest.ExitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d", code)
	}
	screen.Expect(t, "harness resume", 1)
	if got := seen(t, screen); !strings.Contains(got, "PARKED: The run was interrupted") || strings.Contains(got, "thinking") {
		t.Errorf("%s", got)
	}
}

func TestRenderFlagSelectsPlainOrMarkdown(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
	cmd := harnesstest.Capable(harnesstest.Program(t, "run", "--server", f.Address, "--render", "plain", "Mend it."))
	screen, _ := harnesstest.OnTerminal(t, cmd)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.Expect(t, "It is mended.", 1)
	if strings.Contains(screen.String(), "\x1b[?") {
		t.Errorf("plain text moves the cursor: %q", screen.String())
	}
	// Without a terminal, Markdown is laid out and nothing lives.
	got := harnesstest.Call(t, map[string]string{"COLUMNS": "60"}, "", "run", "--server", f.Address, "--render", "markdown", "Mend it.")
	if got.Code != 0 || strings.Contains(got.Err, "\x1b") || !strings.Contains(got.Err, "── turn 2/50 ─") || got.Out != "Not streamed.\n\nIt is mended.\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--render", "html", "go"); got.Code != 1 || !strings.Contains(got.Err, "--render") {
		t.Errorf("%+v", got)
	}
}

// Reasoning is on the terminal, not in the answer.
func TestReasoningOnATerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = story
	for variable, want := range map[string]string{"": "\x1b[2m┊ Where is it?\x1b[0m", "NO_COLOR=1": "┊ Where is it?"} {
		for _, style := range []string{"markdown", "plain"} {
			cmd := harnesstest.Capable(harnesstest.Program(t, "run", "--server", f.Address, "--render", style, "Mend it."))
			cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", variable)
			screen, _ := harnesstest.OnTerminal(t, cmd)
			if code := harnesstest.ExitCode(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			screen.Expect(t, "(1,200 reasoning)", 1)
			written := strings.NewReplacer("\x1b[0m\x1b[2m", "").Replace(screen.String())
			if !strings.Contains(written, want) || strings.Contains(written, "thought for") {
				t.Errorf("%s %s: %q is not in %q", variable, style, want, written)
			}
			if colours := strings.Contains(written, "\x1b[2m"); colours == (variable != "") {
				t.Errorf("%s %s: colours are %v", variable, style, colours)
			}
		}
	}
}

func TestGuidanceThatOpensARunIsShownOnRequest(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) {
		for turn, kind := range []string{"contract", "tools", "work_items"} {
			r.Event(&harnessv1.Event{TurnNumber: uint32(turn), Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: kind, Text: "Call it."}}})
		}
		story(r)
	}
	for _, args := range [][]string{nil, {"--guidance"}, {"--render", "plain"}, {"--render", "plain", "--guidance"}} {
		cmd := harnesstest.Capable(harnesstest.Program(t, append([]string{"run", "--server", f.Address, "go"}, args...)...))
		screen, _ := harnesstest.OnTerminal(t, cmd)
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen.Expect(t, "DONE", 1)
		got, asked := screen.String(), len(args)%2 == 1
		if strings.Contains(got, "guidance (contract)") != asked || strings.Contains(got, "guidance (tools)") != asked || !strings.Contains(got, "guidance (work items)") {
			t.Errorf("%v: %q", args, got)
		}
	}
}

// The last lines of a running command are on a terminal, and go when it has ended; a write has
// its change. A pipe gets neither.
func TestOutputAndChangesOnATerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	told := make(chan struct{})
	f.Started = func(r *harnesstest.Run) {
		ev := func(e *harnessv1.Event) {
			e.TurnNumber = 1
			r.Event(e)
		}
		ev(&harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
		ev(&harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c1", Tool: "edit_file", Arguments: content.Inline(`{"path":"a.go","old":"x := 1","new":"x := 2"}`)}}})
		ev(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: "c1", Tool: "edit_file", Result: content.Inline("Edited.")}}})
		ev(&harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c2", Tool: "run_command", Arguments: content.Inline(`{"command":"make"}`)}}})
		for i, line := range []string{"one\n", "two\n", "three\n", "four\n", "five\n", "printed last\n"} {
			r.Delta(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, ToolOutput: &harnessv1.ToolOutput{CallId: "c2", Offset: uint64(100 * i), Text: strings.Repeat("x", 100-len(line)) + line}})
		}
		<-told
		ev(&harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: "c2", Tool: "run_command", Result: content.Inline("[exit code 0]")}}})
		r.Done()
	}
	for columns, number := range map[string]int{"80": 80, "140": 140} {
		cmd := harnesstest.Capable(harnesstest.Program(t, "run", "--server", f.Address, "go"))
		cmd.Env = append(cmd.Env, "COLUMNS="+columns)
		screen, _ := harnesstest.OnTerminal(t, cmd)
		want := "printed last"
		if columns == "80" {
			want = strings.Repeat("x", 60) // its end is cut
		}
		screen.Expect(t, want, 1)
		told <- struct{}{}
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen.Expect(t, "DONE", 1)
		got := seenAt(t, screen, number)
		if !strings.Contains(got, "    - x := 1\n    + x := 2\n") || !strings.Contains(got, "✓ run_command make") || strings.Contains(got, "xxx") {
			t.Errorf("%s columns:\n%s", columns, got)
		}
		if strings.Contains(screen.String(), "one\r\n") && columns == "140" {
			t.Errorf("more than five lines: %q", screen.String())
		}
	}
	go func() { told <- struct{}{} }()
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "go"); strings.Contains(got.Err, "xxx") || strings.Contains(got.Err, "x := 1\n") {
		t.Errorf("%+v", got)
	}
}
