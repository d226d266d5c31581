package anthropic

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// FuzzStream folds any events, one a line.
func FuzzStream(f *testing.F) {
	f.Add(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":-1,"cache_read_input_tokens":9223372036854775807,"cache_creation_input_tokens":9223372036854775807}}}` + "\n" +
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`)
	f.Add(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"n","input":{"a":1}}}` + "\n" +
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}` + "\n" + `{"type":"message_stop"}`)
	f.Add(`{"type":"error","error":{"type":"overloaded_error"}}` + "\n" + `{"error":7}` + "\n" + `null` + "\n" + `[]` + "\n" + `{"type":"ping"}`)
	f.Add(`{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{"}}` + "\n" + `{"type":"content_block_start","content_block":{"type":"hologram","text":7}}`)
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a","signature":""}}` + "\n" +
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ud83d"}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}` + "\n" +
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x","thinking":7}}` + "\n" + `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use"}}` + "\n" +
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`)
	f.Add(`{"type":"content_block_start","content_block":{"type":"thinking"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"\"}"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":{}}}`)
	f.Add(`{"type":"content_block_start","content_block":{"signature":"a","type":"thinking","signature":"b"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"c"}}`)
	f.Add(`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"category":7}},"stop_details":[],"usage":{"output_tokens":1,"output_tokens_details":{"thinking_tokens":9}}}`)
	f.Fuzz(func(t *testing.T, events string) {
		var s stream
		var text, reasoning strings.Builder
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
			reasoning.WriteString(piece.Reasoning)
		}
		r := s.Response()
		checkParts(t, r)
		if r.Parts != nil && reasoningOf(r) != reasoning.String() {
			t.Errorf("reasoning %q of the deltas %q", reasoningOf(r), reasoning.String())
		}
		if r.Text != text.String() || r.FinishReason == "" || r.Usage == nil {
			t.Errorf("response %+v of the deltas %q", r, text.String())
		}
		checkUsage(t, r)
	})
}

// FuzzMessage reads any plain answer, and any error body.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"n","input":{}}],"stop_reason":null,"usage":{"input_tokens":1}}`))
	f.Add([]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`))
	f.Add([]byte(`{"content":[{"type":7}],"error":{"type":1,"message":{}},"detail":[]}`))
	f.Add([]byte(`{"content":[{"type":"thinking","thinking":[],"signature":"c2ln"},{"type":"text","text":"a"},{"type":"redacted_thinking"},{"type":"text","text":"b"}],"stop_details":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(body)
		if (r == nil) == (err == nil) {
			t.Errorf("%v and %v: want a response or an error", r, err)
		}
		if r != nil {
			checkUsage(t, r)
			checkParts(t, r)
		}
		if e := refusals.Classify(&wire.StatusError{Status: 400, Body: body}); e.Message == "" || e.Retryable {
			t.Errorf("a 400 became %+v", e)
		}
	})
}

// checkParts checks that parts cover the text and the calls of a response, and that its
// blocks are JSON.
func checkParts(t *testing.T, r *model.Response) {
	t.Helper()
	m := &harnessv1.Message{ToolCalls: r.ToolCalls, Parts: r.Parts}
	if r.Parts != nil && !covers(r.Parts, m, r.Text) {
		t.Errorf("the parts %v do not cover %q and %d calls", r.Parts, r.Text, len(r.ToolCalls))
	}
	for _, p := range r.Parts {
		if p.GetReasoning() != nil && !json.Valid(p.GetOpaque().GetInline()) {
			t.Errorf("the block %q is not JSON", p.GetOpaque().GetInline())
		}
	}
	if len(r.Refusal) > maxRefusal || strings.ContainsAny(r.Refusal, "\n\r") {
		t.Errorf("the reason %q is too long", r.Refusal)
	}
}

func reasoningOf(r *model.Response) string {
	var texts []string
	for _, p := range r.Parts {
		if text := p.GetReasoning().GetText().GetInline(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func checkUsage(t *testing.T, r *model.Response) {
	t.Helper()
	if r.Usage.GetReasoningTokens() > r.Usage.GetOutputTokens() {
		t.Errorf("%d tokens of reasoning in %d", r.Usage.GetReasoningTokens(), r.Usage.GetOutputTokens())
	}
	if u := r.Usage; u.GetCachedInputTokens()+r.Usage.GetCacheWriteTokens() > u.GetInputTokens() {
		t.Errorf("of %d tokens %d were read from the cache and %d written to it", u.GetInputTokens(), u.GetCachedInputTokens(), r.Usage.GetCacheWriteTokens())
	}
}

// original reverses safeID.
func original(t *testing.T, safe string) string {
	rest, changed := strings.CutPrefix(safe, escaped)
	if !changed {
		return safe
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		if rest[i] != '_' {
			b.WriteByte(rest[i])
			continue
		}
		c, err := hex.DecodeString(rest[i+1 : i+3])
		if err != nil {
			t.Fatalf("%s: %v", safe, err)
		}
		b.Write(c)
		i += 2
	}
	return b.String()
}

func FuzzSafeID(f *testing.F) {
	for _, id := range []string{"toolu_01A", "call-1", "functions.read:0", "", "x-", "x-_3a", "ä", "a b"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		safe := safeID(id)
		if safe == "" || strings.Trim(safe, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q became %q", id, safe)
		}
		if got := original(t, safe); got != id {
			t.Errorf("%q became %q, which is %q", id, safe, got)
		}
	})
}
