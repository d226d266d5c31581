// Package model is the interface between the turn and the models. A provider is a
// model service, and a Provider the client of one: it speaks the service's wire,
// the protocol of its requests and responses over HTTP. The packages openai, responses
// and anthropic have a wire each, script a model without a service, and provider opens
// a model by its reference.
//
// A Provider makes exactly one try. The turn retries, waits and falls back to
// another model, because every try is recorded.
package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Request is a request for one response. Its conversation is valid: every tool call
// has exactly one result, directly after the message with the call. All contents
// are inline; opaque parts and media may be in blobs.
type Request struct {
	// Model is the provider's name of the model; empty means that the provider picks
	// the first of its list.
	Model string
	// Messages in order; the first may be the system prompt.
	Messages []*harnessv1.Message
	// Tools are the available tools; may be empty.
	Tools []*harnessv1.ToolSpec
	// Effort is how much the model reasons; unspecified: the provider's default.
	Effort harnessv1.Effort
	// ShowReasoning requests a text of the reasoning for people.
	ShowReasoning bool
	// CacheKey is equal for requests that begin alike, so that the provider routes them to
	// one cache; at most 64 bytes. Empty sends none.
	CacheKey string
	// Adjustments are those that earlier refusals of this model have asked for, and
	// ADJUSTMENT_NO_OPAQUE of other models of the provider.
	Adjustments []*harnessv1.ModelAdjustment
	// Blob returns the bytes of a blob of the run, for opaque parts and media. Nil: there
	// are none in blobs.
	Blob func(ctx context.Context, digest string) ([]byte, error)
	// MaxOutputTokens limits the response, reasoning included, in tokens; 0: the model's
	// limit. The chat wire sends none: servers do not agree on its member.
	MaxOutputTokens uint32
	// Schema is the JSON Schema that the text of the answer is to fit; empty: none. A service
	// that takes no schemas gets none.
	Schema string
	// Streaming requests text while it is written.
	Streaming bool
	// IdleTimeout is the silence after which the stream counts as cut.
	IdleTimeout time.Duration
	// Turn is the number of the turn. Only the scripted model uses it.
	Turn uint32
	// Agent is the name of the sub-agent whose run it is; empty for a run that a caller
	// started. Only the scripted model uses it.
	Agent string
	// Job is set if the call is a job and no turn. Only the scripted model uses it.
	Job *Job
	// FailedTries is the number of failed tries of this request with this provider,
	// in all processes: the stored model.retry events since the last response. Only
	// the scripted model uses it, to know which of its scripted errors it has
	// returned. 0 is always safe.
	FailedTries uint32
}

// Job is what a request is made for that is no turn.
type Job struct {
	// Purpose is why the model is called, such as summarize.
	Purpose string
	// Number returns the number of the job among those of its purpose in its run, from 1.
	// A job has the same number at each of its deliveries. Nil: it is the first.
	Number func(ctx context.Context) (uint32, error)
}

// Adjusted returns the adjustment of a kind; nil if there is none.
func (r *Request) Adjusted(kind harnessv1.Adjustment) *harnessv1.ModelAdjustment {
	for _, a := range r.Adjustments {
		if a.GetAdjustment() == kind {
			return a
		}
	}
	return nil
}

// Leaves reports whether the model has refused an optional member of requests.
func (r *Request) Leaves(member string) bool {
	for _, a := range r.Adjustments {
		if a.GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_MEMBER && a.GetMember() == member {
			return true
		}
	}
	return false
}

// Delta is a piece of a response while it is written.
type Delta struct {
	// Text of the answer.
	Text string
	// Reasoning is text of the reasoning for people.
	Reasoning string
}

// Response is the response of a model.
type Response struct {
	// Text is the content; may be empty.
	Text string
	// ToolCalls in the model's order. Ids are the provider's, possibly empty or
	// repeated; arguments are inline and unchanged.
	ToolCalls []*harnessv1.ToolCall
	// Parts are the answer in the provider's order, as in harnessv1.Message; nil if Text
	// and ToolCalls say everything. Opaque bytes are inline and valid JSON.
	Parts []*harnessv1.Part
	// Origin is set with parts.
	Origin *harnessv1.Origin
	// Usage as reported; zero when the provider reported none.
	Usage *harnessv1.Usage
	// FinishReason is stop, tool_calls, length or content_filter. The last is a refusal:
	// nothing of the response counts as an answer.
	FinishReason string
	// Refusal is the category of a refusal in the provider's words; may be empty.
	Refusal string
	// Limits are the rate limits that the provider reported.
	Limits []RateLimit
	// Model is the name of the model that answered, as the provider reports it.
	Model string
}

// RateLimit is the rest of a quota of the provider.
type RateLimit struct {
	// Kind is requests, tokens, input_tokens or output_tokens.
	Kind string
	// Limit and Remaining count units of the kind.
	Limit, Remaining int64
}

// Provider is the client of one model service.
type Provider interface {
	// Complete makes one try. It calls delta with pieces of the response, in order,
	// from the calling goroutine, when req.Streaming is set. A failed try
	// returns an *Error.
	Complete(ctx context.Context, req *Request, delta func(Delta)) (*Response, error)
}

// Error is a failed try.
type Error struct {
	// Retryable reports whether the same request may succeed later: after 408, 409,
	// 425, 429 or 5xx, a cut or silent stream, or a failed connection.
	Retryable bool
	// NoKey reports whether the process lacks the key or address of the provider, which a
	// client of the run can give it. No request was sent.
	NoKey bool
	// RetryAfter is the wait that the provider requested; negative if it did not.
	RetryAfter time.Duration
	// ContextExceeded reports whether the request exceeded the context window.
	ContextExceeded bool
	// PromptTokens is the number of tokens that the provider counted in a request that
	// exceeded the context window; 0 if it named none.
	PromptTokens uint32
	// WindowTokens is the number of tokens that the model takes in a request, as the
	// provider named it: without what it reserves for the answer; 0 if it named none.
	WindowTokens uint32
	// Adjustment is how the request must change to succeed, which is no further try;
	// unspecified: no change is known.
	Adjustment harnessv1.Adjustment
	// Tool is the name of the tool whose definition was refused, for ADJUSTMENT_NO_TOOL.
	Tool string
	// Member is the name of the optional member that was refused, for ADJUSTMENT_NO_MEMBER.
	Member string
	// Limits are the rate limits that the provider reported.
	Limits []RateLimit
	// Status is the HTTP status; 0 when there was none.
	Status int
	// Message is one line for people. It never contains a credential.
	Message string
	// Err is the cause; may be nil.
	Err error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. An error of another type becomes retryable
// without a wait.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Retryable: true, RetryAfter: -1, Message: fmt.Sprintf("model call failed: %v", err), Err: err}
}
