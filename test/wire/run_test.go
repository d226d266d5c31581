//go:build wire

package wire

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// TestRun has the whole binary work against aimock: a task with two parallel
// tool calls, their results, and the end.
func TestRun(t *testing.T) {
	address := start(t)
	harness := program.Path(t)
	for name, more := range map[string][]string{
		"streaming": {"--model", "openai:gpt-4o"}, "plain": {"--model", "openai:gpt-4o", "--no-stream"},
		"Anthropic": {"--model", "anthropic:claude-sonnet-5-5"}, "Anthropic, plain": {"--model", "anthropic:claude-sonnet-5-5", "--no-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := t.TempDir()
			for _, file := range []string{"a.txt", "b.txt"} {
				if err := os.WriteFile(filepath.Join(workspace, file), []byte("hello\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"run", "--data", t.TempDir(), "--workspace", workspace, "--output", "json"}, more...)
			cmd := exec.CommandContext(t.Context(), harness, append(args, "What is in a.txt?")...)
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+address, "OPENAI_API_KEY=any",
				"ANTHROPIC_BASE_URL="+strings.TrimSuffix(address, "/v1"), "ANTHROPIC_API_KEY=any")
			out, err := cmd.Output()
			var result struct {
				Status    string `json:"status"`
				Accepted  bool   `json:"accepted"`
				Summary   string `json:"summary"`
				TurnCount int    `json:"turn_count"`
				ToolCalls int    `json:"tool_calls"`
			}
			if jerr := json.Unmarshal(out, &result); err != nil || jerr != nil {
				t.Fatalf("%v, %v: %s", err, jerr, out)
			}
			if result.Status != "DONE" || !result.Accepted || result.Summary != "It says hello." || result.TurnCount != 2 || result.ToolCalls != 3 {
				t.Errorf("%s", out)
			}
		})
	}
}
