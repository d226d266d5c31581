package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

func TestMain(m *testing.M) {
	// Under the race detector a process sleeps for a second as it exits, and each
	// command has its own process to wait for.
	_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	os.Exit(m.Run())
}

const (
	beforeTool = harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL
	afterTool  = harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL
	agentStop  = harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP

	carryOn = harnessv1.HookAction_HOOK_ACTION_CONTINUE
	deny    = harnessv1.HookAction_HOOK_ACTION_DENY
)

// bed calls hooks of a run: commands on a real tool host, and the service of this
// example.
type bed struct {
	t       *testing.T
	caller  *hookcaller.Caller
	where   hookcaller.RunInfo
	service string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	host, err := toolhostserver.New(toolhostserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	pool := &remote.Pool{}
	t.Cleanup(func() {
		pool.Close()
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	address := serve(t, func(s *grpc.Server) {
		harnessv1.RegisterToolHostServiceServer(s, host)
		harnessv1.RegisterHookServiceServer(s, &service{keepOut: []string{"vendor", ".git"}})
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b := &bed{t: t, where: hookcaller.RunInfo{Workspace: t.TempDir(), FirstSequence: 1}, service: address}
	b.caller = hookcaller.New(hookcaller.Config{ToolHost: harnessv1.NewToolHostServiceClient(conn), Remote: pool})
	return b
}

func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	return l.Addr().String()
}

// fire calls one hook about a call of a tool.
func (b *bed) fire(h *harnessv1.Hook, key, tool string, payload map[string]any) hook.Result {
	b.t.Helper()
	set, err := hook.Compile([]*harnessv1.Hook{h})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.caller.Fire(b.t.Context(), set, hook.Point{
		Namespace: "default", RunID: "r", Topic: h.GetTopic(), Turn: 1, Key: key, Tool: tool, Payload: payload,
	}, b.where)
}

func command(line string) map[string]any {
	return map[string]any{"tool": "run_command", "arguments": map[string]any{"command": line}}
}

func (b *bed) lines(name string) int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.where.Workspace, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestTheShellHookKeepsForcePushesAway(t *testing.T) {
	b := newBed(t)
	script, err := os.ReadFile("guard.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.where.Workspace, "guard.sh"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	guard := &harnessv1.Hook{Topic: beforeTool, Command: "sh guard.sh"}
	for line, want := range map[string]harnessv1.HookAction{
		"git push --force origin main": deny, "cd x && git push -f origin": deny, "git push origin main": carryOn, "echo '--force'": carryOn,
	} {
		r := b.fire(guard, line, "run_command", command(line))
		if r.Action != want || want == deny && r.Reason != "Force pushes are for people. Push to a new branch instead." {
			t.Errorf("%s: %v: %s", line, r.Action, r.Reason)
		}
	}
}

func TestACommandRunsOnceUnderItsKey(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: beforeTool, Command: `echo called >>calls; cat >request; exit 2`}
	for range 3 {
		if r := b.fire(h, "1/c", "run_command", command("ls")); r.Action != deny {
			t.Fatalf("got %v: %s", r.Action, r.Reason)
		}
	}
	if n := b.lines("calls"); n != 1 {
		t.Fatalf("it ran %d times", n)
	}
	b.fire(h, "2/c", "run_command", command("ls"))
	if n := b.lines("calls"); n != 2 || b.lines("request") != 1 {
		t.Fatalf("another call: it ran %d times", n)
	}
}

func TestACommandReplacesWhatItIsGiven(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: beforeTool, Command: `printf '{"action":"replace","payload":{"arguments":{"command":"ls"}},"context":"Only ls."}'`}
	r := b.fire(h, "1/c", "run_command", command("rm x"))
	if text, _ := hook.Encode(r.Payload["arguments"]); text != `{"command":"ls"}` || len(r.Context) != 1 {
		t.Fatalf("got %s, %v", text, r.Events)
	}
}

func TestACommandThatTakesTooLongFailsAndIsKilled(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: beforeTool, Command: `trap '' TERM; sleep 3600; sleep 3600`, Timeout: durationpb.New(300 * time.Millisecond)}
	r := b.fire(h, "1/c", "run_command", command("ls"))
	if r.Action != deny || !strings.Contains(r.Events[0].GetHookError().GetError(), "longer than 300ms") {
		t.Fatalf("got %v, %v", r.Action, r.Events)
	}
}

func TestACommandMayBlockTheEnd(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: agentStop, Command: `test -e report.md || { echo "There is no report.md yet." >&2; exit 2; }`}
	if r := b.fire(h, "1", "", nil); r.Action != harnessv1.HookAction_HOOK_ACTION_BLOCK || r.Reason != "There is no report.md yet." {
		t.Fatalf("got %v, %v", r.Action, r.Events)
	}
	if err := os.WriteFile(filepath.Join(b.where.Workspace, "report.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.fire(h, "2", "", nil); r.Action != carryOn {
		t.Fatalf("got %v, %v", r.Action, r.Events)
	}
}

func TestTheServiceKeepsOutOfFolders(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: beforeTool, Grpc: b.service, Tools: []string{"write_file"}}
	for name, want := range map[string]harnessv1.HookAction{
		"vendor/a.go": deny, "src/../vendor/a.go": deny, ".git": deny, "vendors/a.go": carryOn, "main.go": carryOn,
	} {
		r := b.fire(h, name, "write_file", map[string]any{"tool": "write_file", "arguments": map[string]any{"path": name}})
		if r.Action != want || len(r.Events) != 1 {
			t.Errorf("%s: %v, %v", name, r.Action, r.Events)
		}
	}
}

func TestTheServiceTakesKeysOutOfResults(t *testing.T) {
	b := newBed(t)
	h := &harnessv1.Hook{Topic: afterTool, Grpc: b.service}
	payload := command("env")
	payload["result"] = "HOME=/root\nAPI=sk-abcdefghijklmnopqrstuvwxyz\n"
	r := b.fire(h, "1/c", "run_command", payload)
	if r.Payload["result"] != "HOME=/root\nAPI=[key]\n" || len(r.Context) != 1 {
		t.Fatalf("got %v, %v", r.Payload["result"], r.Events)
	}
	if again := b.fire(h, "2/c", "run_command", r.Payload); again.Replaced {
		t.Fatalf("there is no key any more: %v", again.Events)
	}
}
