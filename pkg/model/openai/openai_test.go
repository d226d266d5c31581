package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider(t *testing.T, s *modeltest.Server) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), APIKey: s.Key, HTTPClient: s.Client()}})
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
	for _, words := range []modeltest.Words{modeltest.WordsOpenAI, modeltest.WordsDeepSeek, modeltest.WordsMoonshot, modeltest.WordsMistral, modeltest.WordsGroq} {
		t.Run("words "+string(words), func(t *testing.T) {
			modeltest.WindowSuite(t, func(t *testing.T) (*modeltest.Server, model.Provider) {
				s := modeltest.NewServer(t, modeltest.Reply{Text: "ok"})
				s.Temper.Words = words
				return s, provider(t, s)
			}, words != modeltest.WordsGroq)
		})
	}
}

// exchange is a reply with text, calls and usage.
var exchange = modeltest.Reply{
	Text:  "Looking at both of them now.",
	Calls: []modeltest.Call{{ID: "a", Name: "read_file", Arguments: `{"path": "a.txt"}`}, {ID: "b", Name: "read_file", Arguments: `{"path":  "b.txt"}`}},
	Usage: &modeltest.Usage{Input: 100, Output: 20, Cached: 60},
}

func TestServerQuirksDoNotChangeTheResponse(t *testing.T) {
	for name, quirks := range map[string]modeltest.Quirks{
		"no index":                {OmitIndex: true},
		"no index, ids repeated":  {OmitIndex: true, RepeatIDs: true},
		"no index, whole calls":   {OmitIndex: true, WholeCalls: true},
		"whole calls":             {WholeCalls: true},
		"ids repeated":            {RepeatIDs: true},
		"plain JSON":              {IgnoreStream: true},
		"plain JSON, typed text":  {IgnoreStream: true, ContentType: "text/plain"},
		"arguments as an object":  {WholeCalls: true, ArgumentsAsObject: true},
		"plain, arguments object": {IgnoreStream: true, ArgumentsAsObject: true},
		"events unasked":          {AlwaysStream: true},
		"usage with the reason":   {UsageInLastChoice: true},
		"no DONE":                 {NoDone: true},
		"no finish reason":        {NoFinish: true},
		"no last newline":         {NoLastNewline: true, NoDone: true},
		"keep-alive comments":     {KeepAlive: true},
		"error: null":             {NullErrors: true},
		"events typed JSON":       {ContentType: "application/json"},
		"events typed text":       {ContentType: "text/plain; charset=utf-8"},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				reply, want := exchange, exchange
				reply.Quirks = quirks
				if quirks.ArgumentsAsObject {
					want.Calls = slices.Clone(want.Calls)
					for i, c := range want.Calls { // the test server writes objects compactly
						var v any
						if err := json.Unmarshal([]byte(c.Arguments), &v); err != nil {
							t.Fatal(err)
						}
						b, err := json.Marshal(v)
						if err != nil {
							t.Fatal(err)
						}
						want.Calls[i].Arguments = string(b)
					}
				}
				var text strings.Builder
				resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(streaming), func(d model.Delta) { text.WriteString(d.Text) })
				if err != nil {
					t.Fatal(err)
				}
				modeltest.CheckAnswer(t, want, resp)
				if streaming && text.String() != want.Text {
					t.Errorf("deltas %q, want %q", text.String(), want.Text)
				}
			})
		}
	}
}

// TestCallsWithoutIdsOrIndex has streams that the test server does not write.
func TestCallsWithoutIdsOrIndex(t *testing.T) {
	event := func(toolCalls string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":` + toolCalls + `}}]}` + "\n\n"
	}
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"names only":       {event(`[{"function":{"name":"one","arguments":"{}"}}]`) + event(`[{"function":{"name":"two","arguments":"{}"}}]`), []string{" one {}", " two {}"}},
		"all with index 0": {event(`[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]`) + event(`[{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}]`), []string{"a one {}", "b two {}"}},
		"interleaved": {event(`[{"index":0,"id":"a","function":{"name":"one"}},{"index":1,"id":"b","function":{"name":"two"}}]`) +
			event(`[{"index":1,"function":{"arguments":"{1"}},{"index":0,"function":{"arguments":"{0"}}]`) +
			event(`[{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}]`), []string{"a one {0}", "b two {1}"}},
		"null arguments": {event(`[{"index":0,"id":"a","function":{"name":"one","arguments":null}}]`), []string{"a one "}},
		"same id twice":  {event(`[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"two","arguments":"{}"}}]`), []string{"a one {}", "a two {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, modeltest.Reply{Body: c.body + end, Quirks: modeltest.Quirks{ContentType: "text/event-stream"}})
			resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range resp.ToolCalls {
				got = append(got, c.GetId()+" "+c.GetName()+" "+c.GetArguments().GetInline())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("calls %q, want %q", got, c.want)
			}
		})
	}
}

// TestCommentsAsData: some proxies send the comments that keep a stream alive as data.
func TestCommentsAsData(t *testing.T) {
	const body = "data: : PROCESSING\n\n: comment\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata::\n\ndata: [DONE]\n\n"
	s := modeltest.NewServer(t, modeltest.Reply{Body: body, Quirks: modeltest.Quirks{ContentType: "text/event-stream"}})
	resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
	if err != nil || resp.Text != "Hi." {
		t.Errorf("answer %v, %v", resp, err)
	}
}

func TestCutStreams(t *testing.T) {
	for name, reply := range map[string]modeltest.Reply{
		"cut":            {Fault: modeltest.FaultCut},
		"no finish":      {Fault: modeltest.FaultNoFinish},
		"garbage":        {Fault: modeltest.FaultGarbage},
		"dropped":        {Fault: modeltest.FaultDrop},
		"empty":          {Body: " \n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"only DONE":      {Body: "data: [DONE]\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"event error":    {Body: "event: error\ndata: {\"message\":\"boom\"}\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"no choices":     {Body: `{"choices":[]}`},
		"error with 200": {Body: `{"error":{"message":"overloaded"}}`},
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
	t.Run("too long in mid-stream", func(t *testing.T) {
		s := modeltest.NewServer(t, modeltest.Reply{Body: "data: {\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}})
		resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{ContextExceeded: true, RetryAfter: -1})
	})
	t.Run("plain cut", func(t *testing.T) {
		reply := exchange
		reply.Fault = modeltest.FaultCut
		resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(false), nil)
		modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
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

func TestSlowReaderIsNotSilence(t *testing.T) {
	req := modeltest.Conversation(true)
	req.IdleTimeout = 100 * time.Millisecond
	first := true
	resp, err := provider(t, modeltest.NewServer(t, exchange)).Complete(t.Context(), req, func(model.Delta) {
		if first { // the reader takes longer than the server may be silent
			first = false
			<-time.After(150 * time.Millisecond)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckAnswer(t, exchange, resp)
}

func TestErrors(t *testing.T) {
	const key = "sk-secret-0123456789"
	for name, c := range map[string]struct {
		reply modeltest.Reply
		want  model.Error
		says  string
	}{
		"context":          {modeltest.Reply{Status: 400, ErrorCode: "context_length_exceeded"}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, "window"},
		"context, vLLM":    {modeltest.Reply{Status: 400, Body: `{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}`}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, "4096"},
		"context, llama":   {modeltest.Reply{Status: 400, Body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, ""},
		"error as text":    {modeltest.Reply{Status: 422, Body: `{"error":"no such thing"}`}, model.Error{RetryAfter: -1, Status: 422}, "no such thing"},
		"detail":           {modeltest.Reply{Status: 400, Body: `{"detail":"bad field"}`}, model.Error{RetryAfter: -1, Status: 400}, "bad field"},
		"not JSON":         {modeltest.Reply{Status: 502, Body: "<html>Bad gateway</html>"}, model.Error{RetryAfter: -1, Status: 502, Retryable: true}, "502"},
		"web page":         {modeltest.Reply{Body: "<!doctype html>", Quirks: modeltest.Quirks{ContentType: "text/html"}}, model.Error{Retryable: true, RetryAfter: -1, Status: 200}, "/v1"},
		"401":              {modeltest.Reply{Status: 401, ErrorMessage: "Incorrect API key provided: " + key}, model.Error{RetryAfter: -1, Status: 401}, "OPENAI_API_KEY"},
		"403":              {modeltest.Reply{Status: 403, ErrorMessage: key}, model.Error{RetryAfter: -1, Status: 403}, "key"},
		"404":              {modeltest.Reply{Status: 404, ErrorMessage: "no model x for\n" + key}, model.Error{RetryAfter: -1, Status: 404}, "no model x for [key]"},
		"key in an error":  {modeltest.Reply{Status: 500, ErrorMessage: "I saw " + key}, model.Error{RetryAfter: -1, Status: 500, Retryable: true}, "I saw [key]"},
		"retry-after-ms":   {modeltest.Reply{Status: 429, Header: map[string]string{"Retry-After-Ms": "250", "Retry-After": "9"}}, model.Error{RetryAfter: 250 * time.Millisecond, Status: 429, Retryable: true}, ""},
		"date in the past": {modeltest.Reply{Status: 503, Header: map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}}, model.Error{RetryAfter: 0, Status: 503, Retryable: true}, ""},
		"nonsense":         {modeltest.Reply{Status: 503, Header: map[string]string{"Retry-After": "soon"}}, model.Error{RetryAfter: -1, Status: 503, Retryable: true}, ""},
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

func TestRequestBytes(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{Text: "ok"}, modeltest.Reply{Text: "ok"})
	s.Key = "k-1"
	p := provider(t, s)
	req := modeltest.Conversation(true)
	req.Messages = append(req.Messages,
		message(harnessv1.Role_ROLE_USER, "Guidance."),
		&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{
			{Id: "c1", Name: "read_file", Arguments: inline(`{"path": `)},
			{Id: "c2", Name: "read_file"},
		}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c1", Content: inline("not JSON")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c2"},
		message(harnessv1.Role_ROLE_ASSISTANT, "Hm <&>."),
		message(harnessv1.Role_ROLE_ASSISTANT, ""),
		message(harnessv1.Role_ROLE_USER, "Go on."),
	)
	req.Tools = req.Tools[:1]
	req.Tools = append(req.Tools, &harnessv1.ToolSpec{Name: "noop"})
	for _, streaming := range []bool{true, false} {
		req.Streaming = streaming
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	const body = `"messages":[` +
		`{"role":"system","content":"You are tested."},{"role":"user","content":"Read a and b."},{"role":"user","content":"Guidance."},` +
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"not_a_json_object\":\"{\\\"path\\\": \"}"}},{"id":"c2","type":"function","function":{"name":"read_file","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"not JSON"},{"role":"tool","tool_call_id":"c2","content":""},` +
		`{"role":"assistant","content":"Hm <&>."},{"role":"assistant","content":""},{"role":"user","content":"Go on."}],` +
		`"model":"test-model",` +
		`"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},` +
		`{"type":"function","function":{"name":"noop","parameters":{"type":"object","properties":{}}}}]`
	want := []string{`{` + body + `,"stream":true,"stream_options":{"include_usage":true}}`, `{` + body + `}`}
	for i, r := range s.Requests() {
		if got := canonical(t, r.Body); got != canonical(t, []byte(want[i])) {
			t.Errorf("request %d is\n%s\nwant\n%s", i, r.Body, want[i])
		}
		if got := r.Header.Get("Authorization"); got != "Bearer k-1" {
			t.Errorf("authorization %q", got)
		}
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: yes")
	s := modeltest.NewServer(t, modeltest.Reply{})
	if _, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil); err != nil {
		t.Fatal(err)
	}
	h := s.Requests()[0].Header
	for _, name := range []string{"Authorization", "Openai-Organization", "X-Custom"} {
		if v := h.Get(name); v != "" {
			t.Errorf("%s: %s was sent", name, v)
		}
	}
}

func TestModelFromTheList(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{}, modeltest.Reply{}, modeltest.Reply{})
	s.Models, s.OnlyListed = []string{"first"}, true
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
}

func TestListFails(t *testing.T) {
	s := modeltest.NewServer(t)
	s.Key = "k"
	p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	req := modeltest.Conversation(true)
	req.Model = ""
	resp, err := p.Complete(t.Context(), req, nil)
	modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1, Status: 401})
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, change := range map[string]func(*model.Request){
		"role": func(r *model.Request) { r.Messages[0].Role = 0 },
		"blob": func(r *model.Request) {
			r.Messages[0].Content = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{}}}
		},
		"schema": func(r *model.Request) { r.Tools[0].ParametersSchema = "{" },
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
	for _, base := range []string{"localhost:8000/v1", "ftp://x/v1", "http://", "://", "/v1"} {
		if _, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err == nil {
			t.Errorf("%q was accepted", base)
		}
	}
	for _, base := range []string{"", "http://127.0.0.1:1/v1", "https://x/v1/"} {
		if _, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err != nil {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func message(role harnessv1.Role, text string) *harnessv1.Message {
	return &harnessv1.Message{Role: role, Content: inline(text)}
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

func canonical(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRedirectToAnotherHostIsNotRetried(t *testing.T) {
	other := modeltest.NewServer(t)
	s := modeltest.NewServer(t, modeltest.Reply{Status: 307, Body: " ", Header: map[string]string{"Location": other.BaseURL() + "/chat/completions"}})
	resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
	modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
	if !strings.Contains(err.Error(), other.BaseURL()[:len(other.BaseURL())-len("/v1")]) || !strings.Contains(err.Error(), "OPENAI_BASE_URL") {
		t.Errorf("error %q, want one with the location and the variable", err)
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("the other host received %d requests", n)
	}
}

// TestDeviatingMembersAreIgnored has members of other types than the protocol's.
func TestDeviatingMembersAreIgnored(t *testing.T) {
	const answer = `"model":"m","created":"x","usage":{"prompt_tokens":12.0,"completion_tokens":"3","prompt_tokens_details":[]},"choices":[{"index":"0",` +
		`"logprobs":7,"finish_reason":"stop","%s":{"role":7,"content":"hi","refusal":{},"tool_calls":{}}}]`
	for name, body := range map[string]string{
		"plain":  "{" + fmt.Sprintf(answer, "message") + "}",
		"events": "data: {" + fmt.Sprintf(answer, "delta") + "}\n\n",
	} {
		s := modeltest.NewServer(t, modeltest.Reply{Body: body})
		resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(true), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		modeltest.CheckAnswer(t, modeltest.Reply{Text: "hi", Usage: &modeltest.Usage{Input: 12, Output: 3}}, resp)
	}
}

// TestSilenceAfterTheFinishReason has a server that sends neither the usage nor
// the end of the stream.
func TestSilenceAfterTheFinishReason(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `data: {"model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.URL + "/v1", HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	req := modeltest.Conversation(true)
	req.IdleTimeout = 50 * time.Millisecond
	resp, err := p.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckAnswer(t, modeltest.Reply{Text: "hi"}, resp)
}
