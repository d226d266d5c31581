//go:build linux

package run_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
)

// eventLine is a line of jsonl.
type eventLine struct {
	Type    string
	Version int
	Data    struct {
		After      int `json:"tokens_after"`
		Before     int `json:"tokens_before"`
		Strategies []string
	}
}

// reading returns a script that reads ten parts of a file.
func reading() string {
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range 10 {
		fmt.Fprintf(&script, "  - {text: Part %d., calls: [{name: read_file, arguments: {path: long.txt, offset: %d, limit: 250}}]}\n", i, 250*i+1)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	return script.String()
}

// TestACompactedRunIsSeen: a run with a small window prints its passes, has spans of them,
// and shows what the model was sent before and after.
func TestACompactedRunIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p := harnesstest.NewPlace(t, reading())
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d of the file\n", i)
	}
	if err := os.WriteFile(filepath.Join(p.Workspace, "long.txt"), []byte(long.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	agent := harnesstest.Write(t, filepath.Join(filepath.Dir(p.Script), "agent.yaml"), "name: reader\ncontext: {max_input_tokens: 12000, strategies: [clear, drop]}\n")
	env, collector := collecting(t)
	got := harnesstest.Call(t, env, "", p.Run("--run-id", "r", "--agent", agent, "--output", "jsonl", "read")...)
	if got.Code != 0 {
		t.Fatalf("exit code %d\n%s", got.Code, got.Err)
	}
	var passes, responses []eventLine
	for line := range strings.Lines(got.Out) {
		var e eventLine
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "compaction.completed":
			passes = append(passes, e)
		case "model.response":
			responses = append(responses, e)
		}
	}
	if len(passes) == 0 || len(responses) != 11 || passes[0].Data.Before <= passes[0].Data.After || len(passes[0].Data.Strategies) == 0 {
		t.Fatalf("%d passes, %d responses: %+v", len(passes), len(responses), passes)
	}
	spans := 0
	for _, s := range collector.Spans() {
		if s.Name == "compact" {
			spans++
			if s.Attributes["harness.compaction.tokens_before"] != int64(passes[spans-1].Data.Before) {
				t.Errorf("a span of %v", s.Attributes)
			}
		}
	}
	for _, line := range oteltest.Loose(collector.Spans()) {
		t.Error(line)
	}
	if spans != len(passes) {
		t.Errorf("%d spans of %d passes", spans, len(passes))
	}

	shows := func(version int) string {
		t.Helper()
		args := []string{"show", "r", "--context", "--data", p.Data}
		if version > 0 {
			args = append(args, "--version", fmt.Sprint(version))
		}
		shown := harnesstest.Call(t, nil, "", args...)
		if shown.Code != 0 || shown.Err != "" {
			t.Fatalf("%+v", shown)
		}
		return shown.Out
	}
	for i, r := range responses {
		text := shows(r.Version)
		if planned := strings.Contains(text, "\nplan "); planned != (r.Version > passes[0].Version) {
			t.Errorf("the request of response %d at version %d:\n%s", i+1, r.Version, text)
		}
		if strings.Count(text, "model → ") != i && r.Version < passes[0].Version {
			t.Errorf("the request of response %d has other calls:\n%s", i+1, text)
		}
	}
	if text := shows(0); !strings.Contains(text, "what the model would be sent next") || !strings.Contains(text, "work_complete") {
		t.Errorf("the newest version:\n%s", text)
	}
}
