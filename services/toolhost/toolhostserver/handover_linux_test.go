package toolhostserver

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// TestPauseWaitsForCommands: a host pauses only when no command runs, in the background
// neither. A paused host starts nothing, and Continue ends that.
func TestPauseWaitsForCommands(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	started := h.background("b", "sleep "+uniqueSleep())
	running := h.Pause()
	if len(running) != 1 || running[0].GetRun().GetNamespace() != "n" || running[0].GetRun().GetRunId() != "r" || running[0].GetCommand() == "" {
		t.Fatalf("running: %v", running)
	}
	expect(t, h.call(tools.RunCommand, map[string]any{"command": "true"}), done, false, "[exit code 0]")
	h.killAll(started.GetLedgerId())
	if running := h.Pause(); running != nil {
		t.Fatalf("still running: %v", running)
	}
	request := h.request(tools.RunCommand, "p", map[string]any{"command": "echo x >> effects"})
	if _, err := h.ExecuteTool(context.Background(), request); code(err) != codes.Unavailable {
		t.Errorf("a paused host: %v", err)
	}
	h.Continue()
	expect(t, h.execute(request), done, false, "[exit code 0]")
}

// TestPauseSeesCommandsOfCalls: a call of run_command and a check are commands, a call that
// reads is none.
func TestPauseSeesCommandsOfCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	read, err := h.toolJob(h.request(tools.ReadFile, "r", map[string]any{"path": "a"}))
	if err != nil || read.CommandLine != "" {
		t.Errorf("read_file runs %q, %v", read.CommandLine, err)
	}
	run, err := h.toolJob(h.request(tools.RunCommand, "c", map[string]any{"command": "make test"}))
	if err != nil || run.CommandLine != "make test" {
		t.Errorf("run_command runs %q, %v", run.CommandLine, err)
	}
	check, err := h.checkJob(&harnessv1.CheckCommandRequest{Namespace: "n", RunId: "r", Key: "k", Command: "make check", Workspace: h.dir})
	if err != nil || check.CommandLine != "make check" {
		t.Errorf("a check runs %q, %v", check.CommandLine, err)
	}
}
