package toolhostserver

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// TestIdleServersStartAgain: a server without a call is stopped, its tools stay listed, looking at them does
// not start it, and the next call does.
func TestIdleServersStartAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until servers are idle")
	}
	t.Parallel()
	h := newHost(t, Config{ServerIdle: 50 * time.Millisecond})
	defer h.endServers()
	server := h.startNotes()
	call := h.serverCall(server, "append", `{"line":"one"}`)
	for round, want := range []string{"one\n", "one\none\n", "one\none\none\n"} {
		for until := time.Now().Add(20 * time.Second); len(processes(t, h.dir)) > 0; {
			if time.Now().After(until) {
				t.Fatal("the idle server was not stopped")
			}
			<-time.After(5 * time.Millisecond)
		}
		for range 2 {
			d := h.described(server)[0]
			if d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY || len(d.GetTools()) != 7 || len(processes(t, h.dir)) > 0 {
				t.Fatalf("round %d: %v %q, %d tools, processes %v", round, d.GetState(), d.GetMessage(), len(d.GetTools()), processes(t, h.dir))
			}
		}
		next := h.request(call.GetTool(), "", nil)
		next.Arguments, next.Mcp = call.GetArguments(), call.GetMcp()
		if r := h.execute(next); r.GetOutcome() != done || r.GetIsError() || h.read("lines") != want {
			t.Fatalf("round %d: %v, lines %q", round, r, h.read("lines"))
		}
	}
}

// TestProgressLengthensNoTimeout: a server that reports progress all the time is cancelled as a silent one.
func TestProgressLengthensNoTimeout(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	defer h.endServers()
	call := h.serverCall(h.startNotes(servertest.Steps+"=1"), "steps", "{}")
	call.Timeout = durationpb.New(300 * time.Millisecond)
	if r := h.execute(call); r.GetOutcome() != unknown {
		t.Errorf("%v", r)
	}
}
