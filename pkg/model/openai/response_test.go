package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// FuzzStream folds any events, one a line.
func FuzzStream(f *testing.F) {
	f.Add(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`)
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{"}}]}}]}` + "\n" + `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`)
	f.Add(`{"error":"x"}` + "\n" + `{"error":{"code":400,"message":7}}` + "\n" + `null` + "\n" + `[]`)
	f.Add(`{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}}]}` + "\n" + `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0},{}]},"finish_reason":"sensitive"}]}`)
	f.Add(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}]}}]}` + "\n" + `{"choices":[{"delta":{"refusal":"no"},"finish_reason":"error","error":{"message":"x"}}]}`)
	f.Add(`{"object":"error","message":"x"}`)
	f.Fuzz(func(t *testing.T, events string) {
		s := (decoder{reasoning: &Reasoning{}, refusals: &refusals}).stream()
		var text strings.Builder
		for line := range strings.Lines(events) {
			piece, err := s.Add("", []byte(line))
			if err != nil {
				var e *model.Error
				if !errors.As(err, &e) || e.Message == "" {
					t.Fatalf("error %v is no *model.Error with a message", err)
				}
				return
			}
			text.WriteString(piece.Text)
		}
		r := s.Response()
		if r.Text != text.String() || r.FinishReason == "" || r.Usage == nil {
			t.Errorf("response %+v of the deltas %q", r, text.String())
		}
	})
}

// FuzzCompletion reads any plain answer, and any error body.
func FuzzCompletion(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"a","tool_calls":[{"id":"x","function":{"name":"n","arguments":{}}}]},"finish_reason":null}]}`))
	f.Add([]byte(`{"error":{"code":"context_length_exceeded","type":1,"message":"m"}}`))
	f.Add([]byte(`{"detail":[{"msg":"x"}],"code":{}}`))
	f.Add([]byte(`{"error":{"code":"content_filter","innererror":{"content_filter_result":{"hate":{"filtered":true}}}}}`))
	f.Add([]byte(`[{"error":{"message":"Corrupted thought signature."}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := (decoder{reasoning: &Reasoning{}, refusals: &refusals}).decode(body)
		if (r == nil) == (err == nil) {
			t.Errorf("%v and %v: want a response or an error", r, err)
		}
		e := refusals.Classify(&wire.StatusError{Status: 400, Body: body})
		if e.Message == "" || e.Retryable {
			t.Errorf("a 400 became %+v", e)
		}
	})
}
