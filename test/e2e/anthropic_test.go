package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestAnthropicCompletesATask has every request judged by a server that refuses
// what the Messages protocol does not allow.
func TestAnthropicCompletesATask(t *testing.T) {
	for name, more := range map[string][]string{"streaming": nil, "plain": {"--no-stream"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			used := &modeltest.Usage{Input: 1000, Output: 10, Cached: 600, Written: 300}
			server := modeltest.NewServer(t,
				modeltest.Reply{Text: "Both.", Usage: used, Quirks: modeltest.Quirks{Thinking: "Which first?"}, Calls: []modeltest.Call{
					call("toolu_a", "write_file", `{"path":"one.txt","content":"one"}`), call("toolu_b", "read_file", `{"path":"none.txt"}`)}},
				modeltest.Reply{Text: "I am done.", Usage: used},
				modeltest.Reply{Usage: used, Calls: []modeltest.Call{call("toolu_c", "work_complete", `{"summary":"all done"}`)}})
			server.Key = "sk-ant-not-to-be-seen"
			workspace := t.TempDir()
			env := environment("ANTHROPIC_BASE_URL="+server.MessagesURL(), "ANTHROPIC_API_KEY="+server.Key)
			args := append([]string{"run", "--workspace", workspace, "--model", "anthropic:claude-haiku-4-5", "--output", "json"}, more...)
			code, stdout, stderr := newHome(t).start(env, append(args, "do it")...).wait()
			result := object(t, stdout)
			if code != 0 || result["status"] != "DONE" || result["accepted"] != true || result["summary"] != "all done" || result["turn_count"] != 3.0 {
				t.Errorf("exit %d, %v\n%s", code, result, stderr)
			}
			if strings.Contains(stdout+stderr, server.Key) {
				t.Error("the key is in the output")
			}
			if content, err := os.ReadFile(filepath.Join(workspace, "one.txt")); err != nil || string(content) != "one" {
				t.Errorf("the file holds %q, %v", content, err)
			}
			// 3 × (100 × $1 + 600 × $0.10 + 300 × $1.25 + 10 × $5) / 1,000,000.
			usage := result["usage"].(map[string]any)
			if usage["input_tokens"] != 3000.0 || usage["cached_input_tokens"] != 1800.0 || usage["output_tokens"] != 30.0 || usage["cost_micro_usd"] != 3*585.0 {
				t.Errorf("usage %v", usage)
			}
			for i, r := range server.Requests() {
				if r.Refused != "" {
					t.Errorf("request %d was refused: %s\n%s", i, r.Refused, r.Body)
				}
			}
		})
	}
}

// events are the lines of a run's output of one kind.
func eventsOf(t *testing.T, stdout, kind string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e["type"] == kind {
			list = append(list, e["data"].(map[string]any))
		}
	}
	return list
}

const mixed = `
model: openai:gpt-4o
fallback_models: [openai:tiny, anthropic:claude-haiku-4-5]
`

// TestAnotherProviderTakesTheRunOver begins a run with one provider, which then
// fails permanently. The next one has too small a window and is not called; the third
// continues with a conversation whose ids its protocol does not allow.
func TestAnotherProviderTakesTheRunOver(t *testing.T) {
	t.Parallel()
	down := modeltest.Reply{Status: 500, Header: map[string]string{"Retry-After": "0"}}
	first := modeltest.NewServer(t, calls(call("functions.write_file:0", "write_file", `{"path":"one.txt","content":"one"}`)), down, down, down, down, down)
	second := modeltest.NewServer(t, modeltest.Reply{
		Calls: []modeltest.Call{call("toolu_fin", "work_complete", `{"summary":"taken over"}`)}, Usage: &modeltest.Usage{Input: 1000, Output: 10}})
	dir := t.TempDir()
	agent, models := write(t, dir, "agent.yaml", mixed), write(t, dir, "models.yaml", "models: [{ref: openai:tiny, window: 100}]")
	env := environment("OPENAI_BASE_URL="+first.BaseURL(), "ANTHROPIC_BASE_URL="+second.MessagesURL(), "HARNESS_CATALOGUE="+models)
	code, stdout, stderr := newHome(t).start(env, "run", "--workspace", t.TempDir(), "--agent", agent, "--output", "jsonl", "do it").wait()
	if code != 0 || !strings.Contains(stdout, `"summary":"taken over"`) {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	var answered, failed []string
	for _, e := range eventsOf(t, stdout, "model.response") {
		answered = append(answered, e["model"].(string))
	}
	retries := eventsOf(t, stdout, "model.retry")
	for _, e := range retries {
		failed = append(failed, e["model"].(string))
	}
	if want := []string{"openai:gpt-4o", "anthropic:claude-haiku-4-5"}; !slices.Equal(answered, want) {
		t.Errorf("%v answered, want %v", answered, want)
	}
	if want := []string{"openai:gpt-4o", "openai:gpt-4o", "openai:gpt-4o", "openai:gpt-4o", "openai:gpt-4o", "openai:tiny"}; !slices.Equal(failed, want) {
		t.Fatalf("%v failed, want %v", failed, want)
	}
	if why := retries[5]["error"].(string); !strings.Contains(why, "skipped: it reads at most 100 tokens, and the prompt has about") {
		t.Errorf("openai:tiny was passed over with %q", why)
	}
	if n := len(first.Requests()); n != 6 {
		t.Errorf("the first provider got %d requests, want 6", n)
	}
	if requests := second.Requests(); len(requests) != 1 || requests[0].Refused != "" || !strings.Contains(string(requests[0].Body), `"x-functions_2ewrite_5ffile_3a0"`) {
		t.Errorf("the other provider got %+v", requests)
	}
}

// TestATakenOverTurnAsksOnWhereItWas kills the process while the fallback model
// writes. The next one does not go back to the provider that was given up.
func TestATakenOverTurnAsksOnWhereItWas(t *testing.T) {
	t.Parallel()
	down := modeltest.Reply{Status: 500, Header: map[string]string{"Retry-After": "0"}}
	first := modeltest.NewServer(t, down, down, down, down, down)
	second := modeltest.NewServer(t, modeltest.Reply{Text: "I was about to say something", Fault: modeltest.FaultSilence},
		modeltest.Reply{Calls: []modeltest.Call{call("toolu_fin", "work_complete", `{"summary":"taken over"}`)}})
	agent := write(t, t.TempDir(), "agent.yaml", strings.Replace(mixed, "openai:tiny, ", "", 1))
	env := environment("OPENAI_BASE_URL="+first.BaseURL(), "ANTHROPIC_BASE_URL="+second.MessagesURL())
	home := newHome(t)
	p := home.start(env, "run", "--run-id", "r1", "--workspace", t.TempDir(), "--agent", agent, "--output", "jsonl", "do it")
	<-second.Arrived()
	home.crash(p)
	code, stdout, stderr := home.start(env, "resume", "--output", "json", "r1").wait()
	if result := object(t, stdout); code != 0 || result["summary"] != "taken over" || result["turn_count"] != 1.0 {
		t.Errorf("exit %d, %v\n%s", code, result, stderr)
	}
	if a, b := len(first.Requests()), len(second.Requests()); a != 5 || b != 2 {
		t.Errorf("%d and %d requests, want 5 and 2", a, b)
	}
}
