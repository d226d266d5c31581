package openai

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

func TestEndings(t *testing.T) {
	for choice, want := range map[string]struct{ reason, refusal string }{
		`"message":{"content":"x"},"finish_reason":"stop"`:                        {"stop", ""},
		`"message":{"content":"x"},"finish_reason":"end_turn"`:                    {"stop", ""},
		`"message":{"content":"x"},"finish_reason":null`:                          {"stop", ""},
		`"message":{"content":"x"},"finish_reason":"model_length"`:                {"length", ""},
		`"message":{"content":"x"},"finish_reason":"MAX_TOKENS"`:                  {"length", ""},
		`"message":{"tool_calls":[{"id":"a"}]},"finish_reason":"function_call"`:   {"tool_calls", ""},
		`"message":{"content":"x"},"finish_reason":"content_filter"`:              {"content_filter", "content_filter"},
		`"message":{"content":"x"},"finish_reason":"sensitive"`:                   {"content_filter", "sensitive"},
		`"message":{"content":"x"},"finish_reason":"SAFETY"`:                      {"content_filter", "SAFETY"},
		`"message":{"content":"x"},"finish_reason":"content_filter: RECITATION"`:  {"content_filter", "content_filter: RECITATION"},
		`"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"`: {"content_filter", "refusal"},
		`"message":{"content":"x","refusal":""},"finish_reason":"stop"`:           {"stop", ""},
		`"message":{"content":"x","refusal":{}},"finish_reason":"stop"`:           {"stop", ""},
		`"message":{"content":"x"},"finish_reason":"a\nb"`:                        {"stop", ""},
		`"message":{"content":"x"},"finish_reason":"content_filter\nx"`:           {"content_filter", "content_filter x"},
		`"message":{},"finish_reason":"content_filter","content_filter_results":{"violence":{"filtered":true},"hate":{"filtered":true},"sexual":{"filtered":false}}`: {
			"content_filter", "content_filter: hate, violence",
		},
	} {
		resp, err := newDecoder(Reasoning{}).decode([]byte(`{"choices":[{` + choice + `}]}`))
		if err != nil {
			t.Errorf("%s: %v", choice, err)
			continue
		}
		if resp.FinishReason != want.reason || resp.Refusal != want.refusal {
			t.Errorf("%s ends with %q and %q, want %+v", choice, resp.FinishReason, resp.Refusal, want)
		}
	}
}

// TestRefusalIsBounded has a refusal that the model writes on and on.
func TestRefusalIsBounded(t *testing.T) {
	deltas := make([]string, 100)
	for i := range deltas {
		deltas[i] = `{"refusal":"` + strings.Repeat("nö ", 100) + `"}`
	}
	resp, _ := fold(t, Reasoning{}, append([]string{`{"content":"Well, "}`}, deltas...)...)
	if resp.Refusal != "refusal" || resp.FinishReason != "content_filter" {
		t.Errorf("refusal %q, finish reason %q", resp.Refusal, resp.FinishReason)
	}
	if n := len(resp.Text); n > maxRefusal+len("Well, ") || n < maxRefusal-4 || !strings.HasPrefix(resp.Text, "Well, nö nö") {
		t.Errorf("the text has %d bytes: %.40q", n, resp.Text)
	}
}

func TestUnfinishedResponses(t *testing.T) {
	for body, want := range map[string]struct {
		retryable, context bool
		says               string
	}{
		`{"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}`:                              {true, false, "error"},
		`{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}`: {true, false, "upstream"},
		`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`:                    {true, false, "insufficient_system_resource"},
		`{"choices":[{"delta":{},"finish_reason":"network_error"}]}`:                                   {true, false, "network_error"},
		`{"choices":[{"delta":{},"finish_reason":"abort"}]}`:                                           {true, false, "abort"},
		`{"choices":[{"delta":{},"finish_reason":"model_context_window_exceeded"}]}`:                   {false, true, "window"},
		`{"error":{"code":"insufficient_quota","message":"pay"}}`:                                      {false, false, "pay"},
		`{"object":"error","type":"insufficient_quota","message":"pay"}`:                               {false, false, "pay"},
		`{"code":"insufficient_quota","message":"pay"}`:                                                {false, false, "pay"},
		`{"object":"error"}`: {true, false, "error"},
		`{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`: {false, false, "(data_inspection_failed)"},
		`{"error":{"code":"content_filter","message":"no","innererror":{"content_filter_result":{"jailbreak":{"filtered":true,"detected":true}}}}}`: {
			false, false, "(content_filter: jailbreak)",
		},
	} {
		_, streamed := newDecoder(Reasoning{}).stream().Add("", []byte(body))
		_, plain := newDecoder(Reasoning{}).decode([]byte(strings.Replace(body, `"delta"`, `"message"`, 1)))
		for _, err := range []error{streamed, plain} {
			e := model.AsError(err)
			if err == nil || e.Retryable != want.retryable || e.ContextExceeded != want.context || !strings.Contains(e.Message, want.says) {
				t.Errorf("%s: %+v, want %+v", body, err, want)
			}
		}
	}
}

// gateway returns the error body of a gateway that passes on an error of a provider.
func gateway(raw string) string {
	return `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":` + strconv.Quote(raw) + `,"provider_name":"p","is_byok":false}},"user_id":"u"}`
}

func TestRefusedRequests(t *testing.T) {
	const (
		none      = harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
		responses = harnessv1.Adjustment_ADJUSTMENT_WIRE_RESPONSES
		opaque    = harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
	)
	for _, c := range []struct {
		status     int
		body       string
		adjustment harnessv1.Adjustment
		retryable  bool
		says       string
	}{
		{400, `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","param":"reasoning_effort"}}`, responses, false, ""},
		{404, `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","param":"model"}}`, responses, false, ""},
		{404, `{"error":{"message":"This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?"}}`, responses, false, ""},
		{400, `{"error":{"message":"This is not a chat model"}}`, responses, false, ""},
		{500, `{"error":{"message":"Use v1/responses."}}`, none, true, ""},
		{404, `{"error":{"message":"The model does not exist"}}`, none, false, ""},
		{400, `{"error":{"message":"The ` + "`reasoning_content`" + ` in the thinking mode must be passed back to the API."}}`, opaque, false, ""},
		{400, `{"error":{"message":"Missing reasoning_content field in the assistant message at message index 2."}}`, opaque, false, ""},
		{400, `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 4"}}`, opaque, false, ""},
		{422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":"x"}]}}`, opaque, false, ""},
		{422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"assistant","reasoning"],"msg":"Extra inputs are not permitted"}]}}`, opaque, false, ""},
		{422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}`, none, false, ""},
		{400, `{"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]"}}`, opaque, false, ""},
		{400, `{"error":{"message":"property 'reasoning' is unsupported"}}`, none, false, ""},
		{400, `{"error":{"message":"Unsupported value: 'reasoning_effort'"}}`, none, false, ""},
		{400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`, opaque, false, "missing"},
		{400, `{"error":{"message":"Function call is missing a thought_signature in functionCall parts."}}`, opaque, false, ""},
		{400, `{"error":{"message":"Corrupted thought signature."}}`, opaque, false, ""},
		{400, `{"error":{"message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`, opaque, false, ""},
		{400, gateway(`{"error":{"message":"messages.21.content.1: Invalid 'data' in 'redacted_thinking' block"}}`), opaque, false, "Provider returned error: messages.21"},
		{400, gateway("messages.1: thinking blocks cannot be modified."), opaque, false, ""},
		{400, gateway(`{"error":{"message":"This endpoint's maximum context length is 9 tokens"}}`), none, false, "exceeds the model's context window"},
		{429, gateway(`{"error":{"code":"insufficient_quota","message":"m"}}`), none, false, "quota is used up"},
		{429, gateway(`m is temporarily rate-limited upstream`), none, true, "upstream"},
		{400, `{"error":{"message":"Duplicate item found with id rs_0ad2. Remove duplicate items from your input and try again.","code":400}}`, opaque, false, ""},
		{400, `{"error":{"message":"Item 'rs_0ad2' of type 'reasoning' was provided without its required following item."}}`, opaque, false, ""},
		{500, `{"error":{"message":"Corrupted thought signature."}}`, none, true, ""},
		{429, `{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}`, none, false, "quota is used up"},
		{429, `{"error":{"code":"credit_balance_exhausted","message":"m"}}`, none, false, "quota is used up"},
		{429, `{"type":"exceeded_current_quota_error","message":"m"}`, none, false, "quota is used up"},
		{429, `{"error":{"type":"rate_limit_reached_error","message":"m"}}`, none, true, ""},
		{400, `{"error":{"code":"content_filter","message":"The prompt was filtered","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"},"self_harm":{"filtered":false}}}}}`, none, false, "refused the request (content_filter: hate): The prompt was filtered"},
		{400, `{"error":{"type":"content_filter","message":"The request was rejected"}}`, none, false, "(content_filter): The request was rejected"},
		{400, `{"code":"DataInspectionFailed","message":"m"}`, none, false, "(DataInspectionFailed)"},
	} {
		e := refusals.Classify(&wire.StatusError{Status: c.status, Body: []byte(c.body)})
		if e.Adjustment != c.adjustment || e.Retryable != c.retryable || !strings.Contains(e.Message, c.says) {
			t.Errorf("%d %s\nis %s, retryable %t, %q; want %s, %t, %q", c.status, c.body, e.Adjustment, e.Retryable, e.Message, c.adjustment, c.retryable, c.says)
		}
	}
}

// TestRefusalsDoNotRepeatTheRequest has servers that send back what they have refused.
func TestRefusalsDoNotRepeatTheRequest(t *testing.T) {
	const problem = `{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":[{"data":"SECRET"}]}`
	for _, body := range []string{
		`{"object":"error","message":{"detail":[` + problem + `]},"type":"invalid_request_error"}`,
		`{"detail":[` + problem + `]}`,
	} {
		e := refusals.Classify(&wire.StatusError{Status: http.StatusUnprocessableEntity, Body: []byte(body)})
		if want := "the provider answered 422: body.messages.1.assistant.reasoning_content: Extra inputs are not permitted"; e.Message != want {
			t.Errorf("%s\nis %q, want %q", body, e.Message, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for body, want := range map[string]*harnessv1.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`: {
			InputTokens: 10, OutputTokens: 5, CachedInputTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 2,
		},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":3}`:                           {InputTokens: 10, OutputTokens: 5, CachedInputTokens: 7},
		`{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":6}`:                                                                  {InputTokens: 10, OutputTokens: 5, CachedInputTokens: 6},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35}`:                                                                  {InputTokens: 10, OutputTokens: 25, ReasoningTokens: 20},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35,"completion_tokens_details":{"reasoning_tokens":20}}`:              {InputTokens: 10, OutputTokens: 25, ReasoningTokens: 20},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}`:                                                                   {InputTokens: 10, OutputTokens: 5},
		`{"prompt_tokens":-1,"completion_tokens":"5","completion_tokens_details":{"reasoning_tokens":-3},"prompt_tokens_details":null}`: {OutputTokens: 5},
	} {
		for _, response := range []string{
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":` + body + `}`,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop","usage":` + body + `}]}`,
		} {
			resp, err := newDecoder(Reasoning{}).decode([]byte(response))
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Usage.String(); got != want.String() {
				t.Errorf("%s\nis %s\nwant %s", body, got, want)
			}
		}
	}
}
