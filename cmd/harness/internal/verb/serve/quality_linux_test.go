package serve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// filesOf writes files to a folder and returns it.
func filesOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestServeJudgesAllRuns with --quality always, whatever a request asks for, and takes feedback on their results.
func TestServeJudgesAllRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	dir := filesOf(t, map[string]string{
		"agent.yaml": "name: a\ninstructions: Answer.\nquality: {enabled: false, iterations: 1}\ntask: {kind: chat, profile: reports}\n",
		"script.yaml": `turns:
  - {text: "The answer has more than fifty characters, so that its kind is satisfied.", calls: [{name: work_complete, arguments: {summary: done}}]}
jobs:
  complexity: [{answer: {level: SIMPLE, reason: one question, subtask_count: 1}}]
  verify: [{answer: {passed: true, score: 0.9, issues: [], feedback: Good.}}]
`,
	})
	s := harnesstest.StartServe(t, workflow.Roles(), "--sync", "interval", "--open-loopback", "--quality", "always", "--scripts", dir, "--listen", "127.0.0.1:0")
	server := s.Addresses["gateway"]
	args := []string{"run", "--agent", dir + "/agent.yaml", "--workspace", t.TempDir(), "--run-id", "r", "--output", "jsonl", "Answer.", "--model"}
	got := harnesstest.Call(t, nil, "", append(args, "script:"+dir+"/script.yaml", "--server", server)...)
	for _, want := range []string{`"type":"quality.complexity"`, `"type":"quality.verified"`, `"type":"quality.profile"`, `"combined":0.95`} {
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("nothing of %s after code %d in\n%s%s", want, got.Code, got.Out, got.Err)
		}
	}
	if own := harnesstest.Call(t, nil, "", append(args, "script:"+dir+"/script.yaml", "--data", t.TempDir())...); own.Code != 0 || strings.Contains(own.Out, "quality.") {
		t.Errorf("without the flag: %+v", own)
	}

	if got := harnesstest.Call(t, nil, "", "feedback", "r", "down", "--server", server); got.Code != 0 || got.Err != "harness: the feedback on r is stored\n" {
		t.Fatalf("%+v", got)
	}
	figures := map[string]any{}
	for end := time.Now().Add(30 * time.Second); figures["feedback_rate"] != 1.0; { // repair stores it
		shown := harnesstest.Call(t, nil, "", "profile", "show", "reports", "--server", server, "--output", "json")
		if err := json.Unmarshal([]byte(shown.Out), &figures); err != nil || figures["total_runs"] != 1.0 || time.Now().After(end) {
			t.Fatalf("%v: %+v", err, shown)
		}
	}
	// The event is in the record after that.
	for end := time.Now().Add(30 * time.Second); ; {
		watched := harnesstest.Call(t, nil, "", "watch", "r", "--from", "8", "--server", server, "--output", "jsonl")
		if strings.Contains(watched.Out, `"type":"feedback.given"`) && strings.Contains(watched.Out, `"thumb":"down"`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", watched)
		}
	}
}

// TestEntitlementOfALocalRun lets its swarm work; without it the run works alone.
func TestEntitlementOfALocalRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	dir := filesOf(t, map[string]string{
		"agent.yaml": `name: a
instructions: Answer.
agents: [explore, research, task]
swarm: {specialists: [explore, research], aggregator: task}
task: {kind: synthesis, sources: [{id: a}, {id: b}, {id: c}, {id: d}, {id: e}]}
`,
		"script.yaml": `turns:
  - {text: "Done.", calls: [{name: work_complete, arguments: {summary: done}}]}
`,
	})
	for _, c := range []struct {
		args []string
		want bool
	}{{nil, false}, {[]string{"--entitlement", "something_else"}, false}, {[]string{"--entitlement", "something_else", "--entitlement", "has_synthesis_swarm"}, true}} {
		got := harnesstest.Call(t, nil, "", append([]string{
			"run", "--agent", dir + "/agent.yaml", "--model", "script:" + dir + "/script.yaml", "--workspace", t.TempDir(), "--data", t.TempDir(), "--output", "jsonl", "Answer.",
		}, c.args...)...)
		if got.Code != 0 || strings.Contains(got.Out, `"type":"swarm.activated"`) != c.want {
			t.Errorf("%v: code %d, %s%s", c.args, got.Code, got.Out, got.Err)
		}
	}
}

// TestManyLongAttemptsEndARun as any other: twenty attempts with long answers and long issues.
func TestManyLongAttemptsEndARun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	const attempts = 20
	var script strings.Builder
	script.WriteString("turns:\n")
	for n := range attempts {
		answer := fmt.Sprintf("Answer %d. ", n) + strings.Repeat("It is long. ", 650)
		fmt.Fprintf(&script, "  - {text: %q, calls: [{name: work_complete, arguments: {summary: Attempt %d}}]}\n", answer, n)
	}
	issues := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q, ", strings.Repeat("i", 490)), 10), ", ")
	script.WriteString("jobs:\n  complexity: [{answer: {level: MEDIUM, reason: much, subtask_count: 1}}]\n")
	fmt.Fprintf(&script, "  verify: [{answer: {passed: true, score: 0.9, issues: [%s], feedback: More.}}]\n", issues)
	dir := filesOf(t, map[string]string{
		"agent.yaml": `name: a
instructions: Answer.
quality: {enabled: true, iterations: 2, retry: {max_attempts_default: 10}}
task: {kind: drafting}
doom_loop: {enabled: false}
stall: {enabled: false}
`, "script.yaml": script.String(),
	})
	got := harnesstest.Call(t, nil, "", "run", "--agent", dir+"/agent.yaml", "--model", "script:"+dir+"/script.yaml", "--workspace", t.TempDir(),
		"--data", t.TempDir(), "--run-id", "r", "--output", "jsonl", "Write.")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	var result struct {
		Status, Answer string
		Reason         struct{ Kind string }
		Quality        struct{ Attempts, Delivered int }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if result.Status != "DONE" || result.Reason.Kind != "agent_done" || result.Quality.Attempts != attempts || result.Quality.Delivered != attempts ||
		!strings.HasPrefix(result.Answer, fmt.Sprintf("Answer %d. ", attempts-1)) {
		t.Errorf("%s", lines[len(lines)-1])
	}
}
