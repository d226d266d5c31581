package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// against runs a goal with a strict OpenAI-compatible server as the model and
// returns what the server recorded.
func against(t *testing.T, args []string, replies ...modeltest.Reply) (code int, result map[string]any, stderr, workspace string, requests []modeltest.ReceivedRequest) {
	t.Helper()
	server := modeltest.NewServer(t, replies...)
	workspace = t.TempDir()
	env := environment("OPENAI_BASE_URL="+server.BaseURL(), "OPENAI_API_KEY=sk-not-to-be-seen")
	args = append([]string{"run", "--workspace", workspace, "--model", "openai:test-model", "--output", "json"}, args...)
	code, stdout, stderr := newHome(t).start(env, append(args, "do it")...).wait()
	if strings.Contains(stdout+stderr, "sk-not-to-be-seen") {
		t.Error("the key is in the output")
	}
	for i, r := range server.Requests() {
		if r.Refused != "" {
			t.Errorf("request %d was refused: %s\n%s", i, r.Refused, r.Body)
		}
	}
	return code, object(t, stdout), stderr, workspace, server.Requests()
}

func call(id, name, arguments string) modeltest.Call {
	return modeltest.Call{ID: id, Name: name, Arguments: arguments}
}

func calls(c ...modeltest.Call) modeltest.Reply {
	return modeltest.Reply{Calls: c, Usage: &modeltest.Usage{Input: 100, Output: 10, Cached: 50}}
}

var complete = calls(call("fin", "work_complete", `{"summary":"all done"}`))

// TestStrictServerCompletesATask has every request judged by a server that
// refuses invalid conversations.
func TestStrictServerCompletesATask(t *testing.T) {
	for name, more := range map[string][]string{"streaming": nil, "plain": {"--no-stream"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, result, _, workspace, requests := against(t, more,
				calls(call("a", "write_file", `{"path":"notes/one.txt","content":"one"}`), call("b", "list_directory", `{"path":"."}`)),
				calls(call("c", "read_file", `{"path":"notes/one.txt"}`), call("d", "read_file", `{"path":"notes/none.txt"}`), call("e", "find_files", `{"pattern":"**/*.txt"}`)),
				calls(call("f", "edit_file", `{"path":"notes/one.txt","old":"one","new":"two"}`)),
				complete)
			if code != 0 || result["status"] != "DONE" || result["accepted"] != true || result["summary"] != "all done" {
				t.Errorf("exit %d, %v", code, result)
			}
			if content, err := os.ReadFile(filepath.Join(workspace, "notes", "one.txt")); err != nil || string(content) != "two" {
				t.Errorf("the file holds %q, %v", content, err)
			}
			if len(requests) != 4 || result["turn_count"] != 4.0 || result["tool_calls"] != 7.0 {
				t.Errorf("%d requests, result %v", len(requests), result)
			}
			if usage := result["usage"].(map[string]any); usage["input_tokens"] != 400.0 || usage["output_tokens"] != 40.0 {
				t.Errorf("usage %v", usage)
			}
			last := string(requests[3].Body)
			for _, want := range []string{`"tool_call_id":"d"`, `notes/one.txt`, "do it"} {
				if !strings.Contains(last, want) {
					t.Errorf("the last request lacks %s:\n%s", want, last)
				}
			}
		})
	}
}

// TestModelGarbageNeverEndsARun feeds the loop what models get wrong.
func TestModelGarbageNeverEndsARun(t *testing.T) {
	t.Parallel()
	code, result, _, _, requests := against(t, nil,
		calls(call("a", "read_file", `{"path": `)),
		calls(call("a", "read_fil", `{"path":"x"}`)),
		calls(call("b", "read_file", `{"path":7}`)),
		calls(call("", "", `[]`)),
		calls(call("c", "write_file", `{"path":"../../etc/escaped","content":"x"}`)),
		modeltest.Reply{Text: ""},
		modeltest.Reply{Text: "cut", Calls: []modeltest.Call{call("d", "read_file", `{"path":"x`)}, FinishReason: "length"},
		modeltest.Reply{Text: "I am done."},
		complete)
	if code != 0 || result["status"] != "DONE" {
		t.Fatalf("exit %d, %v", code, result)
	}
	for i, want := range map[int]string{2: "read_file", 3: "path", 7: "cut off", 8: "work_complete"} {
		if !strings.Contains(string(requests[i].Body), want) {
			t.Errorf("request %d does not say %q:\n%s", i, want, requests[i].Body)
		}
	}
	if strings.Count(string(requests[2].Body), `"tool_call_id":"a"`) != 1 {
		t.Errorf("the repeated call id was not replaced:\n%s", requests[2].Body)
	}
}

// TestTroubleIsTriedAgain lets the provider fail in every way that may pass.
func TestTroubleIsTriedAgain(t *testing.T) {
	t.Parallel()
	at := map[string]string{"Retry-After": "0"}
	code, result, _, _, requests := against(t, nil,
		modeltest.Reply{Status: 429, Header: at}, modeltest.Reply{Status: 500, Header: at},
		modeltest.Reply{Text: "I was going to say something long", Fault: modeltest.FaultCut},
		complete)
	if code != 0 || len(requests) != 4 || result["turn_count"] != 1.0 {
		t.Errorf("exit %d, %d requests, %v", code, len(requests), result)
	}
}

// TestProviderRefusal ends the run with the provider's reason.
func TestProviderRefusal(t *testing.T) {
	t.Parallel()
	code, result, _, _, _ := against(t, nil, modeltest.Reply{Status: 401, ErrorCode: "invalid_api_key", ErrorMessage: "wrong key"})
	reason := result["reason"].(map[string]any)
	if code != 2 || result["status"] != "FAILED" || reason["kind"] != "provider_error" {
		t.Errorf("exit %d, %v", code, result)
	}
}

// TestApprovalParks waits for a person, across processes.
func TestApprovalParks(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(t,
		calls(call("ask-me", "run_command", `{"command":"echo ran > out"}`)),
		complete)
	env := environment("OPENAI_BASE_URL=" + server.BaseURL())
	workspace, home := t.TempDir(), newHome(t)
	agent := filepath.Join(t.TempDir(), "agent.yaml") // commands with network ask at every level of confinement
	if err := os.WriteFile(agent, []byte("sandbox: {network: all}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := home.start(env, "run", "--run-id", "r1", "--workspace", workspace, "--model", "openai:m", "--agent", agent, "--output", "json", "go").wait()
	result := object(t, stdout)
	if code != 4 || result["status"] != "PARKED" || result["reason"].(map[string]any)["kind"] != "approval" || !strings.Contains(stderr, "harness approve") {
		t.Fatalf("exit %d, %v\n%s", code, result, stderr)
	}
	if _, err := os.Stat(filepath.Join(workspace, "out")); err == nil {
		t.Fatal("the command ran without an approval")
	}
	if code, _, stderr := home.start(env, "approve", "r1", "ask-me").wait(); code != 0 {
		t.Fatalf("approve: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := home.start(env, "approve", "r1", "unknown").wait(); code != 1 || !strings.Contains(stderr, "unknown") {
		t.Errorf("approve of an unknown call: exit %d\n%s", code, stderr)
	}
	code, stdout, _ = home.carryOn(env, "r1")
	if result := object(t, stdout); code != 0 || result["status"] != "DONE" || result["turn_count"] != 2.0 {
		t.Errorf("resume: exit %d, %v", code, result)
	}
	if _, err := os.Stat(filepath.Join(workspace, "out")); err != nil {
		t.Error("the approved command did not run")
	}
}
