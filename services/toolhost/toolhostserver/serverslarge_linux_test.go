package toolhostserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// TestAResultThatIsTooLargeEndsItsCallOnly: the call is reported to have run, and the same process
// takes the next one.
func TestAResultThatIsTooLargeEndsItsCallOnly(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	defer h.endServers()
	server := servertest.Server("raw", servertest.Raw+"="+servertest.RawLate, servertest.Lines+"="+filepath.Join(h.dir, "lines"))
	server.Idempotent = []string{"speak"}
	call := h.serverCall(server, "speak", "{}")
	before := processes(t, h.dir)
	if r := h.execute(call); r.GetOutcome() != done || !r.GetIsError() || !strings.Contains(r.GetResult(), "The call has run, but its result cannot be read") {
		t.Fatalf("%v", r)
	}
	if after := processes(t, h.dir); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("processes %v, then %v: the server was started again", before, after)
	}
}

// TestAResultThatIsTooLargeOverHTTP: as over pipes, in each form of a response.
func TestAResultThatIsTooLargeOverHTTP(t *testing.T) {
	t.Parallel()
	large := func(kind, head, tail string) func(http.ResponseWriter, *http.Request, func()) {
		return func(w http.ResponseWriter, r *http.Request, carryOut func()) {
			var message struct{ ID json.RawMessage }
			body, err := r.GetBody()
			if err == nil {
				err = json.NewDecoder(body).Decode(&message)
			}
			if err != nil {
				t.Error(err)
			}
			carryOut()
			w.Header().Set("Content-Type", kind)
			_, _ = fmt.Fprintf(w, `%s{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}%s`, head, strings.Repeat("A", 17<<20), message.ID, tail)
		}
	}
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request, func()){
		"a document": large("application/json", "", ""),
		"an event":   large("text/event-stream", "event: message\ndata: ", "\n\n"),
		"the second event": large("text/event-stream",
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\ndata: ", "\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			server := h.overHTTP(fail)
			server.Idempotent = []string{"append"}
			if r := h.execute(h.serverCall(server, "append", `{"line":"one"}`)); r.GetOutcome() != done || !r.GetIsError() || !strings.Contains(r.GetResult(), "The call has run, but its result cannot be read") {
				t.Errorf("%v", r)
			}
			if r := h.execute(h.serverCall(server, "append", `{"line":"two"}`)); r.GetOutcome() != done || r.GetIsError() {
				t.Errorf("the next call: %v", r)
			}
			if got := h.read("lines"); got != "one\ntwo\n" {
				t.Errorf("lines %q", got)
			}
		})
	}
}
