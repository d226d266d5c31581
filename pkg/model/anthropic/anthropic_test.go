package anthropic_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider(t *testing.T, s *modeltest.Server) *anthropic.Provider {
	t.Helper()
	p, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), APIKey: s.Key, HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSuite(t *testing.T) {
	modeltest.Suite(t, func(t *testing.T, replies ...modeltest.Reply) model.Provider {
		return provider(t, modeltest.NewServer(t, replies...))
	})
}

func TestWindow(t *testing.T) {
	modeltest.WindowSuite(t, func(t *testing.T) (*modeltest.Server, model.Provider) {
		s := modeltest.NewServer(t, modeltest.Reply{Text: "ok"})
		return s, provider(t, s)
	}, true)
}

// exchange is a reply with text, calls and usage.
var exchange = modeltest.Reply{
	Text:  "Looking at both of them now.",
	Calls: []modeltest.Call{{ID: "toolu_a", Name: "read_file", Arguments: `{"path": "a.txt"}`}, {ID: "toolu_b", Name: "read_file", Arguments: `{"path":"b.txt","line":12345678901234567890}`}},
	Usage: &modeltest.Usage{Input: 100, Output: 20, Cached: 60, Written: 30},
}

func TestServerQuirksDoNotChangeTheResponse(t *testing.T) {
	for name, quirks := range map[string]modeltest.Quirks{
		"plain JSON":             {IgnoreStream: true},
		"plain JSON, typed text": {IgnoreStream: true, ContentType: "text/plain"},
		"events unasked":         {AlwaysStream: true},
		"no last newline":        {NoLastNewline: true},
		"pings":                  {KeepAlive: true},
		"one index for all":      {SameIndex: true},
		"foreign kinds":          {Foreign: true},
		"foreign kinds, plain":   {Foreign: true, IgnoreStream: true},
		"thinking":               {Thinking: "Should I look at both?"},
		"thinking, plain":        {Thinking: "Should I look at both?", IgnoreStream: true},
		"events typed JSON":      {ContentType: "application/json"},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				reply := exchange
				reply.Quirks = quirks
				var text strings.Builder
				resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(streaming), func(d model.Delta) { text.WriteString(d.Text) })
				if err != nil {
					t.Fatal(err)
				}
				modeltest.CheckAnswer(t, exchange, resp)
				if streaming && text.String() != exchange.Text {
					t.Errorf("deltas %q, want %q", text.String(), exchange.Text)
				}
			})
		}
	}
}

func TestCallInOnePiece(t *testing.T) {
	for _, asObject := range []bool{true, false} {
		reply := modeltest.Reply{Calls: []modeltest.Call{{ID: "a", Name: "one", Arguments: `{"n":1}`}}, Quirks: modeltest.Quirks{WholeCalls: true, ArgumentsAsObject: asObject}}
		resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(true), nil)
		if err != nil {
			t.Fatal(err)
		}
		modeltest.CheckAnswer(t, reply, resp)
	}
}

// TestArgumentsOfAnotherBlockAreIgnored has those of a tool that the server runs.
func TestArgumentsOfAnotherBlockAreIgnored(t *testing.T) {
	resp, _ := complete(t, streamOf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"b","name":"search","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":1}"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`))
	if len(resp.ToolCalls) != 1 || resp.ToolCalls[0].GetArguments().GetInline() != `{"n":1}` {
		t.Errorf("calls %v", resp.ToolCalls)
	}
}

// TestArgumentsOfNoBlockAreTheCalls has deltas whose index begins no block.
func TestArgumentsOfNoBlockAreTheCalls(t *testing.T) {
	resp, _ := complete(t, streamOf(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`))
	if len(resp.ToolCalls) != 1 || resp.ToolCalls[0].GetArguments().GetInline() != `{"n":1}` {
		t.Errorf("calls %v", resp.ToolCalls)
	}
}

// TestCallWhoseDeltasAreEmpty has its arguments in the start of the block.
func TestCallWhoseDeltasAreEmpty(t *testing.T) {
	resp, _ := complete(t, streamOf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"n":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`))
	if len(resp.ToolCalls) != 1 || resp.ToolCalls[0].GetArguments().GetInline() != `{"n":1}` {
		t.Errorf("calls %v", resp.ToolCalls)
	}
}

func TestStopReasons(t *testing.T) {
	for said, want := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "tool_use": "tool_calls",
		"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter", "something_new": "tool_calls",
	} {
		for _, streaming := range []bool{true, false} {
			reply := exchange
			reply.FinishReason = said
			resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(streaming), nil)
			if err != nil || resp.FinishReason != want {
				t.Errorf("%s became %v (%v), want %s", said, resp, err, want)
			}
		}
	}
}

func TestCutStreams(t *testing.T) {
	events := modeltest.Quirks{ContentType: "text/event-stream"}
	for name, reply := range map[string]modeltest.Reply{
		"cut":            {Fault: modeltest.FaultCut},
		"no end":         {Fault: modeltest.FaultNoFinish},
		"garbage":        {Fault: modeltest.FaultGarbage},
		"dropped":        {Fault: modeltest.FaultDrop},
		"empty":          {Body: " \n", Quirks: events},
		"only a ping":    {Body: "event: ping\ndata: {\"type\": \"ping\"}\n\n", Quirks: events},
		"reason, no end": {Body: `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n", Quirks: events},
		"no reason":      {Body: `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n", Quirks: events},
		"torn event":     {Body: `data: {"type":"message_stop"`, Quirks: events},
		"other form":     {Body: `data: {"type":"message_delta","delta":"end_turn"}` + "\n\n", Quirks: events},
		"error unnamed":  {Body: `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n", Quirks: events},
		"error untyped":  {Body: `data: {"error":"boom"}` + "\n\n", Quirks: events},
		"error flat":     {Body: "event: error\ndata: " + `{"type":"error","message":"Overloaded"}` + "\n\n", Quirks: events},
		"error typed":    {Body: "event: error\ndata: " + `{"type":"overloaded_error","message":"Overloaded"}` + "\n\n", Quirks: events},
		"error as text":  {Body: "event: error\ndata: overloaded\n\n", Quirks: events},
		"flat with 200":  {Body: `{"type":"error","message":"overloaded"}`},
		"error with 200": {Body: `{"type":"error","error":{"type":"api_error","message":"overloaded"}}`},
		"no message":     {Body: `{"type":"message"}`},
		"not JSON":       {Body: `{"type":`},
	} {
		t.Run(name, func(t *testing.T) {
			reply.Text, reply.Calls, reply.Usage = exchange.Text, exchange.Calls, exchange.Usage
			s := modeltest.NewServer(t, reply)
			resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), func(model.Delta) {})
			modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	t.Run("error in mid-stream", func(t *testing.T) {
		reply := exchange
		reply.Fault = modeltest.FaultError
		resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
		if !strings.Contains(err.Error(), "upstream failed") {
			t.Errorf("error %q does not contain the provider's message", err)
		}
	})
	t.Run("limit in mid-stream", func(t *testing.T) {
		s := modeltest.NewServer(t, modeltest.Reply{Body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"Pay.\"}}\n\n", Quirks: events})
		resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
	})
	t.Run("too long in mid-stream", func(t *testing.T) {
		s := modeltest.NewServer(t, modeltest.Reply{Body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long\"}}\n\n", Quirks: events})
		resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{ContextExceeded: true, RetryAfter: -1})
	})
}

func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		fault     modeltest.Fault
		streaming bool
	}{
		"before the headers": {modeltest.FaultHang, true},
		"in mid-stream":      {modeltest.FaultSilence, true},
		"plain":              {modeltest.FaultHang, false},
		"plain, half":        {modeltest.FaultSilence, false},
	} {
		t.Run(name, func(t *testing.T) {
			reply := exchange
			reply.Fault = c.fault
			req := modeltest.Conversation(c.streaming)
			req.IdleTimeout = 40 * time.Millisecond
			resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), req, func(model.Delta) {})
			modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
		})
	}
}

func TestErrors(t *testing.T) {
	const key = "sk-ant-secret-0123456789"
	for name, c := range map[string]struct {
		reply modeltest.Reply
		want  model.Error
		says  string
	}{
		"context":            {modeltest.Reply{Status: 400, ErrorMessage: "prompt is too long: 210000 tokens > 200000 maximum"}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, "210000"},
		"with its answer":    {modeltest.Reply{Status: 400, ErrorMessage: "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000"}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, "window"},
		"too many bytes":     {modeltest.Reply{Status: 413}, model.Error{RetryAfter: -1, Status: 413, ContextExceeded: true}, "window"},
		"overloaded":         {modeltest.Reply{Status: 529, ErrorMessage: "Overloaded", Header: map[string]string{"Retry-After": "3"}}, model.Error{RetryAfter: 3 * time.Second, Status: 529, Retryable: true}, "Overloaded"},
		"overloaded, how":    {modeltest.Reply{Status: 529, Body: "busy"}, model.Error{RetryAfter: -1, Status: 529, Retryable: true}, "overloaded"},
		"credit":             {modeltest.Reply{Status: 400, ErrorMessage: "Your credit balance is too low to access the API."}, model.Error{RetryAfter: -1, Status: 400}, "credit balance"},
		"credit, 429":        {modeltest.Reply{Status: 429, ErrorMessage: "Your credit balance is too low to access the API."}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"limit that was set": {modeltest.Reply{Status: 400, ErrorMessage: "You have reached your specified API usage limits. You will regain access on 2026-12-01."}, model.Error{RetryAfter: -1, Status: 400}, "used up"},
		"workspace limit":    {modeltest.Reply{Status: 429, ErrorMessage: "You have reached your specified workspace API usage limits."}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"limit with wait":    {modeltest.Reply{Status: 429, ErrorMessage: "You have reached your specified workspace API usage limits.", Header: map[string]string{"Retry-After": "5"}}, model.Error{RetryAfter: 5 * time.Second, Status: 429, Retryable: true}, "usage limits"},
		"tier's cap":         {modeltest.Reply{Status: 429, ErrorMessage: "You have reached your API usage limits: your organization has crossed its threshold."}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"tier's cap, code":   {modeltest.Reply{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"Come back.","details":{"error_code":"enforced_spend_limit_reached"}}}`}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"rate":               {modeltest.Reply{Status: 429, ErrorMessage: "Number of request tokens has exceeded your per-minute rate limit"}, model.Error{RetryAfter: -1, Status: 429, Retryable: true}, "per-minute"},
		"billing":            {modeltest.Reply{Status: 402, ErrorMessage: "pay"}, model.Error{RetryAfter: -1, Status: 402}, "pay"},
		"billing, 429":       {modeltest.Reply{Status: 429, ErrorCode: "billing_error", ErrorMessage: "pay"}, model.Error{RetryAfter: -1, Status: 429}, "pay"},
		"timeout":            {modeltest.Reply{Status: 504}, model.Error{RetryAfter: -1, Status: 504, Retryable: true}, ""},
		"error as text":      {modeltest.Reply{Status: 422, Body: `{"error":"no such thing"}`}, model.Error{RetryAfter: -1, Status: 422}, "no such thing"},
		"detail":             {modeltest.Reply{Status: 400, Body: `{"detail":"bad field"}`}, model.Error{RetryAfter: -1, Status: 400}, "bad field"},
		"not JSON":           {modeltest.Reply{Status: 502, Body: "<html>Bad gateway</html>"}, model.Error{RetryAfter: -1, Status: 502, Retryable: true}, "502"},
		"web page":           {modeltest.Reply{Body: "<!doctype html>", Quirks: modeltest.Quirks{ContentType: "text/html"}}, model.Error{Retryable: true, RetryAfter: -1, Status: 200}, "/v1"},
		"401":                {modeltest.Reply{Status: 401, ErrorMessage: "invalid x-api-key " + key}, model.Error{RetryAfter: -1, Status: 401}, "ANTHROPIC_API_KEY"},
		"403":                {modeltest.Reply{Status: 403, ErrorMessage: key}, model.Error{RetryAfter: -1, Status: 403}, "key"},
		"404":                {modeltest.Reply{Status: 404, ErrorMessage: "model: x for\n" + key}, model.Error{RetryAfter: -1, Status: 404}, "model: x for [key]"},
		"key in an error":    {modeltest.Reply{Status: 500, ErrorMessage: "I saw " + key}, model.Error{RetryAfter: -1, Status: 500, Retryable: true}, "I saw [key]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, c.reply)
			s.Key = key
			resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
			modeltest.CheckError(t, resp, err, c.want)
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), key) {
				t.Errorf("message %q, want one with %q and without the key", err, c.says)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), key) {
					t.Errorf("the error holds the key")
				}
			}
		})
	}
}

func TestRefusedConnection(t *testing.T) {
	s := modeltest.NewServer(t)
	s.Close()
	resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
	modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
}

func TestEnvironmentIsNotRead(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "from-the-environment", "ANTHROPIC_AUTH_TOKEN": "token", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Custom: yes", "ANTHROPIC_PROFILE": "someone",
	} {
		t.Setenv(name, value)
	}
	s := modeltest.NewServer(t, modeltest.Reply{})
	if _, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil); err != nil {
		t.Fatal(err)
	}
	h := s.Requests()[0].Header
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Custom", "Traceparent"} {
		if v := h.Get(name); v != "" {
			t.Errorf("%s: %s was sent", name, v)
		}
	}
	if v := h.Get("Anthropic-Version"); v != "2023-06-01" {
		t.Errorf("version %q", v)
	}
}

func TestModelFromTheList(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{}, modeltest.Reply{}, modeltest.Reply{})
	s.Models, s.OnlyListed, s.Key = []string{"first"}, true, "k"
	p := provider(t, s)
	req := modeltest.Conversation(true)
	req.Model = ""
	for range 2 {
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Model != "first" {
			t.Errorf("model %q, want first", resp.Model)
		}
	}
	s.Models = []string{"third"}
	if _, err := p.Complete(t.Context(), req, nil); model.AsError(err).Status != http.StatusNotFound {
		t.Fatalf("error %v, want 404 from a model that is gone", err)
	}
	resp, err := p.Complete(t.Context(), req, nil)
	if err != nil || resp.Model != "third" {
		t.Fatalf("%v, %v: want the model that is listed now", resp, err)
	}
	s.Models = nil
	resp, err = provider(t, s).Complete(t.Context(), req, nil)
	modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
	s.Key = "another"
	unknown, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err = unknown.Complete(t.Context(), req, nil)
	modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1, Status: 401})
}

func TestMaxTokensIsTheModelsMaximum(t *testing.T) {
	for _, c := range []struct {
		model     string
		streaming bool
		limit     uint32
		want      int
	}{
		{"large", true, 0, 64000}, {"large", false, 0, 16384}, {"small", false, 0, 4096}, {"unknown", true, 0, anthropic.DefaultMaxOutput},
		{"large", true, 2000, 2000}, {"large", false, 2000, 2000}, {"small", false, 5000, 4096},
	} {
		var asked int
		s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
			asked = r.MaxTokens
			return modeltest.Reply{}
		})
		p, err := anthropic.New(anthropic.Config{
			Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL() + "/", HTTPClient: s.Client()},
			MaxOutput: func(name string) uint32 {
				return map[string]uint32{"large": 64000, "small": 4096}[name]
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		req := modeltest.Conversation(c.streaming)
		req.Model, req.MaxOutputTokens = c.model, c.limit
		if _, err := p.Complete(t.Context(), req, nil); err != nil || asked != c.want {
			t.Errorf("%s, streaming %t: max_tokens %d, want %d (%v)", c.model, c.streaming, asked, c.want, err)
		}
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, change := range map[string]func(*model.Request){
		"role": func(r *model.Request) { r.Messages[0].Role = 0 },
		"blob": func(r *model.Request) {
			r.Messages[0].Content = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{}}}
		},
		"schema": func(r *model.Request) { r.Tools[0].ParametersSchema = "[]" },
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t)
			req := modeltest.Conversation(true)
			change(req)
			resp, err := provider(t, s).Complete(t.Context(), req, nil)
			modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
			if len(s.Requests()) != 0 {
				t.Errorf("the request was sent")
			}
		})
	}
}

func TestNewRejectsInvalidAddresses(t *testing.T) {
	for base, says := range map[string]string{
		"localhost:8000": "http", "ftp://x": "http", "http://": "http", "://": "http", "/anthropic": "http",
		"https://api.anthropic.com/v1": "/v1", "http://x/anthropic/v1/": "http://x/anthropic",
	} {
		if _, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one with %q", base, err, says)
		}
	}
	for _, base := range []string{"", "http://127.0.0.1:1", "https://x/anthropic/"} {
		if _, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err != nil {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func roles(messages []modeltest.RequestMessage) (list []string) {
	for _, m := range messages {
		list = append(list, m.Role)
	}
	return list
}

// TestEveryConversationIsEncodedForTheService sends conversations that other
// providers accept unchanged to a strict server.
func TestEveryConversationIsEncodedForTheService(t *testing.T) {
	say := func(role harnessv1.Role, text string) *harnessv1.Message {
		return &harnessv1.Message{Role: role, Content: inline(text)}
	}
	const (
		system, user, assistant, tool = harnessv1.Role_ROLE_SYSTEM, harnessv1.Role_ROLE_USER, harnessv1.Role_ROLE_ASSISTANT, harnessv1.Role_ROLE_TOOL
	)
	for name, c := range map[string]struct {
		messages []*harnessv1.Message
		want     []string
	}{
		"words after words":         {[]*harnessv1.Message{say(system, "S"), say(user, "a"), say(user, "b"), say(assistant, "c"), say(assistant, "d"), say(user, "e")}, []string{"system", "user", "user", "assistant", "user"}},
		"nothing but a prompt":      {[]*harnessv1.Message{say(system, "S")}, []string{"system", "user"}},
		"an answer first":           {[]*harnessv1.Message{say(assistant, "c"), say(user, "e")}, []string{"user", "assistant", "user"}},
		"an answer last":            {[]*harnessv1.Message{say(user, "a"), say(assistant, "c  ")}, []string{"user", "assistant", "user"}},
		"blank texts":               {[]*harnessv1.Message{say(system, " "), say(user, "a"), say(assistant, "\n"), say(user, ""), say(user, "e")}, []string{"user", "user"}},
		"a later system prompt":     {[]*harnessv1.Message{say(user, "a"), say(system, "S")}, []string{"user", "user"}},
		"no messages":               {nil, []string{"user"}},
		"an error without a word":   {[]*harnessv1.Message{say(user, "a"), {Role: assistant, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "n"}}}, {Role: tool, ToolCallId: "c", IsError: true}}, []string{"user", "assistant", "tool"}},
		"results, then guidance":    {[]*harnessv1.Message{say(user, "a"), {Role: assistant, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "n"}, {Id: "d", Name: "n"}}}, {Role: tool, ToolCallId: "c"}, {Role: tool, ToolCallId: "d", Content: inline("r")}, say(user, "g")}, []string{"user", "assistant", "tool", "tool", "user"}},
		"names and ids of others":   {[]*harnessv1.Message{say(user, "a"), {Role: assistant, ToolCalls: []*harnessv1.ToolCall{{Id: "functions.read:0", Name: "read file!"}, {Id: "functions.read:1", Name: ""}, {Id: "x-y", Name: strings.Repeat("n", 200)}}}, {Role: tool, ToolCallId: "functions.read:1"}, {Role: tool, ToolCallId: "functions.read:0"}, {Role: tool, ToolCallId: "x-y"}}, []string{"user", "assistant", "tool", "tool", "tool"}},
		"arguments that are none":   {[]*harnessv1.Message{say(user, "a"), {Role: assistant, ToolCalls: []*harnessv1.ToolCall{{Id: "1", Name: "n", Arguments: inline(`{"path": `)}, {Id: "2", Name: "n", Arguments: inline(`[1]`)}, {Id: "3", Name: "n", Arguments: inline(`null`)}, {Id: "4", Name: "n", Arguments: inline(" ")}}}, {Role: tool, ToolCallId: "1"}, {Role: tool, ToolCallId: "2"}, {Role: tool, ToolCallId: "3"}, {Role: tool, ToolCallId: "4"}}, []string{"user", "assistant", "tool", "tool", "tool", "tool"}},
		"a schema without its type": {nil, []string{"user"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got *modeltest.Request
			s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
				got = r
				return modeltest.Reply{}
			})
			req := modeltest.Conversation(true)
			req.Messages = c.messages
			req.Tools = append(req.Tools, &harnessv1.ToolSpec{Name: "noop"}, &harnessv1.ToolSpec{Name: "typeless", ParametersSchema: ` { "properties":{"a":{}} }`}, &harnessv1.ToolSpec{Name: "empty", ParametersSchema: "{ }"})
			if _, err := provider(t, s).Complete(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if have := roles(got.Messages); !slices.Equal(have, c.want) {
				t.Errorf("roles %v, want %v", have, c.want)
			}
		})
	}
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}
