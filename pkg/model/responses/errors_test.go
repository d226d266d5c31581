package responses_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// exchange is a reply with reasoning, text, calls and usage.
var exchange = modeltest.Reply{
	Parts: []modeltest.ReplyPart{
		{Thinking: &modeltest.Thinking{Text: "Both, I think.\n\nYes."}},
		{Text: "Looking at both of them now.", Phase: "commentary"},
		{Call: &modeltest.Call{ID: "a", Name: "read_file", Arguments: `{"path": "a.txt"}`}},
		{Call: &modeltest.Call{ID: "b", Name: "read_file", Arguments: `{"path":  "b.txt"}`}},
	},
	Usage: &modeltest.Usage{Input: 100, Output: 20, Cached: 60, Written: 30, Reasoning: 12},
}

func TestServerQuirksDoNotChangeTheResponse(t *testing.T) {
	for name, quirks := range map[string]modeltest.Quirks{
		"none":                 {},
		"no output at the end": {OmitOutput: true},
		"whole calls":          {WholeCalls: true},
		"plain JSON":           {IgnoreStream: true},
		"events unasked":       {AlwaysStream: true},
		"no last newline":      {NoLastNewline: true},
		"keep-alive comments":  {KeepAlive: true},
		"events typed text":    {ContentType: "text/plain"},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				reply := exchange
				reply.Quirks = quirks
				var shown model.Delta
				req := modeltest.Conversation(streaming)
				req.ShowReasoning = true
				resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), req, func(d model.Delta) {
					shown.Text += d.Text
					shown.Reasoning += d.Reasoning
				})
				if err != nil {
					t.Fatal(err)
				}
				modeltest.CheckAnswer(t, exchange, resp)
				if want := (model.Delta{Text: resp.Text, Reasoning: "Both, I think.\n\nYes."}); streaming && shown != want {
					t.Errorf("the deltas are %+v, want %+v", shown, want)
				}
				if len(resp.Parts) != 4 || resp.Parts[0].GetOpaque() == nil || string(resp.Parts[1].GetOpaque().GetInline()) != `{"phase":"commentary"}` {
					t.Errorf("the parts are %v", resp.Parts)
				}
				if o := resp.Origin; o.GetWire() != "responses" || o.GetModel() != "test-model" {
					t.Errorf("the origin is %v", o)
				}
			})
		}
	}
}

func TestCutStreams(t *testing.T) {
	for name, reply := range map[string]modeltest.Reply{
		"cut":            {Fault: modeltest.FaultCut},
		"no end":         {Fault: modeltest.FaultNoFinish},
		"garbage":        {Fault: modeltest.FaultGarbage},
		"dropped":        {Fault: modeltest.FaultDrop},
		"error":          {Fault: modeltest.FaultError},
		"error, flat":    {Fault: modeltest.FaultError, Quirks: modeltest.Quirks{FlatErrors: true}},
		"failed":         {Fault: modeltest.FaultFailed},
		"empty":          {Body: " \n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"only DONE":      {Body: "data: [DONE]\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"event error":    {Body: "event: error\ndata: {\"message\":\"upstream failed\"}\n\n", Quirks: modeltest.Quirks{ContentType: "text/event-stream"}},
		"no output":      {Body: `{"choices":[]}`},
		"error with 200": {Body: `{"error":{"message":"upstream failed"}}`},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				reply.Parts, reply.Usage = exchange.Parts, exchange.Usage
				s := modeltest.NewServer(t, reply)
				resp, err := provider(t, s).Complete(t.Context(), modeltest.Conversation(streaming), func(model.Delta) {})
				modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
				if says := strings.Contains(err.Error(), "upstream failed"); strings.Contains(name, "error") && !says {
					t.Errorf("error %q, want one with the service's message", err)
				}
				if n := len(s.Requests()); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
	t.Run("not again", func(t *testing.T) {
		reply := exchange
		reply.Fault, reply.ErrorCode = modeltest.FaultFailed, "invalid_prompt"
		resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
	})
}

func TestSilence(t *testing.T) {
	for _, fault := range []modeltest.Fault{modeltest.FaultHang, modeltest.FaultSilence} {
		for _, streaming := range []bool{true, false} {
			reply := exchange
			reply.Fault = fault
			req := modeltest.Conversation(streaming)
			req.IdleTimeout = 40 * time.Millisecond
			resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), req, func(model.Delta) {})
			modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
		}
	}
}

func TestErrors(t *testing.T) {
	const key = "sk-secret-0123456789"
	for name, c := range map[string]struct {
		reply modeltest.Reply
		want  model.Error
		says  string
	}{
		"context":            {modeltest.Reply{Status: 400, ErrorCode: "context_length_exceeded"}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, "window"},
		"context, as text":   {modeltest.Reply{Status: 400, ErrorMessage: "Your input exceeds the context window of this model."}, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true}, ""},
		"quota":              {modeltest.Reply{Status: 429, ErrorCode: "insufficient_quota"}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"credit":             {modeltest.Reply{Status: 429, ErrorCode: "credit_balance_exhausted"}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"limit of the bills": {modeltest.Reply{Status: 429, ErrorCode: "billing_hard_limit_reached"}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"account":            {modeltest.Reply{Status: 429, ErrorCode: "billing_not_active"}, model.Error{RetryAfter: -1, Status: 429}, "used up"},
		"rate":               {modeltest.Reply{Status: 429, ErrorCode: "rate_limit_exceeded", Header: map[string]string{"Retry-After-Ms": "250"}}, model.Error{RetryAfter: 250 * time.Millisecond, Status: 429, Retryable: true}, ""},
		"web page":           {modeltest.Reply{Body: "<!doctype html>"}, model.Error{Retryable: true, RetryAfter: -1, Status: 200}, "MY_URL includes /v1"},
		"401":                {modeltest.Reply{Status: 401, ErrorMessage: "Incorrect API key provided: " + key}, model.Error{RetryAfter: -1, Status: 401}, "MY_KEY"},
		"404":                {modeltest.Reply{Status: 404, ErrorMessage: "no model x for\n" + key}, model.Error{RetryAfter: -1, Status: 404}, "no model x for [key]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, c.reply)
			s.Key = key
			p := configured(t, s, responses.Config{Endpoint: adapter.Endpoint{KeyVariable: "MY_KEY", BaseVariable: "MY_URL"}})
			resp, err := p.Complete(t.Context(), modeltest.Conversation(true), nil)
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

// TestRefusedReasoningIsLeftOut has a server whose organisation changes: it refuses its
// former reasoning, and takes the same conversation without.
func TestRefusedReasoningIsLeftOut(t *testing.T) {
	s := modeltest.NewServer(t, exchange, modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{}}, {Text: "New."}}}, modeltest.Reply{Text: "Done."})
	p := provider(t, s)
	req := modeltest.Conversation(true)
	try := func() (*model.Response, error) { return p.Complete(t.Context(), req, nil) }
	result := func(*harnessv1.ToolCall) string { return "" }
	first, err := try()
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Answer(req, first, result)
	s.Responses.Organisation = "org-other"
	resp, err := try()
	modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1, Status: 400})
	if a := model.AsError(err).Adjustment; a != harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE {
		t.Fatalf("the adjustment is %v: %v", a, err)
	}
	req.Adjustments = []*harnessv1.ModelAdjustment{{Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE, ThroughMessage: uint64(len(req.Messages))}}
	for range 2 {
		if resp, err = try(); err != nil {
			t.Fatal(err)
		}
		modeltest.Answer(req, resp, result)
	}
	sent := s.Requests()
	if last := string(sent[len(sent)-1].Body); strings.Count(last, `"encrypted_content"`) != 1 || strings.Contains(last, "commentary") {
		t.Errorf("the last request has not just the new reasoning:\n%s", last)
	}
}

// TestReasoningOfOthersIsNotSent has an answer of another endpoint.
func TestReasoningOfOthersIsNotSent(t *testing.T) {
	req := conversation(made("https://elsewhere/v1", "a", nil, part(nil, `{"type":"reasoning"}`), part(1, `{"phase":"commentary"}`)), message(harnessv1.Role_ROLE_USER, "Go on."))
	if body := string(send(t, responses.Config{}, req).Body); strings.Contains(body, `"reasoning"`) || strings.Contains(body, "phase") || !strings.Contains(body, `"text":"a"`) {
		t.Errorf("the request has what another endpoint made: %s", body)
	}
}

// TestServersOfChatOnly has a server without the path.
func TestServersOfChatOnly(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for own, want := range map[bool]harnessv1.Adjustment{true: 0, false: harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT} {
		p, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: s.URL + "/v1", Own: own, HTTPClient: s.Client()}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.Complete(t.Context(), modeltest.Conversation(true), nil)
		modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1, Status: 404})
		if got := model.AsError(err).Adjustment; got != want {
			t.Errorf("own %t: the adjustment is %v, want %v", own, got, want)
		}
	}
}

// TestRefusals has an answer that the service filters after a half of it.
func TestRefusals(t *testing.T) {
	reply := exchange
	reply.FinishReason = "content_filter"
	for _, streaming := range []bool{true, false} {
		resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(streaming), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.FinishReason != "content_filter" || resp.Refusal != "content_filter" {
			t.Errorf("finish reason %s and refusal %q", resp.FinishReason, resp.Refusal)
		}
		refused := reply
		refused.RefusalText = "I can't help with that."
		resp, err = provider(t, modeltest.NewServer(t, refused)).Complete(t.Context(), modeltest.Conversation(streaming), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.FinishReason != "content_filter" || resp.Refusal != "refusal: I can't help with that." {
			t.Errorf("finish reason %s and refusal %q", resp.FinishReason, resp.Refusal)
		}
	}
}

func TestRateLimitsAreRead(t *testing.T) {
	reply := exchange
	reply.Header = map[string]string{"X-Ratelimit-Limit-Tokens": "1000", "X-Ratelimit-Remaining-Tokens": "900"}
	resp, err := provider(t, modeltest.NewServer(t, reply)).Complete(t.Context(), modeltest.Conversation(true), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Limits) != 1 || resp.Limits[0] != (model.RateLimit{Kind: "tokens", Limit: 1000, Remaining: 900}) {
		t.Errorf("the limits are %v", resp.Limits)
	}
}

func TestLongReasoningComesWhole(t *testing.T) {
	reply := modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Size: 2 << 20}}, {Text: "a"}}}
	s := modeltest.NewServer(t, reply, modeltest.Reply{})
	p := provider(t, s)
	req := modeltest.Conversation(true)
	for range 2 {
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		modeltest.Answer(req, resp, nil)
		req.Messages = append(req.Messages, &harnessv1.Message{Id: 9, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("More.")})
	}
	if sent := s.Requests()[1].Body; !strings.Contains(string(sent), string(s.ResponseItems()[0][0])) {
		t.Errorf("the item of 2 MB did not go back")
	}
}
