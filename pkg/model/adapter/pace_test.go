package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// service answers each request with the events that next returns, each after its pause,
// until next returns no event. It is a transport without a network, so that its pauses
// take no time in a bubble of package synctest.
type service struct {
	next func(n int) (event string, pause time.Duration)
	sent int64 // bytes
}

// RoundTrip begins a stream.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(&events{ctx: r.Context(), service: s})}, nil
}

// events is the body of a stream.
type events struct {
	ctx     context.Context
	service *service
	n       int
	rest    string
}

func (e *events) Read(p []byte) (int, error) {
	if e.rest == "" {
		event, pause := e.service.next(e.n)
		e.n++
		if event == "" {
			return 0, io.EOF
		}
		if pause > 0 {
			select {
			case <-e.ctx.Done():
				return 0, context.Cause(e.ctx)
			case <-time.After(pause):
			}
		}
		e.rest = "data: " + event + "\n\n"
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.service.sent += int64(n)
	return n, nil
}

// wireCase is a wire and its events.
type wireCase struct {
	open     func(*http.Client) (model.Provider, error)
	begin    string   // the events before the first piece
	pieces   []string // kinds of endless answers; %s is a text
	empty    []string // events that add nothing
	complete []string // a whole answer
}

var wires = map[string]wireCase{
	"chat": {
		open: func(c *http.Client) (model.Provider, error) {
			return openai.New(openai.Config{Endpoint: adapter.Endpoint{HTTPClient: c}})
		},
		begin: `{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		pieces: []string{
			`{"choices":[{"index":0,"delta":{"content":"%s"}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_content":"%s"}}]}`,
			`{"choices":[{"index":0,"delta":{"refusal":"%s"}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"%s"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"%s"}]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"%s"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"","function":{"name":"f"}}]}}],"pad":"%s"}`,
		},
		empty:    []string{`{"choices":[{"index":0,"delta":{"content":""}}]}`, `{"choices":[{"index":0,"delta":{}}]}`, `{"choices":[]}`},
		complete: []string{`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, "[DONE]"},
	},
	"messages": {
		open: func(c *http.Client) (model.Provider, error) {
			return anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{HTTPClient: c}})
		},
		begin: `{"type":"message_start","message":{"model":"m"}}`,
		pieces: []string{
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"%s"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}},"pad":"%s"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"%s"}}`,
		},
		empty:    []string{`{"type":"ping"}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`},
		complete: []string{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`},
	},
	"responses": {
		open: func(c *http.Client) (model.Provider, error) {
			return responses.New(responses.Config{Endpoint: adapter.Endpoint{HTTPClient: c}})
		},
		begin: `{"type":"response.created","response":{"model":"m"}}`,
		pieces: []string{
			`{"type":"response.output_text.delta","output_index":0,"delta":"%s"}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"%s"}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"%s"}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"%s"}}`,
		},
		empty:    []string{`{"type":"keepalive"}`, `{"type":"response.output_text.delta","output_index":0,"delta":""}`},
		complete: []string{`{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`},
	},
}

const idle = time.Minute

// try makes a try at a service that sends what next returns.
func (c wireCase) try(t *testing.T, next func(n int) (string, time.Duration)) (*service, *model.Response, error) {
	t.Helper()
	s := &service{next: next}
	p, err := c.open(&http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	req := modeltest.Conversation(true)
	req.IdleTimeout = idle
	resp, err := p.Complete(t.Context(), req, nil)
	return s, resp, err
}

// TestEndlessAnswerIsEnded: an answer without an end is ended at the limit, whatever it
// consists of, and long before the service has sent a GB.
func TestEndlessAnswerIsEnded(t *testing.T) {
	for name, c := range wires {
		for i, piece := range c.pieces {
			if testing.Short() && (i > 0 || name != "responses") {
				break // each reads up to 100 MB
			}
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				t.Parallel()
				text := strings.Repeat("x", 8000)
				if strings.Contains(piece, "pad") { // each event counts as a piece
					text = ""
				}
				s, resp, err := c.try(t, func(n int) (string, time.Duration) {
					if n == 0 {
						return c.begin, 0
					}
					return fmt.Sprintf(piece, text+strconv.Itoa(n)), 0
				})
				modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
				if !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint("the answer exceeds ", adapter.MaxAnswer)) {
					t.Errorf("error %v", err)
				}
				if s.sent > 100<<20 {
					t.Errorf("%d bytes were read", s.sent)
				}
			})
		}
	}
}

// TestEmptyEventsAreSilence: events that add nothing end a try as silence does, sooner
// where no service sends such events while its model thinks.
func TestEmptyEventsAreSilence(t *testing.T) {
	for name, c := range wires {
		for _, empty := range c.empty {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, resp, err := c.try(t, func(n int) (string, time.Duration) {
					if n == 0 {
						return c.begin, 0
					}
					return empty, time.Second
				})
				modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
				want, says := 5*idle, "sent only empty events for 5m0s"
				if name == "chat" {
					want, says = idle, "sent nothing for 1m0s"
				}
				if took := time.Since(began); took < want || took > want+2*time.Second || !strings.Contains(err.Error(), says) {
					t.Errorf("%s, %s: ended after %s: %v", name, empty, took, err)
				}
			})
		}
	}
}

// TestThinkingServiceIsNotSilent: a service whose model thinks for several idle timeouts
// answers if it sends events meanwhile.
func TestThinkingServiceIsNotSilent(t *testing.T) {
	for _, name := range []string{"messages", "responses"} {
		c := wires[name]
		synctest.Test(t, func(t *testing.T) {
			_, resp, err := c.try(t, func(n int) (string, time.Duration) {
				const beats = 8 // 4 idle timeouts
				switch {
				case n == 0:
					return c.begin, 0
				case n <= beats:
					return c.empty[0], idle / 2
				case n-beats <= len(c.complete):
					return c.complete[n-beats-1], 0
				}
				return "", 0
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			modeltest.CheckAnswer(t, modeltest.Reply{Text: "hi"}, resp)
		})
	}
}

// TestEndlessTextIsEnded: text that trickles for hours ends the try.
func TestEndlessTextIsEnded(t *testing.T) {
	for name, c := range wires {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, resp, err := c.try(t, func(int) (string, time.Duration) { return fmt.Sprintf(c.pieces[0], "x"), idle / 2 })
			modeltest.CheckError(t, resp, err, model.Error{Retryable: true, RetryAfter: -1})
			if took := time.Since(began); took != 60*idle || !strings.Contains(err.Error(), "had no end after 1h0m0s") {
				t.Errorf("%s: ended after %s: %v", name, took, err)
			}
		})
	}
}

// TestPlainAnswerIsBounded: an answer in one body has the same bound.
func TestPlainAnswerIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads answers of 16 MB and more")
	}
	text := strings.Repeat("x", adapter.MaxAnswer)
	for _, c := range []struct{ text, says string }{
		{text, ""},
		{text + "x", "the answer exceeds"},
		{strings.Repeat(text, 3), "the response exceeds"},
	} {
		p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{HTTPClient: &http.Client{Transport: plain(`{"choices":[{"message":{"content":"` + c.text + `"},"finish_reason":"stop"}]}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.Complete(t.Context(), modeltest.Conversation(false), nil)
		switch {
		case c.says == "" && (err != nil || len(resp.Text) != len(c.text)):
			t.Errorf("an answer of the largest size: %v", err)
		case c.says != "" && (!errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("an answer of %d bytes: %v", len(c.text), err)
		}
	}
}

// plain answers each request with one body.
type plain string

func (p plain) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(string(p)))}, nil
}
