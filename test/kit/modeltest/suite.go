package modeltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// New returns a provider whose tries get the replies in order. It uses only their
// texts, calls, finish reasons, usage, errors and FaultHang.
type New func(t *testing.T, replies ...Reply) model.Provider

// Suite tests the contract of model.Provider. Each implementation runs it.
func Suite(t *testing.T, newProvider New) {
	for _, streaming := range []bool{true, false} {
		name := "plain"
		if streaming {
			name = "streaming"
		}
		t.Run(name, func(t *testing.T) {
			t.Run("answers", func(t *testing.T) { suiteAnswers(t, newProvider, streaming) })
			t.Run("errors", func(t *testing.T) { suiteErrors(t, newProvider, streaming) })
			t.Run("an exchange with tools", func(t *testing.T) { suiteExchange(t, newProvider, streaming) })
			t.Run("an error is one try", func(t *testing.T) { suiteRetry(t, newProvider, streaming) })
			t.Run("cancel", func(t *testing.T) { suiteCancel(t, newProvider, streaming) })
			t.Run("deadline", func(t *testing.T) { suiteDeadline(t, newProvider, streaming) })
		})
	}
}

// WindowSuite tests that a Provider reports a request that is too long. newServer returns a
// server that its service's words are those of, and a provider for it; named reports whether
// those words name the sizes.
func WindowSuite(t *testing.T, newServer func(t *testing.T) (*Server, model.Provider), named bool) {
	complete := func(t *testing.T, window int) (*Server, *model.Response, error) {
		s, p := newServer(t)
		s.Window = window
		resp, err := p.Complete(t.Context(), Conversation(true), nil)
		return s, resp, err
	}
	s, _, err := complete(t, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	size := s.Requests()[0].Tokens
	_, resp, err := complete(t, size)
	if err != nil || resp.Usage.GetInputTokens() != uint64(size) {
		t.Errorf("a request that fits: got usage %v and %v, want %d tokens", resp.Usage, err, size)
	}
	_, resp, err = complete(t, size-1)
	CheckError(t, resp, err, model.Error{RetryAfter: -1, Status: 400, ContextExceeded: true})
	var got *model.Error
	want := [2]uint32{uint32(size), uint32(size - 1)}
	if !named {
		want = [2]uint32{}
	}
	if !errors.As(err, &got) || [2]uint32{got.PromptTokens, got.WindowTokens} != want {
		t.Errorf("got %d of %d tokens, want %d: %v", got.PromptTokens, got.WindowTokens, want, err)
	}
}

func suiteAnswers(t *testing.T, newProvider New, streaming bool) {
	for name, reply := range map[string]Reply{
		"text":             {Text: "Grüße, 世界! A text that is longer than a single delta.", Usage: &Usage{Input: 12, Output: 9, Cached: 4}},
		"one call":         {Calls: []Call{{ID: "a", Name: "read_file", Arguments: `{"path": "a.txt"}`}}},
		"text and calls":   {Text: "Looking.", Calls: []Call{{ID: "a", Name: "one", Arguments: `{}`}, {ID: "b", Name: "two", Arguments: `{"n":12345678901234567890}`}}},
		"broken arguments": {Calls: []Call{{ID: "a", Name: "one", Arguments: `{"path": "a.txt`}, {ID: "b", Name: "two", Arguments: ``}}},
		"nothing":          {},
		"length":           {Text: "cut of", FinishReason: "length"},
		"length in a call": {Calls: []Call{{ID: "a", Name: "one", Arguments: `{"text": "a lo`}}, FinishReason: "length"},
		"filtered":         {FinishReason: "content_filter"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, reply)
			var deltas []string
			resp, err := p.Complete(t.Context(), Conversation(streaming), func(d model.Delta) { deltas = append(deltas, d.Text) })
			if err != nil {
				t.Fatal(err)
			}
			CheckAnswer(t, reply, resp)
			if got := strings.Join(deltas, ""); streaming && got != reply.Text {
				t.Errorf("the deltas are %q, want %q", got, reply.Text)
			}
			if !streaming && len(deltas) > 0 {
				t.Errorf("deltas %q without streaming", deltas)
			}
			if streaming && len(reply.Text) > 30 && len(deltas) < 2 {
				t.Errorf("the text came in %d deltas, want several", len(deltas))
			}
		})
	}
	t.Run("without a delta function", func(t *testing.T) {
		reply := Reply{Text: "hello"}
		resp, err := newProvider(t, reply).Complete(t.Context(), Conversation(streaming), nil)
		if err != nil {
			t.Fatal(err)
		}
		CheckAnswer(t, reply, resp)
	})
}

func suiteErrors(t *testing.T, newProvider New, streaming bool) {
	cases := map[string]struct {
		reply Reply
		want  model.Error
	}{
		"429":                {Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}}, model.Error{Retryable: true, RetryAfter: 7 * time.Second, Status: 429}},
		"429 without a wait": {Reply{Status: 429}, model.Error{Retryable: true, RetryAfter: -1, Status: 429}},
		"429 at once":        {Reply{Status: 429, Header: map[string]string{"Retry-After": "0"}}, model.Error{Retryable: true, Status: 429}},
		"408":                {Reply{Status: 408}, model.Error{Retryable: true, RetryAfter: -1, Status: 408}},
		"409":                {Reply{Status: 409}, model.Error{Retryable: true, RetryAfter: -1, Status: 409}},
		"425":                {Reply{Status: 425}, model.Error{Retryable: true, RetryAfter: -1, Status: 425}},
		"500":                {Reply{Status: 500}, model.Error{Retryable: true, RetryAfter: -1, Status: 500}},
		"503":                {Reply{Status: 503, Header: map[string]string{"Retry-After": "1"}}, model.Error{Retryable: true, RetryAfter: time.Second, Status: 503}},
		"400":                {Reply{Status: 400}, model.Error{RetryAfter: -1, Status: 400}},
		"401":                {Reply{Status: 401}, model.Error{RetryAfter: -1, Status: 401}},
		"403":                {Reply{Status: 403}, model.Error{RetryAfter: -1, Status: 403}},
		"404":                {Reply{Status: 404}, model.Error{RetryAfter: -1, Status: 404}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp, err := newProvider(t, c.reply).Complete(t.Context(), Conversation(streaming), func(model.Delta) {})
			CheckError(t, resp, err, c.want)
		})
	}
}

func suiteExchange(t *testing.T, newProvider New, streaming bool) {
	replies := []Reply{
		{Text: "Looking.", Calls: []Call{{ID: "x1", Name: "read_file", Arguments: `{"path":"a"}`}, {ID: "x2", Name: "read_file", Arguments: `{"path":"b"}`}}},
		{Text: "Only words."},
		{Calls: []Call{{ID: "x3", Name: "work_complete", Arguments: `{"summary":"done"}`}}},
	}
	p := newProvider(t, replies...)
	req := Conversation(streaming)
	for i, reply := range replies {
		req.Turn = uint32(i + 1)
		resp, err := p.Complete(t.Context(), req, func(model.Delta) {})
		if err != nil {
			t.Fatalf("response %d: %v", i+1, err)
		}
		CheckAnswer(t, reply, resp)
		Answer(req, resp, func(call *harnessv1.ToolCall) string { return "result of " + call.GetId() })
	}
}

func suiteRetry(t *testing.T, newProvider New, streaming bool) {
	good := Reply{Text: "at last"}
	p := newProvider(t, Reply{Status: 500}, Reply{Status: 429}, good)
	req := Conversation(streaming)
	for i, want := range []int{500, 429} {
		if _, err := p.Complete(t.Context(), req, nil); model.AsError(err).Status != want {
			t.Fatalf("try %d: %v, want status %d", i+1, err, want)
		}
	}
	resp, err := p.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	CheckAnswer(t, good, resp)
}

func suiteCancel(t *testing.T, newProvider New, streaming bool) {
	p := newProvider(t, Reply{Fault: FaultHang})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.Complete(ctx, Conversation(streaming), func(model.Delta) {})
		done <- err
	}()
	cancel()
	checkBrokenOff(t, <-done, context.Canceled)
}

func suiteDeadline(t *testing.T, newProvider New, streaming bool) {
	p := newProvider(t, Reply{Fault: FaultHang})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := p.Complete(ctx, Conversation(streaming), func(model.Delta) {})
	checkBrokenOff(t, err, context.DeadlineExceeded)
}

func checkBrokenOff(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if model.AsError(err).Retryable {
		t.Errorf("a call that its caller broke off is retryable")
	}
}

// Conversation is a small valid request: a system prompt, a user's goal, and
// two tools.
func Conversation(streaming bool) *model.Request {
	return &model.Request{
		Model: "test-model", Streaming: streaming, IdleTimeout: time.Minute, Turn: 1,
		Messages: []*harnessv1.Message{
			{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Content: inline("You are tested.")},
			{Id: 2, Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: inline("Read a and b.")},
		},
		Tools: []*harnessv1.ToolSpec{
			{Name: "read_file", Description: "Reads a file.", ParametersSchema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`},
			{Name: "work_complete", Description: "Ends the work.", ParametersSchema: `{"type":"object","properties":{"summary":{"type":"string"}}}`},
		},
	}
}

// Answer appends a response to the conversation of req, followed by a result for
// each of its calls, or by a user message if it has none.
func Answer(req *model.Request, resp *model.Response, result func(*harnessv1.ToolCall) string) {
	add := func(m *harnessv1.Message) {
		m.Id, m.TurnNumber = uint64(len(req.Messages)+1), req.Turn
		req.Messages = append(req.Messages, m)
	}
	add(&harnessv1.Message{
		Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline(resp.Text), ToolCalls: resp.ToolCalls, Parts: resp.Parts, Origin: resp.Origin,
	})
	for _, c := range resp.ToolCalls {
		add(&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: c.GetId(), ToolName: c.GetName(), Content: inline(result(c))})
	}
	if len(resp.ToolCalls) == 0 {
		add(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION, Content: inline("Go on.")})
	}
}

// CheckAnswer compares a response with its reply. A call without an id in the reply
// may have any; one without arguments may have an empty object, because not every
// protocol distinguishes the two.
func CheckAnswer(t testing.TB, want Reply, got *model.Response) {
	t.Helper()
	if got.Text != want.text() {
		t.Errorf("text %q, want %q", got.Text, want.text())
	}
	if got.FinishReason != want.finishReason() {
		t.Errorf("finish reason %q, want %q", got.FinishReason, want.finishReason())
	}
	wanted := want.calls()
	var calls []Call
	for i, c := range got.ToolCalls {
		call := Call{ID: c.GetId(), Name: c.GetName(), Arguments: c.GetArguments().GetInline()}
		if i < len(wanted) && wanted[i].ID == "" {
			call.ID = ""
		}
		if i < len(wanted) && wanted[i].Arguments == "" && call.Arguments == "{}" {
			call.Arguments = ""
		}
		calls = append(calls, call)
	}
	if !slices.Equal(calls, wanted) {
		t.Errorf("calls %+v, want %+v", calls, wanted)
	}
	var usage Usage
	if want.Usage != nil {
		usage = *want.Usage
	}
	if got.Usage == nil {
		t.Errorf("the usage is nil, want one, zero where none was reported")
	}
	if have := (Usage{
		Input: got.Usage.GetInputTokens(), Output: got.Usage.GetOutputTokens(),
		Cached: got.Usage.GetCachedInputTokens(), Written: got.Usage.GetCacheWriteTokens(),
		Reasoning: got.Usage.GetReasoningTokens(),
	}); have != usage {
		t.Errorf("usage %+v, want %+v", have, usage)
	}
	if got.Model == "" {
		t.Errorf("the model that answered has no name")
	}
}

// CheckError compares the error of a failed try, without its message and cause. The
// message must be one line.
func CheckError(t testing.TB, resp *model.Response, err error, want model.Error) {
	t.Helper()
	var got *model.Error
	if !errors.As(err, &got) {
		t.Fatalf("error %v (%T), want a *model.Error", err, err)
	}
	if resp != nil {
		t.Errorf("a failed try returned a response")
	}
	if got.Retryable != want.Retryable || got.RetryAfter != want.RetryAfter || got.ContextExceeded != want.ContextExceeded || got.Status != want.Status {
		t.Errorf("error {retryable %t, after %s, context %t, status %d}, want {%t, %s, %t, %d}: %s",
			got.Retryable, got.RetryAfter, got.ContextExceeded, got.Status,
			want.Retryable, want.RetryAfter, want.ContextExceeded, want.Status, got.Message)
	}
	if got.Message == "" || strings.Contains(got.Message, "\n") {
		t.Errorf("message %q, want one line", got.Message)
	}
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}
