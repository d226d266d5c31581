// Package fault is the one error type of harnessmesh: a kind, which maps to a
// gRPC code and tells an executor what to do, a documented reason, and a
// message that says what to do next.
package fault

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Domain is the domain of every ErrorInfo.
const Domain = "harnessmesh"

// Error is an error that a caller can act on.
type Error struct {
	// Code decides what a caller does.
	Code codes.Code
	// Reason says precisely what is wrong.
	Reason harnessv1.ErrorReason
	// Message is one line for people that says what to do.
	Message string
	// Metadata holds pairs of key and value that name what is wrong.
	Metadata []string
	// Err is the cause; it stays on the server.
	Err error
}

// Error is the message, and the cause where there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an Error. metadata is pairs of key and value.
func New(code codes.Code, reason harnessv1.ErrorReason, message string, metadata ...string) *Error {
	return &Error{Code: code, Reason: reason, Message: message, Metadata: metadata}
}

// metadata returns the pairs of Metadata as a map.
func (e *Error) metadata() map[string]string {
	pairs := make(map[string]string, len(e.Metadata)/2)
	for i := 0; i+1 < len(e.Metadata); i += 2 {
		pairs[e.Metadata[i]] = e.Metadata[i+1]
	}
	return pairs
}

// Status turns any error into a gRPC status. An error that is no Error becomes
// INTERNAL with a fixed text; known is then false and the caller logs the cause.
func Status(err error) (st *status.Status, known bool) {
	var e *Error
	switch {
	case err == nil:
		return nil, true
	case errors.As(err, &e):
		st := status.New(e.Code, e.Message)
		info := &errdetails.ErrorInfo{
			Reason:   ReasonName(e.Reason),
			Domain:   Domain,
			Metadata: e.metadata(),
		}
		if with, err := st.WithDetails(info); err == nil {
			st = with
		}
		return st, true
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "cancelled"), true
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "deadline exceeded"), true
	}
	if st, ok := status.FromError(err); ok {
		return st, true
	}
	return status.New(codes.Internal, "internal error; the server's log has the cause"), false
}

// ReasonName is the reason without its prefix, as it travels.
func ReasonName(r harnessv1.ErrorReason) string {
	return strings.TrimPrefix(r.String(), "ERROR_REASON_")
}

// ReasonOf returns the reason that a gRPC error carries, empty when it has none.
func ReasonOf(err error) string {
	return infoOf(status.Convert(err)).GetReason()
}
