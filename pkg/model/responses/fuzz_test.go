package responses

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// FuzzStream folds any events, one a line.
func FuzzStream(f *testing.F) {
	f.Add(added(0, reason("rs_1", "", "e")) + done(0, reason("rs_1", "Why.", "enc")) + added(1, text("m", "")) + textDelta(1, "m", "a") + done(1, text("m", "ab")) + completed)
	f.Add(argumentsDelta(3, "x", "{") + added(3, call("x", "c", "")) + done(0, call("x", "c", "{}")) + done(3, call("y", "c", "7")) + incomplete)
	f.Add(on("output_item.done", `"item":`+call("", "", "{}")) + on("reasoning_text.delta", `"delta":"a"`) + on("refusal.delta", `"output_index":-1,"delta":"b"`) + on("completed", `"response":{"output":[7,{"type":"message","content":"x"},null]}`))
	f.Add(`{"type":"error","code":7}` + "\n" + `{"error":"x"}` + "\n" + `null` + "\n" + `[]` + "\n" + `[DONE]`)
	f.Add(done(0, "{\"type\":\"reasoning\",\"encrypted_content\":\"\xff\"}") + on("function_call_arguments.done", `"output_index":0,"arguments":{"a":1},"name":{}`) + on("failed", `"response":{"error":{"code":"rate_limit_exceeded","message":"try again in 9s"}}`))
	f.Fuzz(func(t *testing.T, events string) {
		s := newDecoder().stream()
		for line := range strings.Lines(events) {
			if _, err := s.Add("", []byte(strings.TrimSpace(line))); err != nil {
				var e *model.Error
				if !errors.As(err, &e) || e.Message == "" {
					t.Fatalf("error %v is no *model.Error with a message", err)
				}
				return
			}
		}
		checkResponse(t, s.Response())
	})
}

// FuzzResponse reads any plain response, and any error body.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"status":"completed","output":[` + reason("rs", "a", "e") + `,` + text("m", "a") + `,` + call("x", "c", "{") + `],"usage":{"input_tokens":1}}`))
	f.Add([]byte(`{"status":"incomplete","incomplete_details":null,"output":[{"type":"message","content":[{"type":"refusal"}]}]}`))
	f.Add([]byte(`{"error":{"code":"invalid_encrypted_content","param":1,"message":{}},"output":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := newDecoder().decode(body)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v and %v: want a response or an error", r, err)
		}
		if r != nil {
			checkResponse(t, r)
		}
		refusals := newDecoder().refusals
		if e := refusals.Classify(&wire.StatusError{Status: 400, Body: body}); e.Message == "" || e.Retryable {
			t.Errorf("a 400 became %+v", e)
		}
	})
}

// checkResponse checks what each response promises: parts that cover the answer, and
// opaque bytes that a request can contain.
func checkResponse(t *testing.T, r *model.Response) {
	t.Helper()
	if r.FinishReason == "" || r.Usage == nil {
		t.Errorf("the response %+v has no finish reason or no usage", r)
	}
	if r.Parts == nil {
		return
	}
	var calls []uint32
	size := uint64(0)
	for _, p := range r.Parts {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			if size += kind.Text; kind.Text == 0 {
				t.Errorf("a part of no text")
			}
		case *harnessv1.Part_Call:
			calls = append(calls, kind.Call)
		}
		if raw := p.GetOpaque().GetInline(); p.GetOpaque() != nil && !json.Valid(raw) {
			t.Errorf("opaque bytes are not JSON: %q", raw)
		}
	}
	if size != uint64(len(r.Text)) || len(calls) != len(r.ToolCalls) || !slices.IsSorted(calls) {
		t.Errorf("%d parts cover %d of %d bytes and the calls %v of %d", len(r.Parts), size, len(r.Text), calls, len(r.ToolCalls))
	}
}
