package toolhostserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// background starts a command in the background as call id, and returns its description.
func (h *host) background(id, line string, more ...any) *harnessv1.BackgroundCommand {
	h.t.Helper()
	arguments := map[string]any{"command": line, "background": true}
	for i := 0; i < len(more); i += 2 {
		arguments[more[i].(string)] = more[i+1]
	}
	resp := h.execute(h.request(tools.RunCommand, id, arguments))
	expect(h.t, resp, done, false, "Started in the background as "+resp.GetBackground().GetId())
	return resp.GetBackground()
}

func (h *host) output(id string, offset, wait int) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	return h.call(tools.CommandOutput, map[string]any{"id": id, "offset": offset, "wait_seconds": wait})
}

func (h *host) backgroundStates(commands ...*harnessv1.BackgroundCommand) []*harnessv1.BackgroundState {
	h.t.Helper()
	resp, err := h.InspectWorkspace(context.Background(), &harnessv1.InspectWorkspaceRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Workspace: h.dir, InstructionsOnly: true, Background: commands,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.GetBackground()
}

// killAll kills all background commands of the run.
func (h *host) killAll(ledger string) []*harnessv1.BackgroundState {
	h.t.Helper()
	resp, err := h.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Background: true, LedgerId: ledger,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.GetBackground()
}

func TestBackgroundCommandOutlivesItsCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate, sleep := gate(t, h.dir), uniqueSleep()
	c := h.background("c", "echo one; echo two >&2; echo > gate; sleep "+sleep)
	if c.GetId() != "bg1" || c.GetCallId() != "c" || c.GetLedgerId() != h.LedgerID() || !strings.HasPrefix(c.GetCommand(), "echo one") {
		t.Errorf("described as %v", c)
	}
	again := h.execute(h.request(tools.RunCommand, "c", map[string]any{"command": "echo other", "background": true}))
	if again.GetBackground().GetId() != "bg1" {
		t.Errorf("sent again, the call started %v", again.GetBackground())
	}
	awaitGate()
	h.output("bg1", 7, 60) // until its eighth byte has been read
	expect(t, h.output("bg1", 0, 0), done, false, "one\ntwo\n[running; continue at offset 8]")
	if states := h.backgroundStates(c); len(states) != 1 || !states[0].GetRunning() {
		t.Fatalf("got %v", states)
	}
	if sleeping(sleep) == nil {
		t.Fatal("the command died with its call")
	}
	stopped := h.call(tools.StopCommand, map[string]any{"id": "bg1"})
	expect(t, stopped, done, false, "[bg1: killed]")
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if states := h.backgroundStates(c); states[0].GetRunning() || states[0].GetOutcome() != cancelled {
		t.Fatalf("got %v", states)
	}
	expect(t, h.output("bg1", 0, 60), done, false, "one\ntwo\n[killed; continue at offset 8]")
	expect(t, h.call(tools.StopCommand, map[string]any{"id": "bg1"}), done, false, "[bg1: killed]")
}

func TestBackgroundOutputIsReadByOffset(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{ResultBytes: 8 << 10, ReadBytes: 10}})
	awaitGate := gate(t, h.dir)
	h.command("mkfifo go")
	c := h.background("c", "printf 'first\nsecond\nthird\n'; echo > gate; cat go; echo last")
	awaitGate()
	h.output("bg1", 18, 60) // until its last byte has been read
	expect(t, h.output("bg1", 0, 0), done, false, "first\n[running; 13 bytes more; continue at offset 6]")
	expect(t, h.output("bg1", 6, 0), done, false, "second\n[running; 6 bytes more; continue at offset 13]")
	expect(t, h.output("bg1", 13, 0), done, false, "third\n[running; continue at offset 19]")
	expect(t, h.output("bg1", 19, 0), done, false, "[running; continue at offset 19]")
	more := h.startCall(context.Background(), h.request(tools.CommandOutput, "", map[string]any{"id": "bg1", "offset": 19, "wait_seconds": 60}))
	h.command("echo more > go")
	expect(t, (<-more).resp, done, false, "more\n", "continue at offset 2")
	for !strings.Contains(h.output("bg1", 24, 60).GetResult(), "last\n[exit code 0; continue at offset 29]") {
	}
	states := h.backgroundStates(c)
	if states[0].GetOutcome() != done || states[0].GetEnd() != "exit code 0" || !strings.HasSuffix(states[0].GetTail(), "third\nmore\nlast\n") {
		t.Errorf("got %v", states[0])
	}
}

func TestBackgroundCommandsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	for i := range toolhost.MaxBackground {
		h.background(fmt.Sprint("c", i), "sleep "+sleep)
	}
	fifth := h.request(tools.RunCommand, "fifth", map[string]any{"command": "sleep " + sleep, "background": true})
	expect(t, h.execute(fifth), done, true, "4 background commands are running already", "bg1, bg2, bg3, bg4")
	h.call(tools.StopCommand, map[string]any{"id": "bg2"})
	if c := h.background("sixth", "sleep "+sleep); c.GetId() != "bg5" {
		t.Errorf("the id %s was used before", c.GetId())
	}
	expect(t, h.output("bg9", 0, 0), done, true, `no background command "bg9"`, "bg1, bg2, bg3, bg4, bg5")
	expect(t, h.call(tools.StopCommand, map[string]any{"id": "x"}), done, true, `no background command "x"`)
	states := h.killAll("")
	if left := sleeping(sleep); left != nil || len(states) != 5 {
		t.Fatalf("processes left: %v; states %v", left, states)
	}
	for _, s := range states {
		if s.GetRunning() || s.GetOutcome() != cancelled || s.GetEnd() != toolhost.BackgroundKilled {
			t.Errorf("got %v", s)
		}
	}
	if again := h.killAll(""); len(again) != 5 || again[0].GetOutcome() != cancelled {
		t.Errorf("again: %v", again)
	}
}

func TestBackgroundCommandAtItsTimeLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time limit")
	}
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	c := h.background("c", "sleep "+sleep, "timeout_seconds", 1)
	expect(t, h.output("bg1", 0, 60), done, false, "[killed: it had not ended after 1s; continue at offset 0]")
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if s := h.backgroundStates(c)[0]; s.GetOutcome() != done {
		t.Errorf("got %v", s)
	}
}

func TestBackgroundOutputIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	c := h.background("c", "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo end")
	expect(t, h.output("bg1", toolhost.BackgroundBytes, 60), done, false, "continue at offset")
	for h.backgroundStates(c)[0].GetRunning() {
		h.output("bg1", toolhost.BackgroundBytes, 1)
	}
	files, err := filepath.Glob(filepath.Join(h.config.Dir, "output/*/bg1"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Size() != toolhost.BackgroundBytes {
		t.Errorf("the file has %v, %v", info.Size(), err)
	}
	if s := h.backgroundStates(c)[0]; !strings.HasSuffix(s.GetTail(), "\nend\n") || len(s.GetTail()) > toolhost.BackgroundTail+200 {
		t.Errorf("the tail is %q", s.GetTail())
	}
}

func TestBackgroundCommandIsConfined(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	support := h.Sandbox(context.Background())
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for level := harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF; level <= harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL; level++ {
		req := h.request(tools.RunCommand, "", map[string]any{"command": "cat " + secret + "; echo read", "background": true})
		req.Confinement = &harnessv1.Confinement{Level: level}
		resp := h.execute(req)
		if level > support.GetLevel() && level > harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF {
			expect(t, resp, harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED, true, "The command was not run")
			continue
		}
		id := resp.GetBackground().GetId()
		if resp.GetSandboxLevel() != level || id == "" {
			t.Fatalf("at %v: %v", level, resp)
		}
		for h.backgroundStates(resp.GetBackground())[0].GetRunning() {
			h.output(id, 1<<20, 1)
		}
		text := h.output(id, 0, 0).GetResult()
		if strings.HasPrefix(text, "secret") != (level == harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF) {
			t.Errorf("at %v: %q", level, text)
		}
	}
}

// A background command dies with its host. For the next one its end is unknown, its output
// is readable, and it is never started again.
func TestBackgroundCommandOfAKilledHost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	ledger, workspace, sleep := t.TempDir(), t.TempDir(), uniqueSleep()
	awaitGate := gate(t, workspace)
	host := serve(t, ledger)
	req := commandRequest(workspace, "c", "")
	req.Arguments = fmt.Sprintf(`{"command":%q,"background":true}`, "echo line | tee -a out; echo > gate; sleep "+sleep)
	req.LedgerId = host.ledgerID(t)
	c := host.send(t, req).GetBackground()
	awaitGate()
	early := commandRequest(workspace, "early", "")
	early.Tool, early.Arguments = tools.CommandOutput, `{"id":"bg1","wait_seconds":60}`
	expect(t, host.send(t, early), done, false, "line\n[running;")
	host.kill()
	host = serve(t, ledger)
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if again := host.send(t, req); again.GetBackground().GetId() != "bg1" {
		t.Errorf("sent again: %v", again)
	}
	resp, err := host.InspectWorkspace(context.Background(), &harnessv1.InspectWorkspaceRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Workspace: workspace, Background: []*harnessv1.BackgroundCommand{c},
	})
	if err != nil || resp.GetBackground()[0].GetOutcome() != unknown || resp.GetBackground()[0].GetRunning() {
		t.Fatalf("got %v, %v", resp, err)
	}
	read := commandRequest(workspace, "o", "")
	read.Tool, read.Arguments = tools.CommandOutput, `{"id":"bg1"}`
	expect(t, host.send(t, read), done, false, "line\n["+toolhost.BackgroundLost+"; continue at offset 5]")
	killed, err := host.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{Namespace: "n", RunId: "r", FirstSequence: 7, Background: true})
	if err != nil || len(killed.GetBackground()) != 1 || killed.GetBackground()[0].GetOutcome() != unknown {
		t.Fatalf("got %v, %v", killed, err)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "line\n" {
		t.Errorf("it ran again: %q, %v", out, err)
	}
}

// A host that is drained does not wait for background commands, and kills them when it
// closes.
func TestBackgroundCommandOfAClosedHost(t *testing.T) {
	t.Parallel()
	dir, sleep := t.TempDir(), uniqueSleep()
	h := newHost(t, Config{Dir: dir})
	c := h.background("c", "sleep "+sleep)
	if err := h.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if sleeping(sleep) == nil {
		t.Error("the drain killed it")
	}
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	next := newHost(t, Config{Dir: dir})
	next.dir = h.dir
	if s := next.backgroundStates(c)[0]; s.GetOutcome() != unknown || s.GetEnd() != toolhost.BackgroundLost {
		t.Errorf("got %v", s)
	}
}

// TestCommandsOfARunShareTheLoopback while a background command is alive: a server next to
// its tests, without network.
func TestCommandsOfARunShareTheLoopback(t *testing.T) {
	h := newHost(t, Config{})
	if h.Sandbox(context.Background()).GetLevel() < harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL {
		t.Log("the level full does not work here: " + h.Sandbox(context.Background()).GetReason())
		return
	}
	full := func(run, id, line string, background bool) *harnessv1.ExecuteToolResponse {
		req := h.request(tools.RunCommand, id, map[string]any{"command": line, "background": background})
		req.RunId, req.Confinement = run, &harnessv1.Confinement{Level: harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL}
		return h.execute(req)
	}
	peerIn(t, h.dir)
	c := full("r", "c", "./peer listen", true).GetBackground()
	expect(t, h.output(c.GetId(), 0, 60), done, false, "listening\n[running;")
	expect(t, full("r", "", "./peer dial", false), done, false, "connected\n")
	// Another run does not reach it, and neither does the machine.
	expect(t, full("other", "", "./peer dial", false), done, true, "connection refused")
	if _, err := net.Dial("tcp", peerAddress); err == nil {
		t.Error("the machine reaches the server")
	}
	second := full("r", "d", "sleep 3600", true).GetBackground()
	h.call(tools.StopCommand, map[string]any{"id": c.GetId()})
	expect(t, full("r", "", "./peer dial", false), done, true, "connection refused")
	third := full("r", "e", "./peer listen", true).GetBackground()
	expect(t, h.output(third.GetId(), 0, 60), done, false, "listening\n[running;")
	expect(t, full("r", "", "./peer dial", false), done, false, "connected\n")
	for _, c := range []*harnessv1.BackgroundCommand{second, third} {
		h.call(tools.StopCommand, map[string]any{"id": c.GetId()})
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descriptors {
		if target, _ := os.Readlink("/proc/self/fd/" + d.Name()); strings.HasPrefix(target, "net:") {
			t.Errorf("a network is left: %s", target)
		}
	}
}
