package toolhostserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// TestServersThatBreakTheProtocol: what each of them does ends at its call, or leaves out some of its
// tools, and the next call works as the first one.
func TestServersThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	const origin = "[data from the server raw] "
	const tooLarge = origin + "The call has run, but its result cannot be read: it has more than 16 MiB. Ask for less at a time. The call is not sent again."
	for how, want := range map[string]struct {
		tools, leftOut int
		reason         string
		tool, result   string
		outcome        harnessv1.ToolOutcome
		failed         bool
		timeout        time.Duration
	}{
		servertest.RawEarly:   {tools: 1, result: origin + "spoken", outcome: done},
		servertest.RawTwice:   {tools: 1, result: origin + "spoken", outcome: done},
		servertest.RawOther:   {tools: 1, result: origin + "spoken", outcome: done},
		servertest.RawLost:    {tools: 1, result: origin + "The call has run, but its result cannot be read: the only answer that came has the id", outcome: done, failed: true, timeout: 2 * time.Second},
		servertest.RawMany:    {tools: 2000, leftOut: 2000, reason: "the server lists too many tools", result: origin + "spoken", outcome: done},
		servertest.RawPages:   {tools: 200, leftOut: 1, reason: "the server lists too many pages of tools", result: origin + "spoken", outcome: done},
		servertest.RawBytes:   {tools: 1, result: origin + "spoken \uFFFD", outcome: done},
		servertest.RawImage:   {tools: 1, result: tooLarge, outcome: done, failed: true},
		servertest.RawLate:    {tools: 1, result: tooLarge, outcome: done, failed: true},
		servertest.RawError:   {tools: 1, result: origin + "The server answered with an error: an error of more than 16 MiB", outcome: done, failed: true},
		servertest.RawSame:    {tools: 1, leftOut: 1, reason: "the server lists it twice", result: origin + "spoken", outcome: done},
		servertest.RawNamed:   {tools: 2, tool: "work_complete", result: origin + "spoken", outcome: done},
		servertest.RawMuddled: {tools: 1, result: origin + "{\"type\":\"hologram\"}\n7", outcome: done},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			defer h.endServers()
			server := servertest.Server("raw", servertest.Raw+"="+how)
			d := h.described(server)[0]
			if d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY || len(d.GetTools()) != want.tools || len(d.GetLeftOut()) != want.leftOut {
				t.Fatalf("%v %q, %d tools, %d left out", d.GetState(), d.GetMessage(), len(d.GetTools()), len(d.GetLeftOut()))
			}
			for _, l := range d.GetLeftOut() {
				if l.GetTool() == "" || l.GetReason() != want.reason {
					t.Fatalf("left out: %v", l)
				}
			}
			tool := "speak"
			if want.tool != "" {
				tool = want.tool
			}
			for range 2 {
				call := h.serverCall(server, tool, "{}")
				if want.timeout > 0 {
					call.Timeout = durationpb.New(want.timeout)
				}
				if r := h.execute(call); r.GetOutcome() != want.outcome || r.GetIsError() != want.failed || !strings.HasPrefix(r.GetResult(), want.result) {
					t.Fatalf("%v", r)
				}
				if want.timeout > 0 { // the time of another call would include the start of the server
					return
				}
			}
		})
	}
}

// TestAFloodOfReportsEndsTheServer, and so the call that waits for it, long before its time limit.
func TestAFloodOfReportsEndsTheServer(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	defer h.endServers()
	call := h.serverCall(servertest.Server("raw", servertest.Raw+"="+servertest.RawFlood), "speak", "{}")
	call.Timeout = durationpb.New(time.Hour)
	if r := h.execute(call); r.GetOutcome() != unknown {
		t.Errorf("got %v", r)
	}
}

// TestServersThatNeverStart: none delays another one, or the end of the run.
func TestServersThatNeverStart(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for time limits")
	}
	t.Parallel()
	h := newHost(t, Config{})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	silent := servertest.Server("silent", servertest.Raw+"="+servertest.RawSilent)
	resp, err := h.DescribeServers(t.Context(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Workspace: h.dir, Servers: []*harnessv1.McpServer{silent}, Local: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := resp.GetServers()[0]; d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_STARTING || d.GetListed() {
		t.Errorf("a server that never answers: %v", d)
	}
	for want, server := range map[string]*harnessv1.McpServer{
		"":                                   servertest.Server("endless", servertest.Raw+"="+servertest.RawEndless),
		"its certificate cannot be verified": {Name: "secure", Url: secure.URL},
	} {
		if d := h.described(server)[0]; d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_FAILED || !strings.Contains(d.GetMessage(), want) {
			t.Errorf("%v", d)
		}
	}
	if d := h.described(h.startNotes())[0]; d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY {
		t.Errorf("another server: %v", d)
	}
	h.endServers()
}

// TestAFullPipeKeepsNoCall: a call ends at its timeout and at an interrupt, although its arguments
// do not fit into the pipe of a server that reads nothing any more.
func TestAFullPipeKeepsNoCall(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for time limits")
	}
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startNotes(servertest.Raw + "=" + servertest.RawDeaf)
	server.Shared = true
	call := func(id string) *harnessv1.ExecuteToolRequest {
		req := h.serverCall(server, "speak", `{"text":"`+strings.Repeat("x", 256<<10)+`"}`)
		req.CallId, req.Timeout = id, durationpb.New(500*time.Millisecond)
		return req
	}
	for _, id := range []string{"read", "left in the pipe"} {
		if r := h.execute(call(id)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
			t.Errorf("%s: %v", id, r)
		}
	}
	r := h.execute(call("of a new process"))
	starts := func() bool { // it may take a call's whole time, or leave none for the arguments
		return strings.Contains(r.GetResult(), "is starting") || strings.Contains(r.GetResult(), "The call did not run")
	}
	for i := 0; starts() && i < 100; i++ {
		r = h.execute(call(fmt.Sprint("of a new process, again ", i)))
	}
	if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("after it: %v", r)
	}
	req := call("interrupted")
	req.Timeout = durationpb.New(time.Hour)
	end := h.startCall(t.Context(), req)
	h.cancel("interrupted")
	if r := <-end; r.err != nil || r.resp.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
		t.Errorf("at the interrupt: %v, %v", r.resp, r.err)
	}
	h.endServers()
}
