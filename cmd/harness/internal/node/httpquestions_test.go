package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/test/kit/openapitest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// confirms is a model whose two calls ask a person.
const confirms = `turns:
  - {calls: [{name: mcp__notes__confirm, arguments: {}}]}
  - {calls: [{name: mcp__notes__confirm, arguments: {}}]}
  - {text: Done., calls: [{name: work_complete, arguments: {summary: Both were asked.}}]}
`

// TestAnswersToServersOverHTTP: a person declines one question, and gives the other the values of its
// form.
func TestAnswersToServersOverHTTP(t *testing.T) {
	dir := t.TempDir()
	notes := servertest.New(func(name string) string {
		return map[string]string{servertest.Lines: filepath.Join(dir, "lines")}[name]
	})
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return notes }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(site.Close) // after the end of the node, which has open requests
	w := startWeb(t, openapitest.Load(t))
	model := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(model, []byte(confirms), 0o600); err != nil {
		t.Fatal(err)
	}
	w.call("POST", "/v1/runs", fmt.Sprintf(`{"run_id":"q","goal":"Confirm twice","workspace":%q,
		"agent":{"model":"script:%s","tools":[{"name":"mcp__notes__*","policy":"allow"}],"mcp":[{"name":"notes","url":%q}]}}`, dir, model, site.URL), http.StatusCreated, nil)
	f := &follow{w: w, path: "/v1/runs/q/events"}
	type waits struct {
		Pending []struct {
			Call struct {
				CallID   string `json:"call_id"`
				Question struct {
					Round    int
					Requests []struct{ ID, Message, Schema string }
				}
			}
		}
	}
	answer := func(body string, status int) {
		t.Helper()
		var list waits
		w.call("GET", "/v1/pending?run_id=q", "", http.StatusOK, &list)
		if len(list.Pending) != 1 {
			t.Fatalf("%+v", list)
		}
		call := list.Pending[0].Call
		if q := call.Question; q.Round != 1 || len(q.Requests) != 1 || q.Requests[0].Message != "Are you sure?" {
			t.Errorf("it asks %+v", q)
		}
		w.call("POST", "/v1/runs/q/answers", fmt.Sprintf(`{"call_id":%q,%s}`, call.CallID, body), status, nil)
	}
	asks := func(l line) bool { return l.Type == "result" && l.Reason.Kind == "question" }
	answered := func(l line) bool { return l.Type == "tool.answer" }
	f.until(asks)
	answer(`"action":"decline","round":2`, http.StatusBadRequest)
	answer(`"action":"decline","round":1`, http.StatusAccepted)
	f.until(answered)
	f.until(asks)
	answer(`"content":"{\"other\":1}"`, http.StatusBadRequest)
	answer(`"action":"accept","content":"{\"why\":\"it is late\"}","round":1`, http.StatusAccepted)
	f.until(answered)
	if end := f.until(func(l line) bool { return l.Type == "result" && l.Reason.Kind == "agent_done" }); end.Status != "DONE" {
		t.Errorf("%s", end.raw)
	}
	if lines, _ := os.ReadFile(filepath.Join(dir, "lines")); string(lines) != "confirmed decline\nconfirmed accept\n" {
		t.Errorf("the server has %q", lines)
	}
}
