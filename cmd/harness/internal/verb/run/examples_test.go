//go:build linux

package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// exampleRun is a run of a copy of one of examples/agents.
type exampleRun struct {
	dir string
}

func newExample(t *testing.T, name string) exampleRun {
	t.Helper()
	return newExampleOf(t, filepath.Join("../../../../../examples/agents", name))
}

// newExampleOf copies a folder with an agent, its script and its workspace.
func newExampleOf(t *testing.T, from string) exampleRun {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return exampleRun{dir}
}

func (e exampleRun) run(t *testing.T, args ...string) harnesstest.Outcome {
	return harnesstest.Call(t, nil, "", append([]string{
		"run", "--data", e.dir + "/data", "--run-id", "r", "--agent", e.dir + "/agent.yaml", "--workspace", e.dir + "/workspace",
		"--model", "script:" + e.dir + "/script.yaml", "--output", "jsonl",
	}, args...)...)
}

func (e exampleRun) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.dir, "workspace", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outcome is how a run ended.
type outcome struct {
	Status       string
	Accepted     bool
	Answer       string
	Coverage     struct{ Met, Total int }
	Deliverables []struct{ Title, Content string }
}

// ended is the result of a run, which has to be done and accepted.
func (e exampleRun) ended(t *testing.T, said harnesstest.Outcome) outcome {
	t.Helper()
	got := harnesstest.Call(t, nil, "", "show", "r", "--data", e.dir+"/data", "--output", "json")
	var run struct{ Result outcome }
	if err := json.Unmarshal([]byte(got.Out), &run); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	o := run.Result
	if said.Code != 0 || o.Status != "DONE" || !o.Accepted || o.Coverage.Total == 0 || o.Coverage.Met != o.Coverage.Total {
		t.Fatalf("%+v\n%s\n%s", o, said.Out, said.Err)
	}
	return o
}

func TestTheExamplesAreWithoutAProblem(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../../examples/agents/*/*.yaml")
	if err != nil || len(files) != 11 {
		t.Fatalf("%v, %v", files, err)
	}
	files = append(files, "../../../../../examples/agent.yaml", "../../../../../examples/script.yaml")
	if got := harnesstest.Call(t, nil, "", append([]string{"agent", "check"}, files...)...); got.Code != 0 || strings.Count(got.Out, ": OK (") != len(files) {
		t.Errorf("%+v", got)
	}
}

func TestTheCodingExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	e := newExample(t, "coding")
	said := e.run(t, "--allow", "run_command", "Mend the prices.")
	o := e.ended(t, said)
	if !strings.Contains(e.file(t, "price.sh"), "count / 10") || !strings.Contains(o.Answer, "The cause was") {
		t.Errorf("%+v\n%s", o, e.file(t, "price.sh"))
	}
	for _, want := range []string{"test-first", "Nothing is deleted recursively", "contract_not_satisfied"} {
		if !strings.Contains(said.Out, want) {
			t.Errorf("nothing of %q in\n%s", want, said.Out)
		}
	}
}

func TestTheResearchExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	e := newExample(t, "research")
	said := e.run(t, "Why does the ferry carry more people?")
	o := e.ended(t, said)
	if len(o.Deliverables) != 1 || !strings.Contains(o.Deliverables[0].Content, "63,000 in 2023 [2]") {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(said.Out, "stop.rejected") {
		t.Errorf("the end without an audit was taken:\n%s", said.Out)
	}
}

func TestTheDataExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	e := newExample(t, "data")
	if got := e.run(t, "What was sold in each shop?"); got.Code != 4 || !strings.Contains(got.Out, "ask_user") {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"send", "r", "--mode", "execute"}, {"answer", "r", "Go ahead."}} {
		if got := harnesstest.Call(t, nil, "", append(args, "--data", e.dir+"/data")...); got.Code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	o := e.ended(t, harnesstest.Call(t, nil, "", "resume", "r", "--data", e.dir+"/data", "--output", "jsonl"))
	if !json.Valid([]byte(e.file(t, "result.json"))) || !strings.Contains(e.file(t, "summary.md"), "40.00") {
		t.Errorf("%+v", o)
	}
}

// TestTheReviewExample: the first review is sent back, the second is accepted, and its quote is found.
func TestTheReviewExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	e := newExample(t, "review")
	said := e.run(t, "Review the change.")
	got := harnesstest.Call(t, nil, "", "show", "r", "--data", e.dir+"/data", "--output", "json")
	var run struct {
		Result struct {
			Status       string
			Accepted     bool
			Answer       string
			Deliverables []struct{ Kind, Title string }
			Quality      struct {
				Kind, Level         string
				Attempts, Delivered int
				Combined            float64
			}
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &run); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	r := run.Result
	if said.Code != 0 || r.Status != "DONE" || !r.Accepted || len(r.Deliverables) != 1 || r.Deliverables[0].Kind != "finding" || !strings.Contains(r.Answer, "One finding") {
		t.Fatalf("%+v\n%s\n%s", r, said.Out, said.Err)
	}
	if q := r.Quality; q.Kind != "review" || q.Level != "COMPLEX" || q.Attempts != 2 || q.Delivered != 2 || q.Combined != 0.95 {
		t.Errorf("%+v", q)
	}
	for _, want := range []string{`"plan":"Review each line of the change"`, "Contract failed", "[security] No finding names a line", `"artifact_counts":{"finding":1}`} {
		if !strings.Contains(said.Out, want) {
			t.Errorf("nothing of %q in\n%s", want, said.Out)
		}
	}
}
