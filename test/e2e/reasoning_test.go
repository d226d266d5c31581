package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// reasoned is the answers of a run of three turns that reasons.
func reasoned() []modeltest.Reply {
	think := func(text string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: text}}
	}
	part := func(c modeltest.Call) modeltest.ReplyPart { return modeltest.ReplyPart{Call: &c} }
	usage := &modeltest.Usage{Input: 100, Output: 30, Cached: 50, Reasoning: 20}
	return []modeltest.Reply{
		{Parts: []modeltest.ReplyPart{think("First I look."), {Text: "Looking."}, part(call("callA0001", "list_directory", `{}`)), part(call("callB0001", "list_directory", `{"path":"."}`))}, Usage: usage},
		{Parts: []modeltest.ReplyPart{think("Then I write."), part(call("callC0001", "write_file", `{"path":"a.txt","content":"a"}`))}, Usage: usage},
		{Parts: []modeltest.ReplyPart{think("Done."), part(call("callD0001", "work_complete", `{"summary":"all done"}`))}, Usage: usage},
	}
}

// TestFlagshipsReason runs today's models of each wire as people name them. The server
// refuses a request that does not bring back what it must.
func TestFlagshipsReason(t *testing.T) {
	for name, c := range map[string]struct {
		model  string
		temper modeltest.Temper
		env    func(*modeltest.Server) string
		path   string
		args   []string
	}{
		"Responses":              {"openai:gpt-5.5", modeltest.Temper{}, func(s *modeltest.Server) string { return "OPENAI_BASE_URL=" + s.BaseURL() }, "/v1/responses", []string{"--effort", "high"}},
		"Responses, plain":       {"openai:gpt-5.5", modeltest.Temper{}, func(s *modeltest.Server) string { return "OPENAI_BASE_URL=" + s.BaseURL() }, "/v1/responses", []string{"--no-stream"}},
		"Messages":               {"anthropic:claude-opus-5-5", modeltest.Temper{}, func(s *modeltest.Server) string { return "ANTHROPIC_BASE_URL=" + s.MessagesURL() }, "/v1/messages", []string{"--effort", "high"}},
		"Messages, plain":        {"anthropic:claude-opus-5-5", modeltest.Temper{}, func(s *modeltest.Server) string { return "ANTHROPIC_BASE_URL=" + s.MessagesURL() }, "/v1/messages", []string{"--no-stream"}},
		"chat, demands":          {"deepseek:deepseek-chat", modeltest.TemperDeepSeek(), func(s *modeltest.Server) string { return "DEEPSEEK_BASE_URL=" + s.BaseURL() }, "/v1/chat/completions", nil},
		"chat, demands in calls": {"moonshot:kimi-k2", modeltest.TemperMoonshot(), func(s *modeltest.Server) string { return "MOONSHOT_BASE_URL=" + s.BaseURL() }, "/v1/chat/completions", nil},
		"chat, chunks":           {"mistral:magistral", modeltest.TemperMistral(), func(s *modeltest.Server) string { return "MISTRAL_BASE_URL=" + s.BaseURL() }, "/v1/chat/completions", nil},
		"chat, refuses":          {"groq:qwen3", modeltest.TemperGroq(), func(s *modeltest.Server) string { return "GROQ_BASE_URL=" + s.BaseURL() }, "/v1/chat/completions", nil},
		"chat, unknown fields":   {"openai:test-model", modeltest.Temper{}, func(s *modeltest.Server) string { return "OPENAI_BASE_URL=" + s.BaseURL() }, "/v1/chat/completions", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewServer(t, reasoned()...)
			s.Temper = c.temper
			args := append([]string{"run", "--workspace", t.TempDir(), "--model", c.model, "--output", "json"}, c.args...)
			code, stdout, stderr := newHome(t).start(environment(c.env(s)), append(args, "do it")...).wait()
			if code != 0 {
				t.Fatalf("exit %d: %s%s", code, stdout, stderr)
			}
			requests := s.Requests()
			for i, r := range requests {
				if r.Refused != "" || r.Path != c.path {
					t.Errorf("request %d to %s was refused: %q", i+1, r.Path, r.Refused)
				}
			}
			if len(requests) != 3 {
				t.Errorf("%d requests, want 3", len(requests))
			}
			if usage := object(t, stdout)["usage"].(map[string]any); usage["input_tokens"] != 300.0 || usage["output_tokens"] != 90.0 || usage["cached_input_tokens"] != 150.0 || usage["reasoning_tokens"] != 60.0 {
				t.Errorf("usage %v", usage)
			}
		})
	}
}

// TestAServerThatSpeaksChatAloneWorksOn: one request finds out, for the run.
func TestAServerThatSpeaksChatAloneWorksOn(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServer(t, calls(call("a", "list_directory", `{}`)), calls(call("b", "list_directory", `{}`)), complete)
	target, err := url.Parse(s.MessagesURL())
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/responses") {
			refusals++
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex() // else the answer's first byte ends the proxy's reading
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	args := []string{"run", "--workspace", t.TempDir(), "--model", "openai:gpt-5.5", "--output", "jsonl", "do it"}
	code, stdout, stderr := newHome(t).start(environment("OPENAI_BASE_URL="+front.URL+"/v1"), args...).wait()
	if code != 0 || refusals != 1 || len(s.Requests()) != 3 {
		t.Fatalf("exit %d, %d refusals, %d requests: %s", code, refusals, len(s.Requests()), stderr)
	}
	retries := eventsOf(t, stdout, "model.retry")
	if len(retries) != 1 {
		t.Fatalf("%d retries", len(retries))
	}
	if text, err := json.Marshal(retries[0]); err != nil || !strings.Contains(string(text), "wire_chat") {
		t.Errorf("the retry is %s (%v)", text, err)
	}
}
