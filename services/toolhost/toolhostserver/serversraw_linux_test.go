package toolhostserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// rawServer is what a server that breaks the protocol is expected to give.
type rawServer struct {
	tools, leftOut int
	reason         string
	tool, result   string
	failed         bool
	// timeout is the time of the call; 0 for any.
	timeout time.Duration
	// several: it writes more than one message in answer to a request, which plain JSON has no place for.
	several bool
}

// TestServersThatBreakTheProtocol: what each of them does ends at its call, or leaves out some of its
// tools, and the next call works as the first one, over pipes and over both forms of HTTP.
func TestServersThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	const origin, spoken = "[data from the server raw] ", "[data from the server raw] spoken"
	const unread = origin + "The call has run, but its result cannot be read: "
	const tooLarge = unread + "it has more than 16 MiB. Ask for less at a time. The call is not sent again."
	const refused = origin + "The server answered with an error: "
	for how, want := range map[string]rawServer{
		servertest.RawEarly:      {tools: 1, result: spoken, several: true},
		servertest.RawTwice:      {tools: 1, result: spoken, several: true},
		servertest.RawOther:      {tools: 1, result: spoken, several: true},
		servertest.RawUnnamed:    {tools: 1, result: spoken, several: true},
		servertest.RawLost:       {tools: 1, result: unread + "the only answer that came has the id", failed: true, timeout: 2 * time.Second},
		servertest.RawMany:       {tools: 2000, leftOut: 2000, reason: "the server lists too many tools", result: spoken},
		servertest.RawPages:      {tools: 200, leftOut: 1, reason: "the server lists too many pages of tools", result: spoken},
		servertest.RawBytes:      {tools: 1, result: spoken + " \uFFFD"},
		servertest.RawImage:      {tools: 1, result: tooLarge, failed: true},
		servertest.RawLate:       {tools: 1, result: tooLarge, failed: true},
		servertest.RawError:      {tools: 1, result: refused + "an error of more than 16 MiB", failed: true},
		servertest.RawSame:       {tools: 1, leftOut: 1, reason: "the server lists it twice", result: spoken},
		servertest.RawNamed:      {tools: 2, tool: "work_complete", result: spoken},
		servertest.RawDefinition: {tools: 2, tool: "odd", result: spoken},
		servertest.RawMuddled:    {tools: 1, result: origin + "{\"type\":\"hologram\"}\n7"},
		servertest.RawText:       {tools: 1, result: unread + "it is a string, where the protocol has an object", failed: true},
		servertest.RawList:       {tools: 1, result: unread + "it is a list,", failed: true},
		servertest.RawNull:       {tools: 1, result: unread + "it is null,", failed: true},
		servertest.RawNumber:     {tools: 1, result: unread + "it is a number,", failed: true},
		servertest.RawRefusal:    {tools: 1, result: refused + "no disk", failed: true},
		servertest.RawFaults:     {tools: 1, result: refused + `["no disk"]`, failed: true},
	} {
		t.Run(how+"/pipes", func(t *testing.T) {
			t.Parallel()
			expectRaw(t, servertest.Server("raw", servertest.Raw+"="+how), want)
		})
		for _, stream := range []bool{true, false} {
			if want.several && !stream {
				continue
			}
			t.Run(fmt.Sprint(how, "/stream=", stream), func(t *testing.T) {
				t.Parallel()
				expectRaw(t, rawOverHTTP(t, servertest.RawHandler(how, stream)), want)
			})
		}
	}
}

// rawOverHTTP serves a server that breaks the protocol.
func rawOverHTTP(t *testing.T, handler http.Handler) *harnessv1.McpServer {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return &harnessv1.McpServer{Name: "raw", Url: web.URL}
}

// expectRaw lists the tools of a server, and calls one of them twice.
func expectRaw(t *testing.T, server *harnessv1.McpServer, want rawServer) {
	t.Helper()
	h := newHost(t, Config{})
	defer h.endServers()
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
		if r := h.execute(call); r.GetOutcome() != done || r.GetIsError() != want.failed || !strings.HasPrefix(r.GetResult(), want.result) {
			t.Fatalf("%v", r)
		}
		if want.timeout > 0 { // the time of another call would include the start of the server
			return
		}
	}
}

// TestBodiesThatAreNoAnswers: a service over HTTP answers a call with something else. The call fails with
// the reason, and the next one, which the service answers, succeeds.
func TestBodiesThatAreNoAnswers(t *testing.T) {
	t.Parallel()
	const message = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"spoken"}]}}`
	for name, body := range map[string]struct {
		kind, text string // %s is the id of the call
		status     int
		want       string
	}{
		"a page":             {"text/html; charset=utf-8", "<html><title>Sign in</title>", 200, "The call may have run, but its answer cannot be read: it has the type text/html and is not a message of the protocol: <html><title>Sign in"},
		"a page as JSON":     {"application/json", "<html><title>Sign in</title>", 200, "is not a message of the protocol: <html>"},
		"nothing":            {"application/json", "", 200, "it has the type application/json and is empty"},
		"accepted":           {"", "", 202, "it is empty"},
		"another object":     {"application/json", `{"detail":"busy"}`, 200, `is not a message of the protocol: {"detail":"busy"}`},
		"a cut answer":       {"application/json", message[:40], 200, "its answer is not valid JSON"},
		"an error, no id":    {"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"session is full"}}`, 200, "session is full"},
		"another id":         {"application/json", `{"jsonrpc":"2.0","id":4711,"result":{}}`, 200, "the only answer that came has the id 4711"},
		"as text":            {"text/plain", message, 200, ""},
		"created":            {"application/json", message, 201, ""},
		"a batch":            {"application/json", "[" + message + "]", 200, ""},
		"a page in a stream": {"text/event-stream", "data: <html>\n\n", 200, "is not a message of the protocol: <html>"},
		"idempotent, a page": {"text/html", "<html>", 200, ""},
		"a comment":          {"text/event-stream", ": ping\n\ndata: ping\n\ndata\n\ndata: " + message + "\n\n", 200, ""},
		"several lines":      {"text/event-stream", "data: {\ndata: \"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\ndata:\"content\":[{\"type\":\"text\",\ndata: \"text\":\"spoken\"}]}}\n\n", 200, ""},
		"no empty line":      {"text/event-stream", "event: message\r\ndata: " + message, 200, ""},
		"a batch of events":  {"text/event-stream", `data: [{"jsonrpc":"2.0","method":"notifications/x"},` + message + "]\n\n", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, odd := servertest.RawHandler("", false), true
			server := rawOverHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				read, _ := io.ReadAll(r.Body)
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if json.Unmarshal(read, &m) != nil || m.Method != "tools/call" || !odd {
					r.Body = io.NopCloser(bytes.NewReader(read))
					raw.ServeHTTP(w, r)
					return
				}
				odd = false
				w.Header()["Content-Type"] = nil
				if body.kind != "" {
					w.Header().Set("Content-Type", body.kind)
				}
				w.WriteHeader(body.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(body.text, "%s", string(m.ID)))
			}))
			h := newHost(t, Config{})
			defer h.endServers()
			if strings.HasPrefix(name, "idempotent") {
				server.Idempotent = []string{"speak"}
			}
			for _, want := range []string{body.want, ""} {
				r := h.execute(h.serverCall(server, "speak", "{}"))
				if want == "" {
					want = "[data from the server raw] spoken"
				}
				if r.GetOutcome() != done || !strings.Contains(r.GetResult(), want) || r.GetIsError() == strings.HasSuffix(want, "spoken") {
					t.Fatalf("%v, want %q", r, want)
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
