//go:build linux

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/rendertest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// capable makes the terminal of a program one that can move its cursor.
func capable(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") }), "TERM=xterm-256color")
	return cmd
}

// seen is what current in the end on a terminal of 80 columns and 24 rows.
func seen(t *testing.T, written *text) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		written.mu.Lock()
		got, changed := written.buf.String(), written.changed
		written.mu.Unlock()
		terminal := rendertest.New(80, 24)
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
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := capable(program(t, "demo"))
	cmd.Env = append(cmd.Env, "GOCACHE="+strings.TrimSpace(string(cache))) // the demo runs go test
	screen, _ := onTerminal(t, cmd)
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.expect(t, "harness run --model openai:gpt-5 'Find", 1)
	written := screen.String()
	got := seen(t, screen)
	for _, want := range []string{
		"▌ run r-", "── turn 3/50 ─", "\nNow I want to see the failure with my own eyes.\n", "  ✗ run_command go test ./...", "  ✓ edit_file ",
		"✓ DONE · agent_done: The agent completed the work.", "\nThe tests pass. There were two faults in Total (till.go):\n\n• the loop left out",
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
	f := serveFake(t)
	inTurn(f, "c1", "c2")
	cmd := capable(program(t, "run", "--server", f.address, "go"))
	screen, keyboard := onTerminal(t, cmd)
	for i, answer := range []string{"y\n", "n not now\n"} {
		screen.expect(t, "Allow it? [y] once  [a] always for this run  [n] no: ", i+1)
		_, _ = keyboard.Write([]byte(answer))
	}
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.expect(t, "DONE", 1)
	got := seen(t, screen)
	if !strings.Contains(got, "[n] no: y\n") || !strings.Contains(got, "[n] no: n not now\n") || !strings.Contains(got, "run_command allowed once") {
		t.Errorf("%s", got)
	}
	if len(f.inputs) != 2 {
		t.Errorf("%d answers", len(f.inputs))
	}
}

func TestControlCUnderALiveRunLeavesTheTerminalAsItWas(t *testing.T) {
	f := serveFake(t)
	f.behave(func(r *fakeRun) {
		r.event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	}, func(r *fakeRun, id string, _ proto.Message) { r.interrupted(id) })
	cmd := capable(program(t, "run", "--server", f.address, "go"))
	screen, keyboard := onTerminal(t, cmd)
	screen.expect(t, "thinking", 1)
	_, _ = keyboard.Write([]byte{3})
	if code := exitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d", code)
	}
	screen.expect(t, "harness resume", 1)
	if got := seen(t, screen); !strings.Contains(got, "PARKED · interrupted") || strings.Contains(got, "thinking") {
		t.Errorf("%s", got)
	}
}

func TestRenderFlagSelectsPlainOrMarkdown(t *testing.T) {
	f := serveFake(t)
	f.started = story
	cmd := capable(program(t, "run", "--server", f.address, "--render", "plain", "Mend it."))
	screen, _ := onTerminal(t, cmd)
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	screen.expect(t, "It is mended.", 1)
	if strings.Contains(screen.String(), "\x1b[?") {
		t.Errorf("plain text moves the cursor: %q", screen.String())
	}
	// Without a terminal, Markdown is laid out and nothing lives.
	got := call(t, map[string]string{"COLUMNS": "60"}, "", "run", "--server", f.address, "--render", "markdown", "Mend it.")
	if got.code != 0 || strings.Contains(got.err, "\x1b") || !strings.Contains(got.err, "── turn 2/50 ─") || got.out != "Not streamed.\n\nIt is mended.\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "run", "--server", f.address, "--render", "html", "go"); got.code != 1 || !strings.Contains(got.err, "--render") {
		t.Errorf("%+v", got)
	}
}

// Reasoning is on the terminal, not in the answer.
func TestReasoningOnATerminal(t *testing.T) {
	f := serveFake(t)
	f.started = story
	for variable, want := range map[string]string{"": "\x1b[2m┊ Where is it?\x1b[0m", "NO_COLOR=1": "┊ Where is it?"} {
		for _, style := range []string{"markdown", "plain"} {
			cmd := capable(program(t, "run", "--server", f.address, "--render", style, "Mend it."))
			cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", variable)
			screen, _ := onTerminal(t, cmd)
			if code := exitCode(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			screen.expect(t, "(1,200 reasoning)", 1)
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
