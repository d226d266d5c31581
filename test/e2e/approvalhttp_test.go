package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gatewayHTTP is a served gateway, called over HTTP with its key.
type gatewayHTTP struct {
	t         *testing.T
	addr, key string
}

func serveHTTP(t *testing.T, scripts string) *gatewayHTTP {
	t.Helper()
	data := t.TempDir()
	serve := start(t, environment(), "serve", "--data", data, "--listen", "127.0.0.1:0", "--scripts", scripts)
	g := &gatewayHTTP{t: t}
	eventually(t, "the gateway", func() bool {
		serve.mu.Lock()
		defer serve.mu.Unlock()
		_, rest, found := strings.Cut(serve.stderr.String(), "ready role=gateway addr=")
		line, _, whole := strings.Cut(rest, "\n")
		g.addr = strings.TrimSpace(line)
		return found && whole
	})
	key, err := os.ReadFile(filepath.Join(data, "gateway.key"))
	if err != nil {
		t.Fatal(err)
	}
	g.key = strings.TrimSpace(string(key))
	return g
}

// open sends a request. body is JSON, or empty.
func (g *gatewayHTTP) open(ctx context.Context, method, path, body string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+g.addr+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp
}

// call sends a request and returns the status and the body of the answer.
func (g *gatewayHTTP) call(method, path, body string) (int, string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	resp := g.open(ctx, method, path, body)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// event returns the data of the first event of a run with a name.
func (g *gatewayHTTP) event(run, name string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	resp := g.open(ctx, http.MethodGet, "/v1/runs/"+run+"/events", "")
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for found := false; lines.Scan(); {
		switch line := lines.Text(); {
		case line == "event: "+name:
			found = true
		case found && strings.HasPrefix(line, "data: "):
			return line
		}
	}
	g.t.Fatalf("the run has no event %s", name)
	return ""
}

// waitsFor waits until a call of the run waits for an answer.
func (g *gatewayHTTP) waitsFor(run, call string) (status string) {
	g.t.Helper()
	eventually(g.t, "the approval of "+call, func() bool {
		_, status = g.call(http.MethodGet, "/v1/runs/"+run, "")
		return strings.Contains(status, `"call_id":"`+call+`"`)
	})
	return status
}

// TestApprovalsOverHTTP: a long call is whole in the list, the run and the event. Changed
// arguments are checked as the agent's are, and a rule allows the later calls that it fits.
func TestApprovalsOverHTTP(t *testing.T) {
	t.Parallel()
	var heredoc strings.Builder
	heredoc.WriteString("cat > notes <<'END'\n")
	for i := 0; heredoc.Len() < 22_900; i++ {
		fmt.Fprintf(&heredoc, "line %d of the notes\n", i)
	}
	heredoc.WriteString("END\ntouch harm-in-the-last-line")
	long, err := json.Marshal(heredoc.String())
	if err != nil {
		t.Fatal(err)
	}
	dir, scripts := t.TempDir(), t.TempDir()
	script := write(t, scripts, "s.yaml", fmt.Sprintf(`turns:
  - {calls: [{id: long, name: run_command, arguments: {command: %s}}]}
  - {calls: [{id: second, name: run_command, arguments: {command: "echo two >> ran"}}]}
  - {calls: [{id: ruled, name: run_command, arguments: {command: "echo thr\u0435e\u2800"}}]}
  - {calls: [{id: alike, name: run_command, arguments: {command: "echo four"}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`, long))
	g := serveHTTP(t, scripts)
	if code, body := g.call(http.MethodPost, "/v1/runs", fmt.Sprintf(`{"run_id":"r","goal":"go","workspace":%q,"agent":{"model":"script:%s",
		"tools":[{"name":"run_command","policy":"deny","pattern":"secret","reason":"No secrets."},{"name":"run_command","policy":"ask"}]}}`, dir, script)); code != http.StatusCreated {
		t.Fatalf("start: %d %s", code, body)
	}
	run := g.waitsFor("r", "long")
	_, listed := g.call(http.MethodGet, "/v1/pending", "")
	for place, text := range map[string]string{"run": run, "list": listed, "event": g.event("r", "approval.requested")} {
		for _, want := range []string{"cat > notes", "line 500 of the notes", "line 1000 of the notes", "harm-in-the-last-line"} {
			if !strings.Contains(strings.ReplaceAll(text, `\u003e`, ">"), want) {
				t.Errorf("the %s of %d bytes has no %q", place, len(text), want)
			}
		}
	}
	approve := func(body string, want int, says string) {
		t.Helper()
		if code, answer := g.call(http.MethodPost, "/v1/runs/r/approvals", body); code != want || !strings.Contains(answer, says) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	approve(`{"call_id":"long","decision":"once","arguments":"{\"command\":7}"}`, http.StatusBadRequest, "approval.arguments")
	approve(`{"call_id":"long","decision":"run","rules":[{"name":"run_command","prefix":"rm; ls"}]}`, http.StatusBadRequest, "rules")
	approve(`{"call_id":"long","decision":"deny","reason":"Not that."}`, http.StatusAccepted, "")
	g.waitsFor("r", "second")
	approve(`{"call_id":"second","decision":"once","arguments":"{\"command\":\"touch secret\"}"}`, http.StatusBadRequest, "No secrets.")
	approve(`{"call_id":"second","decision":"once","arguments":"{\"command\":\"echo changed >> ran\"}"}`, http.StatusAccepted, "")
	if status := g.waitsFor("r", "ruled"); !strings.Contains(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(status), `"disguised":["thr<U+0435>e<U+2800>"]`) {
		t.Errorf("a letter of another script and a character without a shape are not named: %s", status)
	}
	approve(`{"call_id":"ruled","decision":"run","rules":[{"name":"run_command","prefix":"echo"}]}`, http.StatusAccepted, "")
	eventually(t, "the end", func() bool {
		_, status := g.call(http.MethodGet, "/v1/runs/r", "")
		return strings.Contains(status, `"status":"DONE"`)
	})
	if raw, _ := os.ReadFile(filepath.Join(dir, "ran")); string(raw) != "changed\n" {
		t.Errorf("the second call wrote %q", raw)
	}
	for _, name := range []string{"secret", "notes", "harm-in-the-last-line"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}
