package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayhttp"
	"github.com/harnessmesh/harnessmesh/test/kit/openapitest"
)

// script is a model that does what a client has to answer for.
const script = `turns:
  - {text: This takes a while., calls: [{name: run_command, arguments: {command: sleep 600}}]}
  - {text: Then another., calls: [{name: run_command, arguments: {command: echo hello > hello.txt}}]}
  - {text: I have to ask., calls: [{name: ask_user, arguments: {question: "Which one?"}}]}
  - {text: I ask the client., calls: [{name: weather, arguments: {city: Ulm}}]}
  - {text: Done., calls: [{name: work_complete, arguments: {summary: It says hello.}}]}
`

// web is a mesh that is driven over HTTP alone.
type web struct {
	t      *testing.T
	ctx    context.Context
	server *httptest.Server
}

func startWeb(t *testing.T, description *openapitest.Description) *web {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	n, err := node.Start(ctx, node.Config{Data: t.TempDir(), Sync: "interval"})
	if err != nil {
		t.Fatal(err)
	}
	w := &web{t: t, ctx: ctx, server: httptest.NewServer(description.Handler(t, gatewayhttp.New(gatewayhttp.Config{Gateway: n.Client()})))}
	t.Cleanup(func() {
		w.server.Close()
		if err := n.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// call makes a request and expects a status; it decodes the body into into.
func (w *web) call(method, path, body string, status int, into any) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx, method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.server.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		w.t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
	}
}

// line has the common fields of the data of events.
type line struct {
	Type   string
	ID     string
	Status string
	Reason struct{ Kind string }
	Data   struct {
		CallID string `json:"call_id"`
		Awaits string
	}
	Answer string
	raw    string
}

// follow reads a run's events, as a client does that comes back after each thing
// that it was looking for.
type follow struct {
	w    *web
	path string
	last string
	seen []string
}

// until leaves after the first event that is meant.
func (f *follow) until(meant func(line) bool) line {
	f.w.t.Helper()
	ctx, cancel := context.WithCancel(f.w.ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.w.server.URL+f.path, nil)
	if err != nil {
		f.w.t.Fatal(err)
	}
	if f.last != "" {
		r.Header.Set("Last-Event-ID", f.last)
	}
	resp, err := f.w.server.Client().Do(r)
	if err != nil {
		f.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var last string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			f.last = id
			f.seen = append(f.seen, id)
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		got := line{raw: data}
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			f.w.t.Fatalf("%s: %v", data, err)
		}
		if meant(got) {
			return got
		}
	}
	f.w.t.Fatalf("%s ended after %v: %s", f.path, f.seen, last)
	return line{}
}

// TestARunIsDrivenOverHTTPAlone: started, watched, interrupted, resumed, approved
// and answered, each answer as it is described.
func TestARunIsDrivenOverHTTPAlone(t *testing.T) {
	description := openapitest.Load(t)
	w := startWeb(t, description)
	workspace, model := t.TempDir(), filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(model, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.call("POST", "/v1/runs", fmt.Sprintf(`{"run_id":"r","goal":"Say hello","workspace":%q,
		"agent":{"model":"script:%s","sandbox":{"network":"all"},"tools":[{"name":"run_command","pattern":"^sleep","policy":"allow"}],
			"client_tools":[{"name":"weather","description":"The weather in a city."}],
			"work_items":{"enabled":true},"contract":{"required_outputs":[{"id":"hello","description":"It is said","predicate":{"type":"FILE_EXISTS","path":"hello.txt"}}]}}}`,
		workspace, model), http.StatusCreated, nil)
	f := &follow{w: w, path: "/v1/runs/r/events"}
	parked := func(kind string) func(line) bool {
		return func(l line) bool { return l.Type == "result" && l.Reason.Kind == kind }
	}

	f.until(func(l line) bool { return l.Type == "tool.call" })
	w.call("POST", "/v1/runs/r/interrupt", `{"reason":"Let me think."}`, http.StatusAccepted, nil)
	f.until(parked("interrupted"))
	w.call("POST", "/v1/runs/r/resume", `{"budgets":{"turns":60}}`, http.StatusAccepted, nil)

	f.until(parked("approval"))
	var waits struct {
		Pending []struct {
			Call struct {
				CallID string `json:"call_id"`
			}
		}
	}
	w.call("GET", "/v1/pending?run_id=r", "", http.StatusOK, &waits)
	if len(waits.Pending) != 1 {
		t.Fatalf("%+v", waits)
	}
	w.call("POST", "/v1/runs/r/approvals", fmt.Sprintf(`{"call_id":%q,"decision":"once"}`, waits.Pending[0].Call.CallID), http.StatusAccepted, nil)

	question := f.until(func(l line) bool { return l.Type == "tool.call" && l.Data.Awaits == "question" })
	w.call("POST", "/v1/runs/r/answers", fmt.Sprintf(`{"call_id":%q,"content":"The blue one."}`, question.Data.CallID), http.StatusAccepted, nil)
	asked := f.until(func(l line) bool { return l.Type == "tool.call" && l.Data.Awaits == "client_tool" })
	w.call("POST", "/v1/runs/r/mode", `{"mode":"execute"}`, http.StatusAccepted, nil)
	w.call("POST", "/v1/runs/r/answers", fmt.Sprintf(`{"call_id":%q,"content":"Rain."}`, asked.Data.CallID), http.StatusAccepted, nil)
	end := f.until(parked("agent_done"))
	if end.Status != "DONE" || end.Answer != "Done." {
		t.Errorf("%s", end.raw)
	}

	// Many connections together return the same events as one.
	whole := &follow{w: w, path: "/v1/runs/r/events"}
	whole.until(parked("agent_done"))
	if strings.Join(f.seen, " ") != strings.Join(whole.seen, " ") {
		t.Errorf("in pieces\n%v\nas a whole\n%v", f.seen, whole.seen)
	}
	w.call("GET", "/v1/runs/r/events", "", http.StatusOK, nil)
	var current struct {
		Status   string
		Spec     json.RawMessage
		Coverage struct{ Met int }
	}
	w.call("GET", "/v1/runs/r?spec=true", "", http.StatusOK, &current)
	if current.Status != "DONE" || current.Coverage.Met != 1 {
		t.Errorf("%+v", current)
	}
	w.call("GET", "/v1/runs/r/state", "", http.StatusOK, nil)
	w.call("GET", "/v1/runs/r/conversation", "", http.StatusOK, nil)
	w.call("GET", "/v1/runs", "", http.StatusOK, nil)
	// What it was started with starts another one.
	w.call("POST", "/v1/runs", string(current.Spec), http.StatusCreated, nil)
	w.call("DELETE", "/v1/runs/r", "", http.StatusOK, nil)
	for _, seen := range []string{"GET /v1/runs/{run_id}/events", "GET /v1/runs/{run_id}/conversation", "GET /v1/runs/{run_id}/state"} {
		if !description.Seen(seen, http.StatusOK) {
			t.Errorf("%s was not judged", seen)
		}
	}
}
