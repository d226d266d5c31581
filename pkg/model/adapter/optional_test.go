package adapter_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// answers are whole answers of the wires.
var answers = map[string]string{
	"chat":      `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`,
	"responses": `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi."}]}]}`,
	"messages":  `{"type":"message","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn"}`,
}

// strictServer answers a request that has a member anywhere with a refusal.
func strictServer(t *testing.T, wire, member string, status int, refusal string) adapter.Endpoint {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) {
			t.Errorf("the request is not JSON: %v", err)
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), `"`+member+`":`) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, refusal)
			return
		}
		_, _ = io.WriteString(w, answers[wire])
	}))
	t.Cleanup(s.Close)
	return adapter.Endpoint{BaseURL: s.URL, APIKey: "k", HTTPClient: s.Client()}
}

// open returns the provider of a wire with all of its optional members.
func open(t *testing.T, wire string, e adapter.Endpoint) model.Provider {
	t.Helper()
	var p model.Provider
	var err error
	switch wire {
	case "chat":
		p, err = openai.New(openai.Config{Endpoint: e, CacheKey: true, Effort: openai.EffortThinking})
	case "responses":
		p, err = responses.New(responses.Config{Endpoint: e})
	default:
		p, err = anthropic.New(anthropic.Config{Endpoint: e, Thinking: func(string) anthropic.Thinking { return anthropic.Thinking{Mode: anthropic.ThinkingAdaptive} }})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRefusedMembersAreLeftOut: a member that a service refuses, in the words of that service,
// costs one request, and the next one goes without it.
func TestRefusedMembersAreLeftOut(t *testing.T) {
	const openAI = `{"error":{"message":"Unsupported parameter: 'MEMBER' is not supported with this model.","type":"invalid_request_error","param":"MEMBER","code":"unsupported_parameter"}}`
	for name, c := range map[string]struct {
		wire, sent, member string
		status             int
		refusal            string
	}{
		"stream_options, OpenAI":     {"chat", "stream_options", "stream_options", 400, strings.ReplaceAll(openAI, "MEMBER", "stream_options")},
		"stream_options, pydantic":   {"chat", "stream_options", "stream_options", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}}]}`},
		"stream_options, Go":         {"chat", "stream_options", "stream_options", 400, `{"error":"json: unknown field \"stream_options\""}`},
		"stream_options, vLLM":       {"chat", "stream_options", "stream_options", 400, `{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]","code":400}`},
		"stream_options, by a part":  {"chat", "stream_options", "stream_options", 400, `{"error":{"message":"include_usage may not be set here"}}`},
		"stream_options, plain text": {"chat", "stream_options", "stream_options", 400, `Invalid request: stream_options`},
		"prompt_cache_key":           {"chat", "prompt_cache_key", "prompt_cache_key", 400, `{"error":{"message":"Unrecognized request argument supplied: prompt_cache_key"}}`},
		"an effort":                  {"chat", "reasoning_effort", "reasoning_effort", 400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`},
		"an effort, by its value":    {"chat", "reasoning_effort", "reasoning_effort", 400, `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'high' with this model."}}`},
		"thinking":                   {"chat", "thinking", "reasoning_effort", 400, `{"error":{"message":"thinking: Extra inputs are not permitted"}}`},
		"a key of the cache":         {"responses", "prompt_cache_key", "prompt_cache_key", 400, strings.ReplaceAll(openAI, "MEMBER", "prompt_cache_key")},
		"an effort in reasoning":     {"responses", "effort", "reasoning.effort", 400, strings.ReplaceAll(openAI, "MEMBER", "reasoning.effort")},
		"marks of the cache":         {"messages", "cache_control", "cache_control", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"system.0.cache_control: Extra inputs are not permitted"}}`},
		"thinking of Claude":         {"messages", "thinking", "thinking", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"adaptive thinking is not supported on this model"}}`},
		"output_config":              {"messages", "output_config", "thinking", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"output_config: Extra inputs are not permitted"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, c.wire, strictServer(t, c.wire, c.sent, c.status, c.refusal))
			req := modeltest.Conversation(true)
			req.Effort, req.CacheKey = harnessv1.Effort_EFFORT_HIGH, "key"
			_, err := p.Complete(t.Context(), req, nil)
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Adjustment != harnessv1.Adjustment_ADJUSTMENT_NO_MEMBER || failed.Member != c.member {
				t.Fatalf("the first request fails with %+v, want the adjustment without %s", err, c.member)
			}
			if !strings.Contains(failed.Message, "without "+c.member) {
				t.Errorf("the message %q does not name the member", failed.Message)
			}
			req.Adjustments = []*harnessv1.ModelAdjustment{{Adjustment: failed.Adjustment, Member: failed.Member}}
			if r, err := p.Complete(t.Context(), req, nil); err != nil || r.Text != "Hi." {
				t.Errorf("without %s the answer is %v, %v", c.member, r, err)
			}
		})
	}
}

// TestOtherRefusalsLeaveMembersIn: a refusal that blames no optional member of the request.
func TestOtherRefusalsLeaveMembersIn(t *testing.T) {
	for name, c := range map[string]struct{ wire, refusal string }{
		"the model":              {"chat", `{"error":{"message":"The model m does not exist"}}`},
		"a word of the language": {"chat", `{"error":{"message":"messages.3: thinking about it, the content is empty"}}`},
		"part of a word":         {"chat", `{"error":{"message":"my_stream_options_2 is unknown"}}`},
		"of another wire":        {"messages", `{"error":{"message":"stream_options: Extra inputs are not permitted"}}`},
		"a required one":         {"responses", `{"error":{"message":"Unsupported parameter: 'input'","param":"input"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, c.wire, strictServer(t, c.wire, "model", 400, c.refusal))
			req := modeltest.Conversation(true)
			req.Effort, req.CacheKey = harnessv1.Effort_EFFORT_HIGH, "key"
			var failed *model.Error
			if _, err := p.Complete(t.Context(), req, nil); !errors.As(err, &failed) || failed.Member != "" {
				t.Errorf("the request fails with %+v", err)
			}
		})
	}
}

// TestWhatIsStoredCanBeSent: a strict server of each wire takes a request after an answer and
// results that have all that services refuse.
func TestWhatIsStoredCanBeSent(t *testing.T) {
	hostile := []string{`{"a":"\ud99c"}`, `{"a":"\udc00\u0000"}`, `{"a":1,"a":2}`, `{"n":1e999}`, strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), `{"a`, "\x00", ""}
	for wire := range answers {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if fault := strictJSON(body); err != nil || fault != "" {
					t.Errorf("the request has %s: %v", fault, err)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answers[wire])
			}))
			t.Cleanup(s.Close)
			p := open(t, wire, adapter.Endpoint{BaseURL: s.URL, APIKey: "k", HTTPClient: s.Client()})
			req := modeltest.Conversation(true)
			last := req.Messages[len(req.Messages)-1].GetId()
			for i, arguments := range hostile {
				last += 2
				call := adapter.ToolCall("call\x00"+strconv.Itoa(i), "na\x00me", arguments)
				req.Messages = append(req.Messages,
					&harnessv1.Message{Id: last - 1, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("a\x00b"), ToolCalls: []*harnessv1.ToolCall{call}},
					&harnessv1.Message{Id: last, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call.GetId(), Content: content.Inline("r\x00\u2028" + arguments)})
			}
			if _, err := p.Complete(t.Context(), req, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
