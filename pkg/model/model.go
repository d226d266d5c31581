// Package model is the narrow interface to chat-completion models. One
// Provider speaks one wire protocol; the SDK of a protocol is imported only by
// its adapter package below this one.
//
// A Provider makes exactly one try. Trying again, waiting and falling back to
// another model is the turn's business, because every try is recorded.
package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Request is what a model is asked. It is a valid conversation: every tool
// call is answered once, directly after the message that holds it. All
// contents are inline.
type Request struct {
	// Model is the provider's own name of the model; empty means that the
	// provider picks one from its list.
	Model string
	// Messages in order; the first may be the system prompt.
	Messages []*harnessv1.Message
	// Tools that are offered; may be empty.
	Tools []*harnessv1.ToolSpec
	// Streaming asks for text as it is written.
	Streaming bool
	// IdleTimeout is the silence after which the stream counts as cut.
	IdleTimeout time.Duration
	// Turn is the number of the turn; providers ignore it, the scripted model
	// does not.
	Turn uint32
	// FailedTries counts the tries of this request, with this provider, that
	// have failed before, also in processes that are gone: the stored
	// model.retry events since the last response. Providers ignore it; the
	// scripted model then knows without a memory of its own which of its scripted
	// errors are behind it. 0 is always safe.
	FailedTries uint32
}

// Response is what a model answered.
type Response struct {
	// Text is the content; may be empty.
	Text string
	// ToolCalls in the model's order, ids as the provider gave them, possibly
	// empty or repeated; arguments inline and as they came.
	ToolCalls []*harnessv1.ToolCall
	// Usage as reported; zero when the provider reported none.
	Usage *harnessv1.Usage
	// CacheWriteTokens are those of Usage.InputTokens that the provider wrote into
	// its cache, which some sell at a price of its own; 0 where it does not say.
	CacheWriteTokens uint64
	// FinishReason is stop, tool_calls, length or content_filter.
	FinishReason string
	// Model is the name that the provider says answered.
	Model string
}

// Provider speaks to one model service.
type Provider interface {
	// Complete makes one try. It calls delta with pieces of the text, in order,
	// from the calling goroutine, when req.Streaming is set. A failed try
	// returns an *Error.
	Complete(ctx context.Context, req *Request, delta func(text string)) (*Response, error)
}

// Error says how a try failed.
type Error struct {
	// Retryable says that the same request may succeed later: 408, 409, 429,
	// 5xx, a cut or silent stream, a connection that failed.
	Retryable bool
	// RetryAfter is how long the provider asked to wait; negative when it did not say.
	RetryAfter time.Duration
	// ContextExceeded says that the request was too long for the window.
	ContextExceeded bool
	// Status is the HTTP status; 0 when there was none.
	Status int
	// Message is one line for people. It never holds a credential.
	Message string
	// Err is the cause; may be nil.
	Err error
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error; one of another type counts as retryable
// without a wait, because nothing is known of it.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Retryable: true, RetryAfter: -1, Message: fmt.Sprintf("model call failed: %v", err), Err: err}
}
