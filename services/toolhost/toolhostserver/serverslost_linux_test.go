package toolhostserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// appends reports whether a request is a call of the tool append. Its body can be read again.
func appends(r *http.Request) bool {
	data, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return err == nil && r.Method == http.MethodPost && bytes.Contains(data, []byte(`"tools/call"`)) && bytes.Contains(data, []byte(`"append"`))
}

// handler serves a server that writes into the workspace, over HTTP, until the test ends. The variables
// in set are 1.
func (h *host) handler(set ...string) http.Handler {
	server := servertest.New(func(name string) string {
		if slices.Contains(set, name) {
			return "1"
		}
		return map[string]string{servertest.Lines: filepath.Join(h.dir, "lines")}[name]
	})
	h.t.Cleanup(func() { // some clients do not end their sessions
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// overHTTP returns a server that passes its first call of append to fail, which gets the
// handler that carries it out.
func (h *host) overHTTP(fail func(w http.ResponseWriter, r *http.Request, carryOut func())) *harnessv1.McpServer {
	handler := h.handler()
	var failed atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if appends(r) && failed.CompareAndSwap(false, true) {
			fail(w, r, func() { handler.ServeHTTP(httptest.NewRecorder(), r) })
			return
		}
		handler.ServeHTTP(w, r)
	}))
	h.t.Cleanup(web.Close)
	h.t.Cleanup(web.CloseClientConnections)
	h.t.Cleanup(h.endServers)
	return &harnessv1.McpServer{Name: "web", Url: web.URL}
}

// TestCallsThatWereLostOverHTTPAreUnknown: a call that may have run is unknown, whatever its
// connection, its server or a proxy made of the answer, and the next call runs.
func TestCallsThatWereLostOverHTTPAreUnknown(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request, func()) {
		return func(w http.ResponseWriter, _ *http.Request, carryOut func()) {
			carryOut()
			w.WriteHeader(code)
		}
	}
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request, func()){
		"the connection is reset": func(_ http.ResponseWriter, _ *http.Request, carryOut func()) {
			carryOut()
			panic(http.ErrAbortHandler)
		},
		"the connection is cut in the answer": func(w http.ResponseWriter, _ *http.Request, carryOut func()) {
			carryOut()
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"jsonrpc":`)
			panic(http.ErrAbortHandler)
		},
		"the request timed out": status(http.StatusRequestTimeout), "500": status(http.StatusInternalServerError), "501": status(http.StatusNotImplemented), "502": status(http.StatusBadGateway),
		"503": status(http.StatusServiceUnavailable), "504": status(http.StatusGatewayTimeout),
		"the stream ends": func(w http.ResponseWriter, _ *http.Request, carryOut func()) {
			carryOut()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": nothing\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			server := h.overHTTP(fail)
			if r := h.execute(h.serverCall(server, "append", `{"line":"one"}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
				t.Errorf("a call that ran: %v", r)
			}
			if r := h.execute(h.serverCall(server, "append", `{"line":"two"}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || r.GetIsError() {
				t.Errorf("the next call: %v", r)
			}
			if got := h.read("lines"); got != "one\ntwo\n" {
				t.Errorf("lines %q", got)
			}
		})
	}
}

// TestCallsThatDidNotRunAreErrors: one that was refused, or did not reach its server.
func TestCallsThatDidNotRunAreErrors(t *testing.T) {
	t.Parallel()
	answer := func(code int, text string) func(http.ResponseWriter, *http.Request, func()) {
		return func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, c := range map[string]struct {
		fail func(http.ResponseWriter, *http.Request, func())
		want string
	}{
		"too many requests": {answer(http.StatusTooManyRequests, ""), "HTTP status 429"},
		"forbidden":         {answer(http.StatusForbidden, "no"), "HTTP status 403"},
		"an error":          {answer(http.StatusBadRequest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a bad line"}}`), "a bad line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			server := h.overHTTP(c.fail)
			if r := h.execute(h.serverCall(server, "append", `{"line":"one"}`)); !r.GetIsError() || !strings.Contains(r.GetResult(), c.want) {
				t.Errorf("%v", r)
			}
			if r := h.execute(h.serverCall(server, "append", `{"line":"two"}`)); r.GetIsError() || h.read("lines") != "two\n" {
				t.Errorf("the next call: %v", r)
			}
		})
	}
	t.Run("the server is away", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, Config{})
		web := httptest.NewServer(h.handler())
		defer h.endServers()
		server := &harnessv1.McpServer{Name: "web", Url: web.URL}
		call := h.serverCall(server, "append", `{"line":"one"}`)
		web.CloseClientConnections()
		web.Close()
		for until := time.Now().Add(20 * time.Second); h.described(server)[0].GetState() == harnessv1.McpServerState_MCP_SERVER_STATE_READY; {
			if time.Now().After(until) {
				t.Fatal("the loss of the server was not noted")
			}
			<-time.After(5 * time.Millisecond)
		}
		for range 2 {
			again := h.request(call.GetTool(), "", nil)
			again.Arguments, again.Mcp = call.GetArguments(), call.GetMcp()
			if r := h.execute(again); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !r.GetIsError() || !strings.Contains(r.GetResult(), "did not run") {
				t.Errorf("%v", r)
			}
		}
	})
}

// TestCallsRunOnceAServerHasForgottenItsSession: the server is connected again.
func TestCallsRunOnceAServerHasForgottenItsSession(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.overHTTP(func(w http.ResponseWriter, _ *http.Request, _ func()) { w.WriteHeader(http.StatusNotFound) })
	if r := h.execute(h.serverCall(server, "append", `{"line":"one"}`)); r.GetIsError() || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
		t.Errorf("a session that is gone: %v", r)
	}
	if got := h.read("lines"); got != "one\n" {
		t.Errorf("lines %q", got)
	}
}

// TestACallThatIsSentAgainHasOneTimeout: both times together.
func TestACallThatIsSentAgainHasOneTimeout(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startNotes()
	server.Idempotent = []string{"hang"}
	call := h.serverCall(server, "hang", `{"seconds":600}`)
	call.Timeout = durationpb.New(300 * time.Millisecond)
	if r := h.execute(call); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("%v", r)
	}
	data, err := os.ReadFile(filepath.Join(h.dir, "lines"))
	if err != nil || strings.Count(string(data), "hanging") != 1 {
		t.Errorf("%q, %v: a call that has no time left was sent again", data, err)
	}
}
