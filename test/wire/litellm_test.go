//go:build wire

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// upstreams are the wires on which LiteLLM reaches its models, with the parameters of the models in its
// configuration: chat is not replaced by responses, and a response is not stored.
var upstreams = map[string]string{
	"chat":      "model: openai/test-model, use_chat_completions_api: true",
	"messages":  "model: anthropic/test-model",
	"responses": "model: openai/responses/test-model, store: false",
}

// written is the text that the agent writes: all that JSON escapes, and characters of more than two bytes.
const written = "a \"quote\", a \\ and a\ttab\n{\"id\": 9007199254740993, \"of\": [\"é\", \"漢\", \"😀\"]}\n"

// TestLiteLLM has the whole binary work through LiteLLM's proxy, on each of its three wires to the proxy and
// on each wire from there to a stand-in of the provider. A task has four turns: two calls at the same time, a
// file that is written, one that is read again, and the end.
func TestLiteLLM(t *testing.T) {
	harness := program.Path(t)
	servers := map[string]*modeltest.Server{}
	for upstream := range upstreams {
		servers[upstream] = modeltest.NewServerFunc(t, task)
		servers[upstream].Temper.Members = []string{"max_tokens", "prompt_cache_key"} // of the other wires
	}
	address := liteLLM(t, servers)
	catalogue := filepath.Join(t.TempDir(), "catalogue.yaml")
	if err := os.WriteFile(catalogue, []byte(fmt.Sprintf(`providers:
  - {name: on-chat, wire: chat, address: "%[1]s/v1", key_variable: PROXY_KEY}
  - {name: on-messages, wire: messages, address: "%[1]s", key_variable: PROXY_KEY}
  - {name: on-responses, wire: responses, address: "%[1]s/v1", key_variable: PROXY_KEY}
`, address)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wire := range []string{"chat", "messages", "responses"} {
		for upstream := range upstreams {
			for _, more := range [][]string{nil, {"--no-stream"}} {
				t.Run(strings.Join(append([]string{wire, "to", upstream}, more...), " "), func(t *testing.T) {
					throughLiteLLM(t, harness, append([]string{"--catalogue", catalogue, "--model", "on-" + wire + ":to-" + upstream}, more...))
				})
			}
		}
	}
	for upstream, s := range servers {
		path := map[string]string{"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}[upstream]
		for _, r := range s.Requests() {
			if r.Path != path || r.Refused != "" {
				t.Errorf("%s: %s %s", upstream, r.Path, r.Refused)
			}
		}
	}
}

// throughLiteLLM runs the task with a model and checks its end, its files and its usage.
func throughLiteLLM(t *testing.T, harness string, flags []string) {
	workspace := t.TempDir()
	for _, file := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(workspace, file), []byte("hello from "+file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"run", "--data", t.TempDir(), "--workspace", workspace, "--output", "json", "--mode", "execute"}, flags...)
	cmd := exec.CommandContext(t.Context(), harness, append(args, "Copy what a.txt and b.txt say.")...)
	cmd.Env = append(os.Environ(), "PROXY_KEY="+proxyKey)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var result struct {
		Status    string          `json:"status"`
		Accepted  bool            `json:"accepted"`
		Summary   string          `json:"summary"`
		TurnCount int             `json:"turn_count"`
		ToolCalls int             `json:"tool_calls"`
		Usage     json.RawMessage `json:"usage"`
	}
	if jerr := json.Unmarshal(out, &result); err != nil || jerr != nil {
		t.Fatalf("%v, %v: %s%s", err, jerr, out, &problems)
	}
	if result.Status != "DONE" || !result.Accepted || result.Summary != "Copied: "+written || result.TurnCount != 4 || result.ToolCalls != 5 {
		t.Errorf("%s%s", out, &problems)
	}
	if got, err := os.ReadFile(filepath.Join(workspace, "c.txt")); err != nil || string(got) != written {
		t.Errorf("c.txt: %q, %v", got, err)
	}
	var usage struct {
		Input     any  `json:"input_tokens"`
		Output    any  `json:"output_tokens"`
		Estimated bool `json:"estimated"`
	}
	if err := json.Unmarshal(result.Usage, &usage); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(usage.Input, usage.Output) != "480 120" || usage.Estimated {
		t.Errorf("usage %s, want that of the stand-in: four times 120 and 30", result.Usage)
	}
}

// task answers as a model that copies two files.
func task(r *modeltest.Request) modeltest.Reply {
	var results []string
	for _, m := range r.Messages {
		if m.Role == "tool" {
			results = append(results, m.Content)
		}
	}
	reply := modeltest.Reply{Usage: &modeltest.Usage{Input: 120, Output: 30}}
	call := func(tool string, arguments map[string]any) {
		text, _ := json.Marshal(arguments) // texts only
		reply.Calls = append(reply.Calls, modeltest.Call{ID: fmt.Sprintf("call_%d_%d", len(results), len(reply.Calls)), Name: tool, Arguments: string(text)})
	}
	switch len(results) {
	case 0:
		reply.Text = "I read both files: é, 漢, 😀."
		call("read_file", map[string]any{"path": "a.txt"})
		call("read_file", map[string]any{"path": "b.txt"})
	case 2:
		if !strings.Contains(results[0], "hello from a.txt") || !strings.Contains(results[1], "hello from b.txt") {
			reply.Text = fmt.Sprintf("These are not the files: %q.", results)
			break
		}
		call("write_file", map[string]any{"path": "c.txt", "content": written})
	case 3:
		reply.Text = "I read it again."
		call("read_file", map[string]any{"path": "c.txt"})
	default:
		call("work_complete", map[string]any{"summary": "Copied: " + written})
	}
	return reply
}

// lenient returns the address of a stand-in that also takes what services take and this project does not send:
// strict of a tool, and the index of a call.
func lenient(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := newProxy(func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		body, err := io.ReadAll(r.In.Body)
		if err == nil && len(body) > 0 {
			body, err = json.Marshal(withoutExtras(body))
		}
		if err != nil {
			t.Errorf("%s: %v", r.In.URL.Path, err)
		}
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	})
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections)
	return proxy.URL
}

// withoutExtras returns a request without the members that the stand-in refuses and services take.
func withoutExtras(body []byte) map[string]any {
	var request map[string]any
	_ = json.Unmarshal(body, &request) // the stand-in refuses such a body
	objects := func(list any) (all []map[string]any) {
		items, _ := list.([]any)
		for _, item := range items {
			if o, ok := item.(map[string]any); ok {
				all = append(all, o)
			}
		}
		return all
	}
	for _, tool := range objects(request["tools"]) {
		if strict, sent := tool["strict"]; sent && strict == nil {
			tool["strict"] = false
		}
		if function, ok := tool["function"].(map[string]any); ok {
			delete(function, "strict")
		}
	}
	for _, message := range objects(request["messages"]) {
		for _, call := range objects(message["tool_calls"]) {
			delete(call, "index")
		}
	}
	return request
}

const proxyKey = "sk-of-the-proxy"

// liteLLM starts LiteLLM's proxy until the end of the test, with a model for each stand-in, and returns its
// address.
func liteLLM(t *testing.T, servers map[string]*modeltest.Server) string {
	t.Helper()
	interpreter := environment(t, "requirements-litellm.txt")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil { // it cannot be given a listener
		t.Fatal(err)
	}
	var models strings.Builder
	for upstream, parameters := range upstreams {
		base := lenient(t, servers[upstream].MessagesURL())
		if upstream != "messages" {
			base += "/v1"
		}
		fmt.Fprintf(&models, "  - model_name: to-%s\n    litellm_params: {%s, api_base: %q, api_key: any}\n", upstream, parameters, base)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("model_list:\n"+models.String()+"general_settings: {master_key: "+proxyKey+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(interpreter), "litellm"), "--config", config, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--telemetry", "False")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	// Its table of models is that of the package, not one from the network.
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_USE_CHAT_COMPLETIONS_URL_FOR_ANTHROPIC_MESSAGES=True", "NO_PROXY=127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed at the end
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("LiteLLM printed:\n%.20000s", text)
		}
		_ = log.Close()
	})
	awaitPrinted(t, log.Name(), ended, func(text string) bool { return strings.Contains(text, "Uvicorn running on") })
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}
