package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestARunWaitsForAnAddress: it is checked until it answers, and no check is a turn, a call of a
// model or a call of a tool.
func TestARunWaitsForAnAddress(t *testing.T) {
	t.Parallel()
	var checks atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if checks.Add(1) < 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer web.Close()
	dir := t.TempDir()
	script := write(t, dir, "script.yaml", `turns:
  - {calls: [{name: wait, arguments: {url: '`+web.URL+`/ready', deadline: 600}}]}
  - {when: {last_contains: "answered with the status 200"}, calls: [{name: work_complete, arguments: {summary: waited}}]}
`)
	agent := write(t, dir, "agent.yaml", "web: {fetch: true, allow: ['"+strings.TrimPrefix(web.URL, "http://")+"']}\n")
	code, stdout, stderr := newHome(t).finish("run", "--workspace", t.TempDir(), "--agent", agent, "--model", "script:"+script, "--output", "jsonl", "wait")
	if code != 0 || !strings.Contains(stdout, `"summary":"waited"`) {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	for what, want := range map[string]int{`"type":"model.response"`: 2, `"type":"tool.result"`: 2, `"type":"tool.error"`: 0} {
		if n := strings.Count(stdout, what); n != want {
			t.Errorf("%s: %d times, want %d\n%s", what, n, want, stdout)
		}
	}
	if checks.Load() != 2 {
		t.Errorf("%d checks", checks.Load())
	}
}
